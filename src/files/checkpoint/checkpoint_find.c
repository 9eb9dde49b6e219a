#include "files/checkpoint/checkpoint.h"

#include "base/arguments.h"
#include "base/files.h"
#include "base/hub.h"
#include "base/memory.h"
#include "comm/alone.h"
#include "files/checkpoint/hub_model.h"
#include "files/deepspeed/deepspeed.h"
#include "files/gguf/gguf.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// The checkpoints there, oldest first: complete ones, and those that stepped aside and
// whose place is still empty (kinds of one step come sorted, complete first).
static tr_status scan(const char *out_folder, char *folder, tr_step_folder **list,
                      size_t *count, tr_error *err) {
    size_t kept = 0;
    *list = NULL;
    *count = 0;
    tr_status status = tr__path_join(folder, PATH_MAX, out_folder, "checkpoints", err);
    if (status == TR_OK) {
        status = tr__step_scan(folder, list, count, err);
    }
    for (size_t i = 0; i < *count; i++) {
        tr_step_folder found = (*list)[i];
        bool superseded = found.kind == TR_STEP_REPLACED && kept > 0 &&
                          (*list)[kept - 1].step == found.step;
        bool counts = found.kind == TR_STEP_PLAIN || found.kind == TR_STEP_REPLACED;
        if (counts && !superseded) {
            (*list)[kept++] = found;
        }
    }
    *count = kept;
    return status;
}

// Adds to the message which older checkpoint is good.
static tr_status fail_damaged(const tr_error *problem, const char *folder,
                              const tr_step_folder *list, size_t before,
                              tr_verify verify, tr_error *err) {
    for (size_t i = before; i-- > 0;) {
        char path[PATH_MAX];
        if (tr__path_join(path, sizeof path, folder, list[i].name, NULL) == TR_OK &&
            tr__checkpoint_verify(path, verify, NULL, NULL, NULL, NULL) == TR_OK) {
            return tr_fail(err, problem->status,
                           "%.600s; the newest good one before it is %s",
                           problem->message, path);
        }
    }
    return tr_fail(err, problem->status, "%.600s; no good one is before it",
                   problem->message);
}

tr_status tr__checkpoint_find_latest(const char *out_folder, tr_verify verify,
                                     const tr_progress *progress, char *dst,
                                     size_t size, tr_error *err) {
    char folder[PATH_MAX], name[TR_STEP_NAME_MAX] = "";
    tr_step_folder *list;
    size_t count, before = 0;
    tr_error problem = {0};
    tr_status status = scan(out_folder, folder, &list, &count, err);
    *dst = '\0';
    if (status == TR_OK && !tr__link_read(folder, TR_LINK_LATEST, name) && count > 0) {
        memcpy(name, list[count - 1].name, sizeof name);
    }
    if (status != TR_OK || !*name) {
        goto cleanup;
    }
    status = tr__path_join(dst, size, folder, name, err);
    if (status != TR_OK) {
        goto cleanup;
    }
    status = tr__checkpoint_verify(dst, verify, progress, NULL, NULL, &problem);
    if (status != TR_OK) {
        *dst = '\0';
        while (before < count && list[before].step < tr__step_number(name)) {
            before++;
        }
        fail_damaged(&problem, folder, list, before, verify, err);
    }
cleanup:
    tr__free(list);
    return status;
}

tr_status tr__checkpoint_find(tr_comm *comm, const char *out_folder,
                              const tr_progress *progress, char *dst, tr_error *err) {
    tr_error mine = {0};
    tr_status status = TR_OK;
    memset(dst, 0, PATH_MAX);
    if (tr__comm_leads(comm)) {
        status = tr__checkpoint_clean(out_folder, &mine);
        if (status == TR_OK) {
            status = tr__checkpoint_find_latest(out_folder, TR_VERIFY_HASHES, progress,
                                                dst, PATH_MAX, &mine);
        }
    }
    status = tr__agree(comm, status, &mine, err);
    return status == TR_OK && comm ? tr__comm_broadcast(comm, 0, dst, PATH_MAX, err)
                                   : status;
}

static tr_status fill_entry(const char *folder, const tr_step_folder *found,
                            const char *latest, tr_checkpoint_entry *entry,
                            tr_error *err) {
    tr_manifest manifest;
    entry->path = tr__format("%s/%s", folder, found->name);
    if (!entry->path) {
        return tr_fail(err, TR_MEMORY, "no memory to list %s", folder);
    }
    entry->step = found->step;
    entry->latest = strcmp(found->name, latest) == 0;
    entry->complete = tr__checkpoint_verify(entry->path, TR_VERIFY_SIZES, NULL, NULL,
                                            &manifest, NULL) == TR_OK;
    for (int i = 0; entry->complete && i < manifest.count; i++) {
        entry->bytes += manifest.file[i].bytes;
    }
    return TR_OK;
}

tr_status tr_checkpoint_list(const char *out_folder, tr_checkpoint_entry **entries,
                             size_t *count, tr_error *err) {
    static const char own_name[] = "tr_checkpoint_list";
    tr_status given = tr__need(out_folder, own_name, "out_folder", err);
    given = given == TR_OK ? tr__need(entries, own_name, "entries", err) : given;
    given = given == TR_OK ? tr__need(count, own_name, "count", err) : given;
    if (given != TR_OK) {
        return given;
    }
    char folder[PATH_MAX], latest[TR_STEP_NAME_MAX] = "";
    tr_step_folder *list;
    size_t found;
    tr_status status = scan(out_folder, folder, &list, &found, err);
    *entries = NULL;
    *count = 0;
    if (status != TR_OK) {
        goto cleanup;
    }
    tr__link_read(folder, TR_LINK_LATEST, latest);
    *entries = tr__calloc(found, sizeof **entries);
    if (!*entries) {
        status = tr_fail(err, TR_MEMORY, "no memory to list %s", folder);
        goto cleanup;
    }
    for (size_t i = 0; status == TR_OK && i < found; i++) {
        status = fill_entry(folder, &list[i], latest, &(*entries)[i], err);
        *count = i + 1;
    }
    if (status != TR_OK) {
        tr_checkpoint_list_destroy(*entries, *count);
        *entries = NULL;
        *count = 0;
    }
cleanup:
    tr__free(list);
    return status;
}

void tr_checkpoint_list_destroy(tr_checkpoint_entry *entries, size_t count) {
    for (size_t i = 0; i < count; i++) {
        tr__free(entries[i].path);
    }
    tr__free(entries);
}

// A path where nothing is: a name on Hugging Face's hub?
static tr_status locate_name(const char *name, char *dst, size_t size, tr_error *err) {
    char folder[PATH_MAX];
    tr_status status = tr__hub_find_model(name, folder, err);
    size_t length = strlen(folder);
    if (status == TR_OK && (length == 0 || length >= size)) {
        bool named = tr__hub_is_name(name);
        status = tr_fail(err, TR_IO, "%s: no such file or folder%s%s", name,
                         named ? "; a model of this name on Hugging Face is downloaded "
                                 "with: hf download "
                               : "",
                         named ? name : "");
    }
    if (status == TR_OK) {
        memcpy(dst, folder, length + 1);
    }
    return status;
}

static tr_status refuse_folder(const char *path, tr_error *err) {
    char step[PATH_MAX];
    tr_status status = tr__deepspeed_locate(path, step, err);
    if (status == TR_OK && *step) {
        return tr_fail(err, TR_IO,
                       "%s: DeepSpeed saved this folder. Only a run goes on from it "
                       "(tranche train RUN.json --resume %s); a checkpoint of that run "
                       "is read here, too",
                       path, path);
    }
    return status == TR_OK
               ? tr_fail(err, TR_IO,
                         "%s: no model.safetensors, and no checkpoints folder with one "
                         "in it",
                         path)
               : status;
}

tr_status tr_checkpoint_locate(const char *path, char *dst, size_t size,
                               tr_error *err) {
    static const char own_name[] = "tr_checkpoint_locate";
    tr_status given = tr__need(path, own_name, "path", err);
    given = given == TR_OK ? tr__need(dst, own_name, "dst", err) : given;
    if (given != TR_OK) {
        return given;
    }
    struct stat info;
    char inner[PATH_MAX], latest[TR_STEP_NAME_MAX];
    size_t length = strlen(path);
    if (stat(path, &info) != 0 || length >= size) {
        return locate_name(path, dst, size, err);
    }
    if (!S_ISDIR(info.st_mode) || tr__tensor_folder(path)) {
        memcpy(dst, path, length + 1);
        return S_ISREG(info.st_mode) ? tr__gguf_refuse(path, err) : TR_OK;
    }
    tr_status status = tr__path_join(inner, sizeof inner, path, "state.json", err);
    if (status == TR_OK &&
        access(inner, F_OK) == 0) { // damaged: opening it will say so
        memcpy(dst, path, length + 1);
        return TR_OK;
    }
    if (status == TR_OK &&
        tr__link_read(path, TR_LINK_LATEST, latest)) { // <out>/checkpoints itself
        return tr__path_join(dst, size, path, latest, err);
    }
    if (status == TR_OK) {
        status =
            tr__checkpoint_find_latest(path, TR_VERIFY_SIZES, NULL, dst, size, err);
    }
    if (status == TR_OK && !*dst) {
        status = refuse_folder(path, err);
    }
    return status;
}

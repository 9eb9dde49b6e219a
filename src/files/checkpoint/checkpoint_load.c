#include "files/checkpoint/checkpoint.h"

#include "base/files.h"
#include "base/hash.h"
#include "base/memory.h"
#include "comm/alone.h"
#include "files/safetensors/adapter.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

static const char config_name[] = "config.json";
enum { CONFIG_MAX = 16 << 20 };

static tr_status check_size(const char *path, const tr_file_record *record,
                            tr_error *err) {
    struct stat info;
    if (stat(path, &info) != 0) {
        return tr_fail(err, TR_IO, "%s: damaged checkpoint: cannot open: %s", path,
                       strerror(errno));
    }
    if (!S_ISREG(info.st_mode) || info.st_size != record->bytes) {
        return tr_fail(err, TR_IO,
                       "%s: damaged checkpoint: %lld bytes, state.json says %" PRId64,
                       path, (long long)info.st_size, record->bytes);
    }
    return TR_OK;
}

static tr_status check_hash(const char *path, const tr_file_record *record,
                            tr_error *err) {
    uint64_t hash = 0;
    tr_status status = tr__hash_file(path, &hash, err);
    if (status == TR_OK && hash != record->hash) {
        status = tr_fail(err, TR_IO,
                         "%s: damaged checkpoint: hash %016" PRIx64
                         ", state.json says %016" PRIx64,
                         path, hash, record->hash);
    }
    return status;
}

// Is it in the manifest? other: another name that will do, or NULL.
static tr_status check_name(const char *folder, const tr_manifest *manifest,
                            const char *name, const char *other, tr_error *err) {
    return tr__manifest_find(manifest, name) ||
                   (other && tr__manifest_find(manifest, other))
               ? TR_OK
               : tr_fail(err, TR_IO, "%s: damaged checkpoint: state.json has no %s",
                         folder, name);
}

// A model's, or an adapter's.
static tr_tensor_files weights_of(const tr_manifest *manifest) {
    return tr__manifest_find(manifest, TR_ADAPTER_CONFIG) ? TR_FILES_ADAPTER
                                                          : TR_FILES_MODEL;
}

static tr_status check_names(const char *folder, const tr_manifest *manifest,
                             tr_error *err) {
    const tr_tensor_files kinds[] = {weights_of(manifest), TR_FILES_OPTIMIZER};
    tr_status status = check_name(folder, manifest, config_name, NULL, err);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && status == TR_OK; i++) {
        status = check_name(folder, manifest, tr__files_name(kinds[i]),
                            tr__files_index(kinds[i]), err);
    }
    return status;
}

// Sizes of all files first: a file cut short is found without reading any.
static tr_status check_files(const char *folder, const tr_manifest *manifest,
                             tr_verify verify, const tr_progress *progress,
                             tr_error *err) {
    char path[PATH_MAX];
    int64_t done = 0, total = 0;
    tr_status status = check_names(folder, manifest, err);
    for (int i = 0; status == TR_OK && i < manifest->count; i++) {
        status = tr__path_join(path, sizeof path, folder, manifest->file[i].name, err);
        if (status == TR_OK) {
            status = check_size(path, &manifest->file[i], err);
        }
        total += manifest->file[i].bytes;
    }
    for (int i = 0;
         status == TR_OK && verify == TR_VERIFY_HASHES && i < manifest->count; i++) {
        status = tr__path_join(path, sizeof path, folder, manifest->file[i].name, err);
        if (status == TR_OK) {
            status = check_hash(path, &manifest->file[i], err);
        }
        done += manifest->file[i].bytes;
        if (status == TR_OK && progress && progress->report) {
            progress->report(progress->user, done, total);
        }
    }
    return status;
}

tr_status tr__checkpoint_verify(const char *folder, tr_verify verify,
                                const tr_progress *progress, tr_state *state,
                                tr_manifest *manifest, tr_error *err) {
    char path[PATH_MAX];
    tr_state own_state;
    tr_manifest own_manifest;
    manifest = manifest ? manifest : &own_manifest;
    tr_status status = tr__path_join(path, sizeof path, folder, "state.json", err);
    if (status == TR_OK) {
        status = tr__state_read(path, state ? state : &own_state, manifest, err);
    }
    return status == TR_OK ? check_files(folder, manifest, verify, progress, err)
                           : status;
}

static tr_status read_config(tr_checkpoint *checkpoint, tr_error *err) {
    char path[PATH_MAX];
    size_t bytes = 0;
    tr_status status =
        tr__path_join(path, sizeof path, checkpoint->folder, config_name, err);
    if (status == TR_OK) {
        status = tr__file_read(path, CONFIG_MAX, &checkpoint->config, &bytes, err);
    }
    return status;
}

tr_status tr__checkpoint_open(const char *folder, tr_verify verify,
                              const tr_progress *progress, tr_checkpoint **out,
                              tr_error *err) {
    tr_checkpoint *checkpoint = tr__calloc(1, sizeof *checkpoint);
    char *name = tr__strdup(folder);
    if (!checkpoint || !name) {
        tr__free(checkpoint);
        tr__free(name);
        return tr_fail(err, TR_MEMORY, "no memory to open %s", folder);
    }
    checkpoint->folder = name;
    tr_status status = tr__checkpoint_verify(
        folder, verify, progress, &checkpoint->state, &checkpoint->manifest, err);
    if (status == TR_OK) {
        status = read_config(checkpoint, err);
    }
    if (status == TR_OK) {
        status = tr__tensor_set_open_files(folder, weights_of(&checkpoint->manifest),
                                           &checkpoint->model, err);
    }
    if (status == TR_OK) {
        status = tr__tensor_set_open_files(folder, TR_FILES_OPTIMIZER,
                                           &checkpoint->optimizer, err);
    }
    if (status != TR_OK) {
        tr__checkpoint_close(checkpoint);
        return status;
    }
    *out = checkpoint;
    return TR_OK;
}

// Tells a checkpoint from one of the same name elsewhere: a manifest has every file's
// hash. checkpoint: NULL when this rank could not open it.
static tr_status check_same(tr_comm *comm, const tr_checkpoint *checkpoint,
                            const char *folder, tr_error *err) {
    tr_manifest first = checkpoint ? checkpoint->manifest : (tr_manifest){0};
    tr_status status = tr__comm_broadcast(comm, 0, &first, sizeof first, err);
    if (status == TR_OK && checkpoint &&
        !tr__manifest_same(&first, &checkpoint->manifest)) {
        status = tr_fail(err, TR_IO,
                         "%s: this rank finds another checkpoint here than rank 0 "
                         "does: all ranks must share one file system",
                         folder);
    }
    return status;
}

tr_status tr__checkpoint_open_all(tr_comm *comm, const char *folder, tr_verify verify,
                                  const tr_progress *progress, tr_checkpoint **out,
                                  tr_error *err) {
    tr_checkpoint *mine = NULL;
    tr_error error = {0};
    tr_status status = TR_OK;
    if (tr__comm_leads(comm)) {
        status = tr__checkpoint_open(folder, verify, progress, &mine, &error);
    }
    status = tr__agree(comm, status, &error, err);
    if (status != TR_OK || !comm) {
        goto cleanup;
    }
    if (!tr__comm_leads(comm)) {
        status = tr__checkpoint_open(folder, TR_VERIFY_SIZES, NULL, &mine, &error);
    }
    tr_status same = check_same(comm, mine, folder, &error);
    status = tr__agree(comm, status == TR_OK ? same : status, &error, err);
cleanup:
    if (status != TR_OK) {
        tr__checkpoint_close(mine);
        return status;
    }
    *out = mine;
    return TR_OK;
}

void tr__checkpoint_close(tr_checkpoint *checkpoint) {
    if (!checkpoint) {
        return;
    }
    tr__tensor_set_close(checkpoint->optimizer);
    tr__tensor_set_close(checkpoint->model);
    tr__free(checkpoint->config);
    tr__free(checkpoint->folder);
    tr__free(checkpoint);
}

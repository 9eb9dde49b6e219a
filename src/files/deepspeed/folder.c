// The files of a step: of the model, of rank 0 or (ZeRO 3) of each rank, and of the
// optimizer of each rank.
#include "base/files.h"
#include "base/memory.h"
#include "base/text.h"
#include "files/deepspeed/inside.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const char model_end[] = "_model_states.pt",
                  optimizer_end[] = "_optim_states.pt";

// Moves *at behind `word`, if it begins with it.
static bool skip(const char **at, const char *word) {
    size_t length = strlen(word);
    bool there = strncmp(*at, word, length) == 0;
    *at += there ? length : 0;
    return there;
}

static bool skip_number(const char **at, int64_t *number) {
    const char *begin = *at;
    for (*number = 0; **at >= '0' && **at <= '9' && *at - begin < 9; ++*at) {
        *number = *number * 10 + (**at - '0');
    }
    return *at > begin;
}

// "mp_rank_00<end>", or "[bf16_]zero_pp_rank_<rank>_mp_rank_00<end>".
static bool read_name(const char *name, const char *end, int64_t *rank) {
    const char *at = name;
    *rank = 0;
    skip(&at, "bf16_");
    bool known =
        !skip(&at, "zero_pp_rank_") || (skip_number(&at, rank) && skip(&at, "_"));
    return known && skip(&at, "mp_rank_00") && strcmp(at, end) == 0;
}

static tr_status add_file(const tr_ds_folder *folder, tr_ds_files *files,
                          const char *name, int64_t rank, tr_error *err) {
    char path[PATH_MAX];
    tr_status status = tr__path_join(path, sizeof path, folder->path, name, err);
    if (status != TR_OK) {
        return status;
    }
    if (!tr__grow((void **)&files->file, &files->capacity, files->count + 1,
                  sizeof *files->file)) {
        return tr_fail(err, TR_MEMORY, "no memory to read %s", path);
    }
    tr_ds_file *file = &files->file[files->count];
    *file = (tr_ds_file){.path = tr__strdup(path), .rank = rank};
    if (!file->path) {
        return tr_fail(err, TR_MEMORY, "no memory to read %s", path);
    }
    files->count++;
    return TR_OK;
}

static tr_status take_name(tr_ds_folder *folder, const char *name, tr_error *err) {
    bool model = tr__ends_with(name, model_end);
    int64_t rank = 0;
    if (!model && !tr__ends_with(name, optimizer_end)) {
        return TR_OK;
    }
    if (!read_name(name, model ? model_end : optimizer_end, &rank)) {
        char why[NAME_MAX + 80];
        snprintf(why, sizeof why, "%s is of a model that is split over ranks", name);
        return tr__ds_unknown(folder, why, err);
    }
    return add_file(folder, model ? &folder->models : &folder->optimizers, name, rank,
                    err);
}

static int by_rank(const void *left, const void *right) {
    const tr_ds_file *a = left, *b = right;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

static tr_status sort(const tr_ds_folder *folder, tr_ds_files *files, tr_error *err) {
    if (files->count > 0) {
        qsort(files->file, files->count, sizeof *files->file, by_rank);
    }
    for (size_t i = 0; i < files->count; i++) {
        if (files->file[i].rank != (int64_t)i) {
            char why[120];
            snprintf(why, sizeof why, "has %s of rank %zu",
                     files->file[i].rank < (int64_t)i ? "two files" : "no file",
                     files->file[i].rank < (int64_t)i ? i - 1 : i);
            return tr__ds_unknown(folder, why, err);
        }
    }
    return TR_OK;
}

static tr_status list(tr_ds_folder *folder, tr_error *err) {
    DIR *entries = opendir(folder->path);
    const struct dirent *entry = NULL;
    if (!entries) {
        return tr_fail(err, TR_IO, "%s: cannot open: %s", folder->path,
                       strerror(errno));
    }
    tr_status status = TR_OK;
    while (status == TR_OK && (entry = readdir(entries)) != NULL) {
        status = take_name(folder, entry->d_name, err);
    }
    closedir(entries);
    status = status == TR_OK ? sort(folder, &folder->models, err) : status;
    return status == TR_OK ? sort(folder, &folder->optimizers, err) : status;
}

static tr_status open_all(tr_ds_folder *folder, tr_ds_files *files, bool verify,
                          tr_error *err) {
    tr_status status = TR_OK;
    for (size_t i = 0; i < files->count && status == TR_OK; i++) {
        tr_ds_file *file = &files->file[i];
        status = tr__torch_open(file->path, verify, &file->open, err);
        if (status == TR_OK) {
            file->root = tr__torch_root(file->open);
            status = tr__tensor_set_add_file(folder->out->tensors, file->path,
                                             &file->number, err);
        }
    }
    return status;
}

tr_status tr__ds_open_files(tr_ds_folder *folder, bool verify, tr_error *err) {
    tr_status status = list(folder, err);
    if (status == TR_OK && folder->models.count == 0) {
        status = tr__ds_unknown(folder, "it has no file of a model", err);
    }
    status = status == TR_OK ? open_all(folder, &folder->models, verify, err) : status;
    return status == TR_OK ? open_all(folder, &folder->optimizers, verify, err)
                           : status;
}

void tr__ds_close_files(tr_ds_files *files) {
    for (size_t i = 0; i < files->count; i++) {
        tr__free(files->file[i].path);
        tr__torch_close(files->file[i].open);
    }
    tr__free(files->file);
}

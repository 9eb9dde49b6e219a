#include "files/checkpoint/companions.h"

#include "base/files.h"
#include "base/hash.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 1 << 20 };

static const char tokenizer_json[] = "tokenizer.json";
static const char chat_template[] = "chat_template.jinja";

static const char *const of_tokenizer[] = {
    tokenizer_json,
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "vocab.txt",
    "tokenizer.model",
    "spiece.model",
    chat_template,
    "chat_template.json",
};
static const char *const of_model[] = {"generation_config.json"};

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

_Static_assert(COUNT_OF(of_tokenizer) + COUNT_OF(of_model) <= TR_COMPANIONS_MAX &&
                   TR_COMPANIONS_MAX + 4 <= TR_MANIFEST_FILES_MAX,
               "a checkpoint has room for all of them");

// What is not there is none; a link to a file is as good as one.
static tr_status add(tr_companions *all, const char *path, const char *name,
                     tr_error *err) {
    int file = -1;
    if (access(path, F_OK) != 0) {
        return TR_OK;
    }
    char *copy = tr__strdup(path);
    tr_status status = copy ? tr__file_open(path, O_RDONLY, &file, err)
                            : tr_fail(err, TR_MEMORY, "no memory for a path");
    if (status != TR_OK) {
        tr__free(copy);
        return status;
    }
    all->item[all->count].name = name;
    all->item[all->count].path = copy;
    all->item[all->count++].file = file;
    return TR_OK;
}

static tr_status add_all(tr_companions *all, const char *folder,
                         const char *const *names, size_t count, tr_error *err) {
    tr_status status = TR_OK;
    for (size_t i = 0; i < count && status == TR_OK; i++) {
        char path[PATH_MAX];
        status = tr__path_join(path, sizeof path, folder, names[i], err);
        if (status == TR_OK) {
            status = add(all, path, names[i], err);
        }
    }
    return status;
}

static bool is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

tr_status tr__companions_open(const char *tokenizer, const char *model,
                              tr_companions *out, tr_error *err) {
    const char *folder = tokenizer ? tokenizer : model;
    tr_status status = TR_OK;
    *out = (tr_companions){0};
    if (tokenizer && !is_folder(tokenizer)) {
        status = add(out, tokenizer, tokenizer_json, err);
    } else if (folder) {
        status = add_all(out, folder, of_tokenizer, COUNT_OF(of_tokenizer), err);
    }
    if (status == TR_OK && model) {
        status = add_all(out, model, of_model, COUNT_OF(of_model), err);
    }
    if (status != TR_OK) {
        tr__companions_close(out);
    }
    return status;
}

// Keeps the order of the others.
static void leave_out(tr_companions *all, const char *name) {
    int kept = 0;
    for (int i = 0; i < all->count; i++) {
        if (strcmp(all->item[i].name, name) != 0) {
            all->item[kept++] = all->item[i];
            continue;
        }
        close(all->item[i].file);
        tr__free(all->item[i].path);
    }
    all->count = kept;
}

tr_status tr__companions_set_template(tr_companions *companions, const char *path,
                                      tr_error *err) {
    leave_out(companions, chat_template);
    return add(companions, path, chat_template, err);
}

bool tr__companions_have(const tr_companions *companions, const char *name) {
    bool has = false;
    for (int i = 0; i < companions->count; i++) {
        has = has || strcmp(companions->item[i].name, name) == 0;
    }
    return has;
}

void tr__companions_close(tr_companions *companions) {
    for (int i = 0; i < companions->count; i++) {
        close(companions->item[i].file);
        tr__free(companions->item[i].path);
    }
    *companions = (tr_companions){0};
}

static tr_status copy_bytes(int from, const char *from_path, int to, const char *path,
                            int64_t bytes, tr_error *err) {
    char *piece = tr__calloc(1, PIECE);
    tr_status status =
        piece ? TR_OK : tr_fail(err, TR_MEMORY, "no memory to copy %s", from_path);
    for (int64_t at = 0; at < bytes && status == TR_OK; at += PIECE) {
        size_t here = (size_t)(bytes - at < PIECE ? bytes - at : PIECE);
        status = tr__pread(from, from_path, piece, here, at, err);
        if (status == TR_OK) {
            status = tr__pwrite(to, path, piece, here, at, err);
        }
    }
    tr__free(piece);
    return status;
}

tr_status tr__companion_copy(const tr_companions *companions, int index,
                             const char *folder, tr_file_record *record,
                             tr_error *err) {
    const char *name = companions->item[index].name;
    const char *from = companions->item[index].path;
    char path[PATH_MAX];
    struct stat info;
    int file = -1;
    if (fstat(companions->item[index].file, &info) != 0) {
        return tr_fail(err, TR_IO, "%s: cannot look at: %s", from, strerror(errno));
    }
    tr_status status = tr__path_join(path, sizeof path, folder, name, err);
    if (status == TR_OK) {
        status = tr__file_create(path, &file, err);
    }
    if (status != TR_OK) {
        return status;
    }
    status = copy_bytes(companions->item[index].file, from, file, path,
                        (int64_t)info.st_size, err);
    if (status == TR_OK && fsync(file) != 0) {
        status = tr_fail(err, TR_IO, "%s: cannot sync: %s", path, strerror(errno));
    }
    close(file);
    snprintf(record->name, sizeof record->name, "%s", name);
    record->bytes = (int64_t)info.st_size;
    return status == TR_OK ? tr__hash_file(path, &record->hash, err) : status;
}

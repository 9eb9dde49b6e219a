#include "data/text/text_files.h"

#include "data/sources/tell.h"

#include "base/hash.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

tr_status tr__text_files_open(const tr_data_options *options,
                              const tr_data_files *files, tr_joined *text,
                              tr_error *err) {
    tr_file_list list;
    tr_status status = tr__data_files_list(options, files, &list, err);
    return status == TR_OK ? tr__joined_open(text, &list, files->paths[0], 1, err)
                           : status;
}

tr_status tr__text_files_state(const tr_joined *text, uint64_t *state, tr_error *err) {
    *state = 0;
    for (size_t i = 0; i < text->files.count; i++) {
        const char *path = text->files.entry[i].path;
        struct stat info;
        if (stat(path, &info) != 0) {
            return tr_fail(err, TR_DATA, "%s: cannot open: %s", path, strerror(errno));
        }
        const int64_t numbers[] = {
            (int64_t)info.st_dev,          (int64_t)info.st_ino,
            (int64_t)info.st_size,         (int64_t)info.st_mtim.tv_sec,
            (int64_t)info.st_mtim.tv_nsec, (int64_t)info.st_ctim.tv_sec,
            (int64_t)info.st_ctim.tv_nsec};
        *state = tr__hash_more(*state, numbers, sizeof numbers);
    }
    return TR_OK;
}

tr_status tr__text_files_hash(const tr_data_options *options, const tr_joined *text,
                              uint64_t *key, tr_error *err) {
    tr_tell tell = tr__tell_begin(options);
    tr_status status = TR_OK;
    for (size_t i = 0; i < text->files.count && status == TR_OK; i++) {
        const tr_file_entry *entry = &text->files.entry[i];
        uint64_t numbers[] = {(uint64_t)entry->bytes, 0};
        status = tr__hash_file(entry->path, &numbers[1], err);
        *key = tr__hash_more(*key, numbers, sizeof numbers);
        tr__tell(&tell, "looking for changes in the text", text->start[i + 1],
                 tr__joined_count(text));
    }
    return status;
}

tr_status tr__text_files_check(const tr_joined *text, uint64_t state, const char *key,
                               tr_error *err) {
    uint64_t now = 0;
    tr_status status = tr__text_files_state(text, &now, err);
    if (status == TR_OK && now != state) {
        status = tr_fail(err, TR_DATA,
                         "%s: files were written to while they were tokenized; begin "
                         "again when nobody does",
                         key);
    }
    return status;
}

// Several files as one sequence of fixed-width entries, read at any place by pread.
#ifndef TR_DATA_SOURCES_JOINED_H
#define TR_DATA_SOURCES_JOINED_H

#include "data/sources/paths.h"

#include <tranche/status.h>

#include <stddef.h>
#include <stdint.h>

typedef struct tr_joined { // zero-initialized: closed
    tr_file_list files;
    int width;      // bytes of an entry
    int64_t *start; // [files.count + 1] entry at which each file begins
    int *file;      // [kept] the first files stay open, the others are opened to read
    size_t kept;
} tr_joined;

// Opens the files of `list`, each once to see that it can be read; takes the list over,
// also on failure, after which there is nothing to close. `path`: what was asked for,
// for messages. TR_DATA: a file that cannot be opened or is no whole number of entries,
// nothing but empty files.
tr_status tr__joined_open(tr_joined *joined, tr_file_list *list, const char *path,
                          int width, tr_error *err);
void tr__joined_close(tr_joined *joined);

int64_t tr__joined_count(const tr_joined *joined); // entries
int64_t tr__joined_bytes(const tr_joined *joined); // memory held

// dst: [count * width] bytes, entries first .. first + count - 1, which must exist.
// Safe to call from several threads.
tr_status tr__joined_read(const tr_joined *joined, int64_t first, int64_t count,
                          void *dst, tr_error *err);

// The file that holds `entry`, and the entry's number in it.
const char *tr__joined_locate(const tr_joined *joined, int64_t entry, int64_t *inner);

#endif

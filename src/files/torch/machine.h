// The machine that reads a pickle: bytes, a stack, a memory.
#ifndef TR_FILES_TORCH_MACHINE_H
#define TR_FILES_TORCH_MACHINE_H

#include "files/torch/inside.h"

typedef struct tr_pickle {
    tr_torch_file *file;
    const unsigned char *begin, *at, *end;
    tr_torch_value **stack; // a NULL is a mark
    size_t depth, capacity;
    tr_torch_value **memory;
    size_t remembered, room;
    bool stopped;
} tr_pickle;

// TR_IO: what is wrong, and where.
tr_status tr__pickle_damaged(const tr_pickle *m, const char *what, tr_error *err);
tr_status tr__pickle_no_memory(const tr_pickle *m, tr_error *err);

// The next bytes; a little-endian number of so many.
tr_status tr__pickle_take(tr_pickle *m, uint64_t bytes, const unsigned char **out,
                          tr_error *err);
tr_status tr__pickle_number(tr_pickle *m, int bytes, uint64_t *out, tr_error *err);

tr_status tr__pickle_push(tr_pickle *m, tr_torch_value *value, tr_error *err);
// TR_IO: there is none above the last mark.
tr_status tr__pickle_pop(tr_pickle *m, tr_torch_value **out, tr_error *err);
tr_status tr__pickle_top(const tr_pickle *m, tr_torch_value **out, tr_error *err);
// *at: of the first value behind the last mark.
tr_status tr__pickle_mark(const tr_pickle *m, size_t *at, tr_error *err);

// Remembers the top; pushes what is remembered.
tr_status tr__pickle_put(tr_pickle *m, uint64_t at, tr_error *err);
tr_status tr__pickle_get(tr_pickle *m, uint64_t at, tr_error *err);

#endif

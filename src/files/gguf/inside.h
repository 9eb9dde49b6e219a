// What the files that read a GGUF file share.
#ifndef TR_FILES_GGUF_INSIDE_H
#define TR_FILES_GGUF_INSIDE_H

#include "files/gguf/gguf.h"
#include "files/gguf/source.h"

struct tr_gguf {
    char *path;
    int file;
    tr_gguf_value *value;
    size_t value_count, value_capacity;
    tr_gguf_tensor *tensor;
    size_t tensor_count, tensor_capacity;
    const tr_gguf_tensor **by_name; // [tensor_count]
};

// Texts of a hostile file are cut in messages, and what cannot be printed is a '?'.
enum { TR_GGUF_SHOWN_MAX = 120 };
const char *tr__gguf_shown(char dst[TR_GGUF_SHOWN_MAX], const char *text);

// The metadata: `count` values. TR_IO names the key.
tr_status tr__gguf_take_values(tr_gguf *gguf, tr_gguf_source *source, uint64_t count,
                               tr_error *err);
// What is said of `count` tensors; their offsets are relative yet.
tr_status tr__gguf_take_tensors(tr_gguf *gguf, tr_gguf_source *source, uint64_t count,
                                tr_error *err);
// Makes offsets absolute, where the data begin at the next multiple of the alignment
// after `end`, and checks that all lie in the file and none over another.
tr_status tr__gguf_place_tensors(tr_gguf *gguf, int64_t end, int64_t size,
                                 tr_error *err);

#endif

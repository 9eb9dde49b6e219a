// A set of tensors that lie in files of another format, each in pieces: who reads that
// format makes the set, and everybody reads its tensors as those of any other.
#ifndef TR_FILES_SAFETENSORS_MADE_SET_H
#define TR_FILES_SAFETENSORS_MADE_SET_H

#include "files/safetensors/tensor_set.h"

typedef struct tr_tensor_piece {
    int64_t offset; // of its first byte in its file
    int64_t count;  // elements
    int file;       // of the set's
} tr_tensor_piece;

// An empty set; NULL: no memory.
tr_tensor_set *tr__tensor_set_make(void);
// Opens a file of the set, whose number is then *file. TR_IO, TR_MEMORY.
tr_status tr__tensor_set_add_file(tr_tensor_set *set, const char *path, int *file,
                                  tr_error *err);
// Adds a tensor: name, dtype and shape of `like`, all its elements in the pieces
// [count], in their order, which lie in their files. TR_MEMORY.
tr_status tr__tensor_set_add(tr_tensor_set *set, const tr_stored_tensor *like,
                             const tr_tensor_piece *pieces, size_t count,
                             tr_error *err);
// Once all are added, and before any is found. TR_IO: two have one name.
tr_status tr__tensor_set_sort(tr_tensor_set *set, tr_error *err);

#endif

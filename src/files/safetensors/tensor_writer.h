// Writes one safetensors file, from the tensors' own memory, in any order. Several
// processes may write their parts of one file: one creates it, the others join.
#ifndef TR_FILES_SAFETENSORS_TENSOR_WRITER_H
#define TR_FILES_SAFETENSORS_TENSOR_WRITER_H

#include "files/safetensors/header.h"

typedef struct tr_tensor_writer tr_tensor_writer;

// Creates the file (one of its name is replaced), reserves its whole size, so that a
// full disk is found before anything is written, and writes the header. TR_IO names the
// path.
tr_status tr__tensor_writer_create(const char *path, const tr_tensor_spec *tensors,
                                   size_t count, tr_tensor_writer **out, tr_error *err);

// Opens a file that another process has created for the same tensors, to write a part
// of it. TR_IO: not there, or of another size.
tr_status tr__tensor_writer_join(const char *path, const tr_tensor_spec *tensors,
                                 size_t count, tr_tensor_writer **out, tr_error *err);

// Index (into the specs given) of the file's i-th tensor. Writing in this order, front
// to back, lets the hash be taken on the way; any other order costs one more reading of
// the file at the end.
size_t tr__tensor_writer_order(const tr_tensor_writer *writer, size_t i);

// Elements [first, first + count) of tensor `index`; data: [count] of its dtype. Each
// element is to be written once.
tr_status tr__tensor_writer_put(tr_tensor_writer *writer, size_t index, int64_t first,
                                int64_t count, const void *data, tr_error *err);

// A range of the file's bytes and their XXH3 hash.
typedef struct tr_stretch {
    int64_t offset, bytes;
    uint64_t hash;
} tr_stretch;

tr_stretch tr__tensor_writer_header(const tr_tensor_writer *writer);
// Where tensor `index` begins in the file, and the size of the file.
int64_t tr__tensor_writer_offset(const tr_tensor_writer *writer, size_t index);
int64_t tr__tensor_writer_bytes(const tr_tensor_writer *writer);

// Puts what this process has written on the disk.
tr_status tr__tensor_writer_sync(tr_tensor_writer *writer, tr_error *err);

// Where one process wrote all: syncs the file, and gives its size and the XXH3 hash of
// all its bytes. TR_INTERNAL when not as many elements were written as there are.
tr_status tr__tensor_writer_finish(tr_tensor_writer *writer, int64_t *bytes,
                                   uint64_t *hash, tr_error *err);
void tr__tensor_writer_destroy(tr_tensor_writer *writer); // NULL-safe; keeps the file

#endif

// The header of numpy's .npy files (format versions 1, 2 and 3: NEP 1), read strictly.
#ifndef TR_DATA_SOURCES_NPY_HEADER_H
#define TR_DATA_SOURCES_NPY_HEADER_H

#include <tranche/status.h>
#include <tranche/types.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TR_NPY_RANK_MAX = 8 };

typedef struct tr_npy_array {
    tr_dtype dtype; // F32 F64 I8 U8 I16 U16 I32 U32 I64 U64
    int rank;
    int64_t dim[TR_NPY_RANK_MAX];
    int64_t offset; // of the data in the file, bytes
    int64_t count;  // elements
} tr_npy_array;

// Reads and checks the header of an open file. TR_DATA names what is wrong: no .npy
// file, a damaged header, an element type or order that is not taken (with the numpy
// call that converts it), a file shorter or longer than its header says.
tr_status tr__npy_header_read(int file, const char *path, tr_npy_array *out,
                              tr_error *err);

// Does the file begin with numpy's magic number?
bool tr__npy_is(const char *path);

#endif

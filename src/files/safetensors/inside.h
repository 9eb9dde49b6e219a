// Inside of a set of tensors.
#ifndef TR_FILES_SAFETENSORS_INSIDE_H
#define TR_FILES_SAFETENSORS_INSIDE_H

#include "base/quantized.h"
#include "files/safetensors/made_set.h"
#include "files/safetensors/tensor_set.h"

typedef struct tr_set_file {
    char *path;
    int descriptor;
} tr_set_file;

// Tensors that together are one in few bits, as bitsandbytes saves it.
typedef struct tr_tensor_bits {
    tr_quantization kind;
    tr_quantized_layout at;
    tr_stored_tensor codes, scales; // scales: of blocks, F32, or U8 with NF4_DOUBLE
    float *nested;                  // with NF4_DOUBLE as it lies there, then the mean
} tr_tensor_bits;

// Of a tensor that lies in pieces: which of the set's, in their order.
typedef struct tr_tensor_pieces {
    size_t begin, count;
} tr_tensor_pieces;

struct tr_tensor_set {
    tr_set_file *files;
    size_t file_count, file_capacity;
    tr_stored_tensor *tensors; // by name
    size_t count, capacity;
    json_t *metadata;
    tr_tensor_bits *joined; // a tensor's offset is -1 - the number of its own
    size_t joined_count, joined_capacity;
    // Of a set that another reader has made; a tensor's offset is the number of its
    // own.
    tr_tensor_pieces *pieced;
    size_t pieced_count, pieced_capacity;
    tr_tensor_piece *pieces;
    size_t piece_count, piece_capacity;
};

// The joined tensor that a tensor of the set is; NULL: it is stored as it is.
static inline const tr_tensor_bits *tr__tensor_bits(const tr_tensor_set *set,
                                                    const tr_stored_tensor *tensor) {
    return tensor->offset < 0 ? &set->joined[-1 - tensor->offset] : NULL;
}

// ---- join.c
// Makes one F32 tensor, in the set, of each one's parts. TR_IO: parts are missing, or
// do not fit together; another kind of bits than NF4.
tr_status tr__tensors_join(tr_tensor_set *set, tr_error *err);

// ---- bits.c
// Elements of it, as f32.
tr_status tr__tensor_bits_read(const tr_tensor_set *set, const tr_tensor_bits *joined,
                               int64_t first, int64_t count, float *dst, tr_error *err);
void tr__tensor_bits_release(tr_tensor_set *set);

// ---- made_set.c
// Elements of a tensor in pieces, as stored.
tr_status tr__tensor_pieces_read(const tr_tensor_set *set,
                                 const tr_stored_tensor *tensor, int64_t first,
                                 int64_t count, void *dst, tr_error *err);

// ---- tensor_list.c
int tr__tensor_by_name(const void *left, const void *right); // for qsort

#endif

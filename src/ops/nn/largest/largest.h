// The largest absolute value of a tensor, and those that the ranks of a group have
// found: what scales of 8 bits follow from where each rank has a part of the tensor
// (ops/nn/linear_fp8). The largest of all ranks' is that of the whole tensor. It is a
// number of the tensor, so no order of the ranks changes a bit. To gather what they
// have found takes one message; to reduce it by a maximum would take two.
#ifndef TR_OPS_NN_LARGEST_LARGEST_H
#define TR_OPS_NN_LARGEST_LARGEST_H

#include "base/half.h"

#include <tranche/extend/op.h>

typedef struct tr_largest_attr {
    uint32_t rows; // dimension 0 of x is that of samples, of which some may be missing
} tr_largest_attr;

// in:  x [...], of a real type
// out: [1] f32: the largest absolute value of what is there; infinity or NaN, if one of
// the numbers is
extern const tr_op tr__op_largest;

typedef struct tr_gather_largest_attr {
    uint32_t axes; // of the mesh (tr_axis), a bit for each: whose ranks the group are
    int32_t ranks, rank; // of the group
} tr_gather_largest_attr;

// in:  n tensors [1] f32, what this rank has found of n tensors
// out: [ranks, n] f32: the same of all ranks. The kernel writes row `rank`.
extern const tr_op tr__op_gather_largest;

// The larger of two absolute values, by their bits as f32, which have the order of the
// values, infinity and NaN last.
TR_DEVICE static inline uint32_t tr__larger_bits(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

// The bits of the largest absolute value of x [count], one after the other.
static inline uint32_t tr__largest_bits(const float *x, int64_t count) {
    uint32_t largest = 0;
    for (int64_t i = 0; i < count; i++) {
        largest = tr__larger_bits(largest, tr__f32_bits(x[i]) & 0x7FFFFFFF);
    }
    return largest;
}

// Elements of x that are there.
static inline int64_t tr__largest_there(const tr_op_desc *desc,
                                        const tr_launch *launch) {
    const tr_largest_attr *attr = (const void *)desc->attr;
    int64_t count = tr_shape_count(desc->in[0].shape);
    int64_t samples = desc->in[0].shape.dim[0];
    int64_t there =
        attr->rows && launch->run->rows < samples ? launch->run->rows : samples;
    return count / samples * there;
}

// Where the kernel of tr__op_gather_largest puts what it has found: element `first` on.
static inline int64_t tr__gather_largest_first(const tr_op_desc *desc) {
    const tr_gather_largest_attr *attr = (const void *)desc->attr;
    return (int64_t)attr->rank * desc->in_count;
}

// The largest of column `column` of what was gathered: told [ranks, n]; its bits.
static inline uint32_t tr__largest_told(const float *told, const tr_tensor_desc *desc,
                                        int column) {
    uint32_t largest = 0;
    for (int64_t r = 0; r < desc->shape.dim[0]; r++) {
        float its = told[r * desc->shape.dim[1] + column];
        largest = tr__larger_bits(largest, tr__f32_bits(its));
    }
    return largest;
}

#endif

// What the shape rules and kernels of many ops ask of their operands.
#ifndef TR_OPS_OPERAND_H
#define TR_OPS_OPERAND_H

#include "base/stride.h"

#include <tranche/extend/op.h>

enum { TR_SHAPE_TEXT = 128 };

// "[B, 64, 768]" into dst [TR_SHAPE_TEXT]; returns dst.
char *tr__shape_text(tr_shape shape, char *dst);

// ---- in shape rules. Errors are TR_USAGE (a model that does not fit together) and
// name the op, the operand and its shape.

// The node has `least` to `most` inputs.
tr_status tr__operand_count(const tr_op_node *node, int least, int most, tr_error *err);
// Input i is there, of that dtype, of rank 1 or more, with no empty dimension; the
// first may be TR_BATCH.
tr_status tr__operand_dtype(const tr_op_node *node, int i, tr_dtype dtype,
                            tr_error *err);
// The same, of a type that activations and weights may have: f32, bf16 or f16.
tr_status tr__operand_real(const tr_op_node *node, int i, tr_error *err);
// Input i is as above and of that shape.
tr_status tr__operand_shape(const tr_op_node *node, int i, tr_dtype dtype,
                            tr_shape shape, tr_error *err);
// Shape rules (tr_op.infer) of the next one, for ops of one input and of two.
tr_status tr__infer_as_input(const tr_op_node *node, tr_tensor_desc *out,
                             int *out_count, tr_error *err);
tr_status tr__infer_as_inputs(const tr_op_node *node, tr_tensor_desc *out,
                              int *out_count, tr_error *err);
// Shape rules of losses, behind a check of the node that has come to `checked`: their
// sums; the gradient of input 0, and the sums; input 0 in f32, as logits. Each returns
// what the check has.
extern const tr_tensor_desc tr__loss_sums;
tr_status tr__infer_loss(tr_status checked, tr_tensor_desc *out, int *out_count);
tr_status tr__infer_loss_backward(const tr_op_node *node, tr_status checked,
                                  tr_tensor_desc *out, int *out_count);
tr_status tr__infer_logits(const tr_op_node *node, tr_status checked,
                           tr_tensor_desc *out, int *out_count);
// A shape rule: every one of the node's `count` inputs is of one real type and one
// shape, and so is its only output.
tr_status tr__operand_same(const tr_op_node *node, int count, tr_tensor_desc *out,
                           int *out_count, tr_error *err);

// What the gradient of a parameter that is used as this tensor is: f32, whatever the
// parameter's own type.
static inline tr_tensor_desc tr__param_gradient(tr_tensor_desc param) {
    return (tr_tensor_desc){param.dtype == TR_NONE ? TR_NONE : TR_F32, param.shape};
}

// ---- in splits (tr_op.split)

// Parts differ by one element at most, and the first ranks have the larger ones: the
// first element of a rank's part of so many, and how many it has.
static inline int64_t tr__cut_first(int64_t elements, int64_t ranks, int64_t rank) {
    int64_t more = elements % ranks;
    return elements / ranks * rank + (rank < more ? rank : more);
}
static inline int64_t tr__cut_count(int64_t elements, int64_t ranks, int64_t rank) {
    return elements / ranks + (rank < elements % ranks);
}

// Every rank has all of it; cut along a dimension, in whatever blocks.
static inline tr_cut tr__uncut(void) {
    return (tr_cut){.dim = -1};
}
static inline tr_cut tr__cut_along(int dim) {
    return (tr_cut){.dim = dim};
}
// Along the last dimension of a tensor.
static inline tr_cut tr__cut_last(const tr_tensor_desc *desc) {
    return tr__cut_along(desc->shape.rank - 1);
}
// One more block, of so many elements; none: nothing is added. repeat: see tr_cut.
static inline void tr__cut_add_repeated(tr_cut *cut, int64_t elements, int64_t repeat) {
    if (elements > 0) {
        cut->repeat[cut->blocks] = repeat;
        cut->block[cut->blocks++] = elements;
    }
}
static inline void tr__cut_add(tr_cut *cut, int64_t elements) {
    tr__cut_add_repeated(cut, elements, 0);
}
// How many ranks share a head of so many; 1: each has heads of its own; 0: they cannot
// share them out.
static inline int64_t tr__cut_sharers(int64_t heads, int64_t ranks) {
    return heads % ranks == 0 ? 1 : heads > 0 && ranks % heads == 0 ? ranks / heads : 0;
}
// The rank's part of a block that is so often repeated (0: as 1).
static inline int64_t tr__cut_own_first(int64_t elements, int64_t repeat, int64_t ranks,
                                        int64_t rank) {
    int64_t each = repeat > 1 ? repeat : 1;
    return tr__cut_first(elements, ranks / each, rank / each);
}
static inline int64_t tr__cut_own_count(int64_t elements, int64_t repeat, int64_t ranks,
                                        int64_t rank) {
    int64_t each = repeat > 1 ? repeat : 1;
    return tr__cut_count(elements, ranks / each, rank / each);
}
// A dimension of a tensor that is cut: its blocks, and elements that each of its places
// has. So many parts of it, each of which has a part of every block.
typedef struct tr_division {
    int64_t blocks, block[TR_CUT_BLOCKS_MAX], inner;
} tr_division;

// Which elements of the tensor are in a part, and how many are of every such dimension.
tr_stride tr__division_lies(const tr_division *of, int64_t parts, int64_t part);
int64_t tr__division_part(const tr_division *of, int64_t parts, int64_t part);
int64_t tr__division_all(const tr_division *of);
// Along the tokens (tr_cut.tokens).
static inline tr_cut tr__cut_tokens(void) {
    return (tr_cut){.dim = 1, .tokens = true};
}
// One more range of output 0's last dimension, of which these inputs (bits) are along
// their last dimensions: in one block, or as output 0 where it is all of that.
void tr__split_range(const tr_op_node *node, tr_split *out, int64_t first,
                     int64_t count, uint32_t inputs);
// Can the ranks share out the tokens of this tensor, [B, tokens, ...]?
bool tr__has_tokens(const tr_tensor_desc *desc, int64_t ranks);
// Of an op that works on one row of each operand at a time: operands of two and more
// dimensions are cut along the tokens; of all others each rank has a part of the
// gradient. false: ranks cannot share the tokens of the first input.
bool tr__split_tokens(const tr_op_node *node, int64_t ranks, tr_split *out);
// Of an op that works on one element of each operand at a time: all are cut along the
// last dimension (way 0), or along the tokens (way 1).
bool tr__split_elements(const tr_op_node *node, int way, int64_t ranks, int64_t rank,
                        tr_split *out);

// ---- in kernels

// What a library that was called came to: the launch's failure is the first that is not
// TR_OK.
static inline void tr__launch_note(const tr_launch *launch, tr_status status) {
    if (status != TR_OK && launch->failed && *launch->failed == TR_OK) {
        *launch->failed = status;
    }
}

// Is every operand that is there f32, but indices (I32)?
bool tr__desc_f32(const tr_op_desc *desc);
// Is every operand that is there of type `real`, but indices, inputs with a bit in
// `plain_in` and results with one in `plain_out`, which are f32?
bool tr__desc_real(const tr_op_desc *desc, tr_dtype real, uint32_t plain_in,
                   uint32_t plain_out);
// The same, `real` being the type of input 0: f32, bf16 or f16.
bool tr__desc_same_real(const tr_op_desc *desc, uint32_t plain_in, uint32_t plain_out);
// Every operand moved once, and `flops` for each element of out[0] (in[0] where out[0]
// is left out).
void tr__desc_cost(const tr_op_desc *desc, double flops, tr_cost *cost);

// `count` products of this shape, and their operations.
static inline void tr__cost_products(tr_cost *cost, int64_t rows, int64_t columns,
                                     int64_t depth, int count) {
    cost->rows = (double)rows;
    cost->columns = (double)columns;
    cost->depth = (double)depth;
    cost->model = 2 * cost->rows * cost->columns * cost->depth * count;
    cost->flops = cost->model;
}

// Rows of a micro-batch of `rows` that are there; those after them are missing.
static inline int64_t tr__rows_there(const tr_launch *launch, int64_t rows) {
    return launch->run->rows < rows ? launch->run->rows : rows;
}

// The shape without its last dimension.
static inline tr_shape tr__shape_lead(tr_shape shape) {
    shape.rank--;
    shape.dim[shape.rank] = 0;
    return shape;
}

static inline int64_t tr__shape_width(tr_shape shape) {
    return shape.rank ? shape.dim[shape.rank - 1] : 1;
}

// Rows of `tr__shape_width` elements, of a concrete shape.
static inline int64_t tr__shape_rows(tr_shape shape) {
    return shape.rank ? tr_shape_count(tr__shape_lead(shape)) : 1;
}

#endif

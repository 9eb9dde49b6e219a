// Parts of a tensor become one. The micro-batches of a wave, and its ranks, add up
// parts of their own (tr_op.wave_outputs); what they come to is found by the rule of
// the op whose output the tensor is, part after part, always in the same order.
//
// Parts lie in the rows of a block, all at the same place of their rows; other tensors
// may lie beside them.
#ifndef TR_OPS_FLAT_MERGE_MERGE_H
#define TR_OPS_FLAT_MERGE_MERGE_H

#include <tranche/extend/op.h>

typedef struct tr_merge_attr {
    const tr_op *of; // whose merge rule; NULL, or an op without one: parts are added
    int64_t first;   // where a part begins in its row
    tr_shape shape;  // of a part
} tr_merge_attr;

// in:  block [rows, width] f32 or f64
// out: the tensor, of `shape`: = the first row's part, with which those of the other
//      rows are merged; or += all of them, which are merged with what is there
extern const tr_op tr__op_merge;

typedef struct tr_pack_attr {
    int64_t first, count; // columns
} tr_pack_attr;

// Brings together what is exchanged: some columns of a block.
// in:  block [rows, width] of any type that is not 16 bits
// out: [rows, count], its columns [first, first + count)
extern const tr_op tr__op_pack;

#endif

// Sums over the ranks of a group, inside of a unit. The kernels of both ops copy;
// behind that of all_reduce the plan exchanges the result, where it lies
// (plan/passes/exchange.c). In a group of one rank nothing is exchanged.
//
// The two are each other's adjoints, as in Megatron-LM (Shoeybi et al., arXiv
// 1909.08053, section 3): where each rank has a part of a sum, what follows it is the
// same on all ranks, and so is its gradient; where all ranks work with one tensor, each
// has a part of that tensor's gradient.
#ifndef TR_OPS_NN_ALL_REDUCE_ALL_REDUCE_H
#define TR_OPS_NN_ALL_REDUCE_ALL_REDUCE_H

#include <tranche/extend/op.h>

typedef struct tr_all_reduce_attr {
    uint32_t axes; // of the mesh (tr_axis), a bit for each: the group is the ranks that
                   // differ on these alone
} tr_all_reduce_attr;

// in: x, any shape and real type: this rank's part of the sum
// out: y, as x: the sum of x over the ranks of the group. Gradient of x: that of y
extern const tr_op tr__op_all_reduce;

// in: x, any shape and real type, the same on all ranks of the group; no parameter
// out: y = x. Gradient of x: the sum of that of y over the ranks of the group
extern const tr_op tr__op_all_reduce_gradient;

#endif

// Which kernel runs an op.
#ifndef TR_OPS_KERNEL_H
#define TR_OPS_KERNEL_H

#include <tranche/op.h>

// The best kernel for the description, as desc->isa allows: one for the format of its
// tensors, else, where some have 16 bits, tr__widened; NULL: none supports it.
const tr_kernel *tr__kernel_choose(const tr_op_desc *desc);

// Runs an op on copies of its 16-bit operands in f32, in the workspace, by the kernel
// chosen for f32, and rounds the results once: what no kernel is written for. It is
// also the reference for the 16-bit formats; what its recompute rule makes again may
// differ by the rounding of what the forward kept.
extern const tr_kernel tr__widened;

#endif

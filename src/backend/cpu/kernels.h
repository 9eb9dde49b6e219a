// The kernels of the CPU backend, and which of them runs an op.
#ifndef TR_BACKEND_CPU_KERNELS_H
#define TR_BACKEND_CPU_KERNELS_H

#include "backend/cpu/isa.h"

#include <tranche/extend/op.h>

enum { TR_CPU_HALVES = 3 };

// The kernels of one op, by instruction set; where one is NULL, or does not support
// what is asked for, the next lower set's is tried, then the op's reference.
typedef struct tr_cpu_kernels {
    const tr_op *op;
    const tr_kernel *f32[TR_ISA_COUNT];
    // For tensors of a 16-bit format: by the processor's products of bf16, in bf16, in
    // f16. The first row that has one for the description wins. Where none has:
    // tr__widened.
    const tr_kernel *half[TR_CPU_HALVES][TR_ISA_COUNT];
    // The same of kernels that inferences alone use: they are tried first.
    const tr_kernel *asked_f32[TR_ISA_COUNT];
    const tr_kernel *asked_half[TR_CPU_HALVES][TR_ISA_COUNT];
} tr_cpu_kernels;

// One list for each folder src/ops/<kind>/<op> with a file cpu_kernels.c, which defines
// it as `const tr_cpu_kernels tr__cpu_kernels_<op>[]`, ended by a row without an op;
// the lists end with NULL. cmake/kernel_lists.cmake writes this array.
extern const tr_cpu_kernels *const tr__cpu_kernel_lists[];

// The row of an op; NULL: it has no kernels but its reference.
const tr_cpu_kernels *tr__cpu_kernels_of(const tr_op *op);
// The best kernel of a row's table, and of an op whose operands are not of 16 bits.
const tr_kernel *tr__cpu_kernel_of(const tr_kernel *const table[TR_ISA_COUNT],
                                   const tr_op_desc *desc);
const tr_kernel *tr__cpu_kernel_f32(const tr_op_desc *desc);
// The best kernel for the description, up to the instruction set desc->target.level;
// NULL: none supports it.
const tr_kernel *tr__cpu_kernel(const tr_op_desc *desc);

// Runs an op on copies of its 16-bit operands in f32, in the workspace, by the kernel
// chosen for f32, and rounds the results once: what no kernel is written for. It is
// also the reference for the 16-bit formats; what its recompute rule gives may
// differ by the rounding of what the forward kept.
extern const tr_kernel tr__widened;

#endif

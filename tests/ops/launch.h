// Runs one op by one of its kernels, for tests of single ops.
#ifndef TESTS_OPS_LAUNCH_H
#define TESTS_OPS_LAUNCH_H

#include <tranche/op.h>

// Kernel `which` of an op that this processor can run: 0 the reference, then the
// instruction sets'. NULL after the last.
const tr_kernel *test_kernel(const tr_op *op, int which);

// Prepares, launches and releases; the workspace comes from malloc and starts as NaNs.
// Fails the test when the kernel does not support `desc`. run: NULL for all zero.
void test_launch(const tr_kernel *kernel, const tr_op_desc *desc,
                 const tr_launch *launch);

#endif

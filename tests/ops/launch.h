// Runs one op by one of its kernels, for tests of single ops.
#ifndef TESTS_OPS_LAUNCH_H
#define TESTS_OPS_LAUNCH_H

#include <tranche/extend/op.h>

// Kernel `which` of an op that this processor can run: 0 the reference, then the
// instruction sets'. NULL after the last.
const tr_kernel *test_kernel(const tr_op *op, int which);

// Prepares, launches and releases; the workspace starts as NaNs, and nothing around it
// may be touched. Fails the test when the kernel does not support `desc`. run: NULL for
// all zero.
void test_launch(const tr_kernel *kernel, const tr_op_desc *desc,
                 const tr_launch *launch);

// Launches what is prepared, and waits until it is done. Where a queue fails,
// launch->failed says so; NULL: the test does.
void test_launch_prepared(const tr_kernel *kernel, const tr_op_desc *desc, void *state,
                          const tr_launch *launch);

// For a group of tests: opens a backend's first device; memory of tests is the host's
// that it reaches. 0; else it prints why not.
int test_open_backend(tr_backend_id id);

#endif

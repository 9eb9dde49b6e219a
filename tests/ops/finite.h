// Gradients by finite differences, to judge the reference's backward.
#ifndef TESTS_OPS_FINITE_H
#define TESTS_OPS_FINITE_H

#include "ops/node.h"

// Elements of a gradient that are tried, spread over the tensor.
enum { TEST_FINITE_TRIED = 24 };

// max |gradient - central difference| over the tried elements of input i, where the
// gradient is in node->grad_in[i], of the projection of all outputs on the random
// gradients that test_node_backward started from with `given` (of a loss: of
// loss_seed * sum). By reference kernels. The outputs are left as the last run made
// them.
double test_finite_distance(test_node *node, int i);

#endif

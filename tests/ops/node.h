// One node of a graph with its values and gradients: runs its op, its recompute rule
// and its backward rules as a graph would.
#ifndef TESTS_OPS_NODE_H
#define TESTS_OPS_NODE_H

#include "ops/apply.h"

// One element that has another value than the case says: of an input, or of the
// gradient of an output that the backward starts from.
typedef struct test_spot {
    bool there, of_gradient;
    int operand;
    int64_t element;
    double value;
} test_spot;

typedef struct test_node {
    const tr_case *the_case;
    const char *broken; // the first thing that a launch did wrong, NULL: nothing
    int out_count;
    test_tensor in[TR_OP_IN_MAX], out[TR_OP_OUT_MAX];
    test_tensor grad_in[TR_OP_IN_MAX], grad_out[TR_OP_OUT_MAX];
    test_tensor temp[TR_OP_TEMPS_MAX];
    test_spot spot; // test_node_put_spot
} test_node;

// Fills the inputs. Fails the test when the shape rule refuses the case.
void test_node_open(test_node *node, const tr_case *the_case);
// A node of the same case, with its inputs and outputs copied.
void test_node_open_like(test_node *node, const test_node *from);
void test_node_close(test_node *node);
// Before the forward. Nodes that are opened like this one have the spot, too.
void test_node_put_spot(test_node *node, test_spot spot);

// The op itself, all outputs from nothing (a loss's sums: from a base).
void test_node_forward(test_node *node, const test_way *way);
// The recompute rule. Bit i of the result: output i is cheap and came from the rule
// alone; 0 when nothing is cheap.
uint32_t test_node_recompute(test_node *node, const test_way *way);
// All backward rules, from random gradients of the outputs. base: [in_count], how large
// the values are that gradients of inputs start from when way->accumulate (NULL: 1).
void test_node_backward(test_node *node, const test_way *way, const double *base);
// Its two parts: between them the gradients of outputs may be given other values.
void test_node_start_backward(test_node *node, const test_way *way, const double *base);
void test_node_run_backward(test_node *node, const test_way *way);

// Bit i: some rule writes the gradient of input i.
uint32_t test_node_grads_written(const test_node *node);
// Bit i: some rule needs the gradient of output i before any has written it.
uint32_t test_node_grads_read(const test_node *node);
// Bit i: some rule reads or writes the gradient of output i.
uint32_t test_node_grads_used(const test_node *node);
// The random gradient of output i that test_node_backward starts from.
void test_node_grad_start(const test_node *node, int i, test_tensor *grad);

// The node as rules see it; in and out are the descriptors' place.
tr_op_node test_node_symbolic(const test_node *node, tr_tensor_desc in[TR_OP_IN_MAX],
                              tr_tensor_desc out[TR_OP_OUT_MAX]);

#endif

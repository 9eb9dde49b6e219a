// Where gradients of weights stand in a backward in which ranks exchange.
#include "base/memory.h"
#include "comm/mesh.h"
#include "graph/derived_unit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static tr_value split_product(tr_graph *g, tr_value x, const char *name) {
    return project(g, tr_all_reduce_gradient(g, x, TR_ON_TENSOR), name);
}

// The feed-forward half of a block of which each rank has a part.
static void build_split_block(tr_graph *g) {
    tr_value x = x0(g), n = norm(g, x, "a", "b");
    tr_value h = tr_gelu(g, split_product(g, n, "up"), true);
    tr_value sum = tr_all_reduce(g, project(g, h, "down"), TR_ON_TENSOR);
    tr_graph_output(g, tr_residual(g, x, sum, 0));
}

// The gradient of the weight whose input's gradient ranks sum is made meanwhile, and
// what is made again for it alone; that of the other weight stays where it was.
static void weights_go_behind_the_exchange_of_their_input(void **state) {
    (void)state;
    assert_backward(build_split_block, 1,
                    // n0 norm, n1 its exchange, n2 up, n3 gelu, n4 down, n5 its sum
                    "gelu(n2 -> n3)\n"
                    "linear_backward_weight(dn6 n3 -> ?dp3)\n"
                    "linear_backward_input(dn6 p3 -> dn3)\n"
                    "gelu_backward(dn3 n2 -> dn2)\n"
                    "linear_backward_input(dn2 p2 -> dn1)\n"
                    "all_reduce(dn1 -> dn0)\n"
                    "linear_backward_weight(dn2 n1 -> ?dp2)\n"
                    "layer_norm(i0 p0 p1 -> n0 n0.1 n0.2)\n"
                    "layer_norm_backward(dn0 i0 n0.1 n0.2 p0 -> +dn6 ?dp0 ?dp1)\n",
                    "n1 n2", "n0 n0.1 n0.2 n3", true);
}

// Two products of one input, whose parts of its gradient are one sum.
static void build_split_pair(tr_graph *g) {
    tr_value x = tr_all_reduce_gradient(g, tr_relu(g, x0(g)), TR_ON_TENSOR);
    tr_value a = project(g, x, "a"), b = project(g, x, "b");
    tr_graph_output(g, tr_multiply(g, a, b));
}

static void all_weights_of_a_sum_go_behind_its_exchange(void **state) {
    (void)state;
    assert_backward(build_split_pair, 1,
                    "multiply(dn4 n3 -> dn2)\n"
                    "multiply(dn4 n2 -> dn3)\n"
                    "linear_backward_input(dn3 p1 -> dn1)\n"
                    "linear_backward_input(dn2 p0 -> +dn1)\n"
                    "all_reduce(dn1 -> dn0)\n"
                    "linear_backward_weight(dn3 n1 -> ?dp1)\n"
                    "linear_backward_weight(dn2 n1 -> ?dp0)\n"
                    "relu_backward(dn0 n0 -> di0)\n",
                    "n0 n1 n2 n3", "", false);
}

// The weight is also that of a product before the exchange, whose part of its gradient
// comes first as ever.
static void build_split_twice(tr_graph *g) {
    tr_value w = weight(g, "w");
    tr_value x = tr_all_reduce_gradient(g, x0(g), TR_ON_TENSOR);
    tr_value a = tr_linear(g, TR_LINEAR_OUT_IN, x, w, TR_NO_VALUE);
    tr_graph_output(g, tr_linear(g, TR_LINEAR_OUT_IN, a, w, TR_NO_VALUE));
}

static void parts_of_a_gradient_keep_their_order(void **state) {
    (void)state;
    assert_backward(build_split_twice, 1,
                    "linear_backward_weight(dn2 n1 -> ?dp0)\n"
                    "linear_backward_input(dn2 p0 -> dn1)\n"
                    "linear_backward_input(dn1 p0 -> dn0)\n"
                    "all_reduce(dn0 -> di0)\n"
                    "linear_backward_weight(dn1 n0 -> +dp0)\n",
                    "n0 n1", "", false);
}

static void every_missing_allocation_is_an_error(void **state) {
    (void)state;
    int failures = 0;
    tr_status status = TR_MEMORY;
    for (; status != TR_OK; failures++) {
        derived_unit unit;
        tr__memory_fail_at(failures + 1);
        make(&unit, build_split_block, 1);
        tr__memory_fail_at(0);
        status = unit.status;
        assert_true(status == TR_OK || status == TR_MEMORY);
        clear(&unit);
    }
    assert_true(failures > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_go_behind_the_exchange_of_their_input),
        cmocka_unit_test(all_weights_of_a_sum_go_behind_its_exchange),
        cmocka_unit_test(parts_of_a_gradient_keep_their_order),
        cmocka_unit_test(every_missing_allocation_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

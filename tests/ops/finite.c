#include "ops/finite.h"

#include "base/slope.h"

#include <math.h>

static double project(const test_node *node, test_tensor *weights) {
    double sum = 0;
    if (node->the_case->op->flags & TR_OP_LOSS) {
        const double *sums = node->out[0].memory.data; // [TR_SUMS]
        return test_context.loss_seed * sums[TR_SUM_LOSS];
    }
    for (int i = 0; i < node->out_count; i++) {
        if (weights[i].desc.dtype != TR_NONE) {
            int64_t count = tr_shape_count(weights[i].desc.shape);
            for (int64_t j = 0; j < count; j++) {
                sum +=
                    test_tensor_at(&weights[i], j) * test_tensor_at(&node->out[i], j);
            }
        }
    }
    return sum;
}

// The node as a function of one of its inputs.
typedef struct function {
    test_node *node;
    test_tensor *x, *weights;
} function;

static double value(void *of) {
    const test_way reference = {.isa = -1};
    function *f = of;
    test_node_forward(f->node, &reference);
    return project(f->node, f->weights);
}

static double get(void *of, int64_t i) {
    return test_tensor_at(((function *)of)->x, i);
}

static void put(void *of, int64_t i, double x) {
    test_tensor_put(((function *)of)->x, i, x);
}

double test_finite_distance(test_node *node, int i) {
    test_tensor weights[TR_OP_OUT_MAX] = {0};
    uint32_t used = test_node_grads_used(node);
    for (int o = 0; o < node->out_count; o++) {
        if (used & 1u << o) {
            test_node_grad_start(node, o, &weights[o]);
        }
    }
    int64_t count = tr_shape_count(node->in[i].desc.shape);
    int64_t tried = count < TEST_FINITE_TRIED ? count : TEST_FINITE_TRIED;
    double largest = 0;
    function of = {node, &node->in[i], weights};
    tr_slope_function f = {&of, value, get, put};
    for (int64_t k = 0; k < tried; k++) {
        int64_t j = k * count / tried;
        double wrong = fabs(tr__slope(&f, j) - test_tensor_at(&node->grad_in[i], j));
        largest = isnan(wrong) || wrong > largest ? wrong : largest;
    }
    for (int o = 0; o < node->out_count; o++) {
        test_tensor_give(&weights[o]);
    }
    return largest;
}

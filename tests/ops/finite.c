#include "ops/finite.h"

#include <math.h>

// Exact in f32; the error of the difference quotient, step^2 / 6 of the third
// derivative, is then near that of the rounding of f32 outputs, 2^-24 / step.
static const double step = 0x1p-7;

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

// The slope along element `j` of `x`, one of the node's inputs.
static double slope(test_node *node, test_tensor *x, int64_t j, test_tensor *weights) {
    const test_way reference = {.isa = -1};
    double value = test_tensor_at(x, j);
    test_tensor_put(x, j, value + step);
    double up = test_tensor_at(x, j);
    test_node_forward(node, &reference);
    double above = project(node, weights);
    test_tensor_put(x, j, value - step);
    double down = test_tensor_at(x, j);
    test_node_forward(node, &reference);
    double below = project(node, weights);
    test_tensor_put(x, j, value);
    return (above - below) / (up - down);
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
    for (int64_t k = 0; k < tried; k++) {
        int64_t j = k * count / tried;
        double wrong = fabs(slope(node, &node->in[i], j, weights) -
                            test_tensor_at(&node->grad_in[i], j));
        largest = isnan(wrong) || wrong > largest ? wrong : largest;
    }
    for (int o = 0; o < node->out_count; o++) {
        test_tensor_give(&weights[o]);
    }
    return largest;
}

// Products of 8 bits: by hand where every number is exact, and, for numbers that are
// not, as the products of `linear` of factors that this file rounds itself. Its rules.
#include "backend/cpu/kernels.h"
#include "ops/launch.h"
#include "ops/nn/largest/largest.h"
#include "ops/nn/linear_fp8/linear_fp8.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 3, IN = 5, OUT = 4 };

static tr_op_desc desc_of(const tr_op *op, tr_tensor_desc a, tr_tensor_desc b,
                          tr_tensor_desc c) {
    tr_linear_attr attr = {TR_WEIGHT_OUT_IN, TR_ACTIVATION_NONE};
    tr_op_desc desc = {.op = op,
                       .in_count = 2,
                       .in = {a, b},
                       .out_count = 1,
                       .out = {c},
                       .fresh = 1,
                       .target = {.level = (int)tr__cpu_isa(), .workers = 2}};
    memcpy(desc.attr, &attr, sizeof attr);
    return desc;
}

static tr_tensor_desc matrix(int64_t rows, int64_t columns) {
    return (tr_tensor_desc){TR_F32, TR_SHAPE2(rows, columns)};
}

// The nearest number of a format with so many bits of fraction, of which the largest
// in the tensor becomes `most` when it is 1.75 times a power of two: by logarithms.
static double rounded(double x, double largest, bool gradient) {
    int bits = gradient ? 2 : 3, least = gradient ? -14 : -6;
    double most = gradient ? 57344 : 448;
    double scale = exp2(floor(log2(most / largest)));
    double y = x * scale;
    double exponent = y == 0 ? least : fmax(floor(log2(fabs(y))), least);
    double step = exp2(exponent - bits);
    return nearbyint(y / step) * step / scale;
}

static double largest_of(const float *x, int count) {
    double most = 0;
    for (int i = 0; i < count; i++) {
        most = fmax(most, fabs((double)x[i]));
    }
    return most;
}

static void round_all(const float *x, int count, bool gradient, double *to) {
    for (int i = 0; i < count; i++) {
        to[i] = rounded(x[i], largest_of(x, count), gradient);
    }
}

// Numbers of very different sizes, some of which are subnormal or zero in 8 bits.
static void draw(float *x, int count, unsigned seed) {
    for (int i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        float size = ldexpf(1 + (float)(seed >> 9) * 0x1p-23f, -(int)(seed % 23));
        x[i] = seed >> 8 & 1 ? size : -size;
    }
}

static void near(const float *got, const double *want, int count) {
    double most = 0;
    for (int i = 0; i < count; i++) {
        most = fmax(most, fabs(want[i]));
    }
    for (int i = 0; i < count; i++) {
        assert_true(fabs(got[i] - want[i]) <= 1e-6 * most);
    }
}

typedef struct numbers {
    float x[ROWS * IN], w[OUT * IN], dy[ROWS * OUT];
    double x8[ROWS * IN], w8[OUT * IN], dy8[ROWS * OUT];
} numbers;

static void make(numbers *n) {
    draw(n->x, ROWS * IN, 1);
    draw(n->w, OUT * IN, 2);
    draw(n->dy, ROWS * OUT, 3);
    round_all(n->x, ROWS * IN, false, n->x8);
    round_all(n->w, OUT * IN, false, n->w8);
    round_all(n->dy, ROWS * OUT, true, n->dy8);
}

static void output_of_rounded_factors(void **state) {
    numbers n;
    double want[ROWS * OUT] = {0};
    (void)state;
    make(&n);
    for (int i = 0; i < ROWS * OUT * IN; i++) {
        int row = i / IN / OUT, out = i / IN % OUT, in = i % IN;
        want[row * OUT + out] += n.x8[row * IN + in] * n.w8[out * IN + in];
    }
    tr_op_desc desc = desc_of(&tr__op_linear_fp8, matrix(ROWS, IN), matrix(OUT, IN),
                              matrix(ROWS, OUT));
    const tr_kernel *kernel;
    for (int k = 0; (kernel = test_kernel(desc.op, k)) != NULL; k++) {
        float y[ROWS * OUT];
        test_launch(kernel, &desc, &(tr_launch){.in = {n.x, n.w}, .out = {y}});
        near(y, want, ROWS * OUT);
    }
}

static void gradients_of_rounded_factors(void **state) {
    numbers n;
    double dx_want[ROWS * IN] = {0}, dw_want[OUT * IN] = {0};
    (void)state;
    make(&n);
    for (int i = 0; i < ROWS * OUT * IN; i++) {
        int row = i / IN / OUT, out = i / IN % OUT, in = i % IN;
        double dy = n.dy8[row * OUT + out];
        dx_want[row * IN + in] += dy * n.w8[out * IN + in];
        dw_want[out * IN + in] += dy * n.x8[row * IN + in];
    }
    tr_op_desc input = desc_of(&tr__op_linear_fp8_backward_input, matrix(ROWS, OUT),
                               matrix(OUT, IN), matrix(ROWS, IN));
    tr_op_desc weight = desc_of(&tr__op_linear_fp8_backward_weight, matrix(ROWS, OUT),
                                matrix(ROWS, IN), matrix(OUT, IN));
    for (int k = 0; test_kernel(input.op, k); k++) {
        float dx[ROWS * IN], dw[OUT * IN];
        test_launch(test_kernel(input.op, k), &input,
                    &(tr_launch){.in = {n.dy, n.w}, .out = {dx}});
        near(dx, dx_want, ROWS * IN);
        test_launch(test_kernel(weight.op, k), &weight,
                    &(tr_launch){.in = {n.dy, n.x}, .out = {dw}});
        near(dw, dw_want, OUT * IN);
    }
}

// 17 lies between 16 and 18 of E4M3, to even; 1 + 1/8 is exact; of gradients in E5M2
// neither is.
static void by_hand(void **state) {
    static const float one[1] = {1}, x[2] = {17, 1.125f};
    static const float y_want[2] = {16, 1.125f}, dx_want[2] = {16, 1};
    (void)state;
    tr_op_desc forward =
        desc_of(&tr__op_linear_fp8, matrix(2, 1), matrix(1, 1), matrix(2, 1));
    tr_op_desc back = desc_of(&tr__op_linear_fp8_backward_input, matrix(2, 1),
                              matrix(1, 1), matrix(2, 1));
    for (int k = 0; test_kernel(forward.op, k); k++) {
        float y[2], dx[2];
        test_launch(test_kernel(forward.op, k), &forward,
                    &(tr_launch){.in = {x, one}, .out = {y}});
        test_launch(test_kernel(back.op, k), &back,
                    &(tr_launch){.in = {x, one}, .out = {dx}});
        assert_memory_equal(y, y_want, sizeof y);
        assert_memory_equal(dx, dx_want, sizeof dx);
    }
}

// A sample that a short micro-batch lacks does not change the scale of the others.
static void missing_rows_set_no_scale(void **state) {
    static const float one[1] = {1}, x[2] = {0x1.2p-18f, 3e5f};
    tr_run_context run = {.rows = 1};
    (void)state;
    tr_op_desc desc =
        desc_of(&tr__op_linear_fp8, matrix(2, 1), matrix(1, 1), matrix(2, 1));
    for (int k = 0; test_kernel(desc.op, k); k++) {
        float y[2];
        test_launch(test_kernel(desc.op, k), &desc,
                    &(tr_launch){.in = {x, one}, .out = {y}, .run = &run});
        assert_true(y[0] == x[0]);
        assert_true(isfinite(y[1]));
    }
}

// So the gradient's norm is not finite, and the step is skipped.
static void what_is_not_finite_stays_so(void **state) {
    static const float one[1] = {1};
    (void)state;
    tr_op_desc desc =
        desc_of(&tr__op_linear_fp8, matrix(2, 1), matrix(1, 1), matrix(2, 1));
    for (int k = 0; test_kernel(desc.op, k); k++) {
        for (int i = 0; i < 2; i++) {
            float y[2], x[2] = {1, i ? NAN : -INFINITY};
            test_launch(test_kernel(desc.op, k), &desc,
                        &(tr_launch){.in = {x, one}, .out = {y}});
            assert_false(isfinite(y[1]));
        }
    }
}

// The gradient of the bias is that of unrounded dy.
static void rules(void **state) {
    tr_tensor_desc in[3] = {
        matrix(ROWS, IN), matrix(OUT, IN), {TR_F32, TR_SHAPE1(OUT)}};
    tr_tensor_desc out = matrix(ROWS, OUT);
    tr_linear_fp8_attr attr = {.linear = {TR_WEIGHT_OUT_IN, TR_ACTIVATION_RELU}};
    tr_rule rules[TR_OP_RULES_MAX] = {0};
    tr_op_node node = {.op = &tr__op_linear_fp8,
                       .attr = &attr,
                       .in_count = 3,
                       .out_count = 1,
                       .in = in,
                       .out = &out};
    (void)state;
    assert_int_equal(tr__op_linear_fp8.backward(&node, rules), 4);
    assert_ptr_equal(rules[1].op, &tr__op_linear_fp8_backward_weight);
    assert_ptr_equal(rules[2].op, &tr__op_linear_backward_bias);
    assert_ptr_equal(rules[3].op, &tr__op_linear_fp8_backward_input);
    for (int i = 1; i < 4; i++) { // all read the gradient behind the activation
        assert_int_equal(rules[i].in[0].kind, TR_REF_TEMP);
    }
    node.unwanted = 1 << 1;
    attr.linear.activation = TR_ACTIVATION_NONE;
    node.in_count = 2;
    assert_int_equal(tr__op_linear_fp8.backward(&node, rules), 1);
    assert_ptr_equal(rules[0].op, &tr__op_linear_fp8_backward_input);
}

// The largest value of dy is found before the first product that reads it, and both
// take it; that of x is for the weight's gradient, that of the weight for x's.
static void rules_of_parts(void **state) {
    tr_tensor_desc told = {TR_F32, TR_SHAPE2(2, 3)};
    tr_tensor_desc in[5] = {
        matrix(ROWS, IN), matrix(OUT, IN), {TR_F32, TR_SHAPE1(OUT)}, told, told};
    tr_tensor_desc out = matrix(ROWS, OUT);
    tr_linear_fp8_attr attr = {.linear = {TR_WEIGHT_OUT_IN, TR_ACTIVATION_RELU},
                               .column = {1, 2},
                               .axes = 2,
                               .ranks = 2,
                               .rank = 1};
    tr_rule rules[TR_OP_RULES_MAX] = {0};
    tr_op_node node = {.op = &tr__op_linear_fp8,
                       .attr = &attr,
                       .in_count = 5,
                       .out_count = 1,
                       .in = in,
                       .out = &out};
    (void)state;
    assert_int_equal(tr__op_linear_fp8.backward(&node, rules), 6);
    assert_ptr_equal(rules[1].op, &tr__op_largest);
    assert_ptr_equal(rules[2].op, &tr__op_gather_largest);
    for (int i = 3; i < 6; i += 2) { // between them the bias's
        tr_linear_fp8_attr its;
        memcpy(&its, rules[i].attr, sizeof its);
        assert_ptr_equal(rules[i].op, i == 3 ? &tr__op_linear_fp8_backward_weight
                                             : &tr__op_linear_fp8_backward_input);
        assert_int_equal(rules[i].in[2].kind, TR_REF_TEMP);
        assert_int_equal(rules[i].in[2].index, rules[2].out[0].index);
        assert_int_equal(rules[i].in[3].index, i == 3 ? 3 : 4);
        assert_int_equal(its.column[0], 0);
        assert_int_equal(its.column[1], i == 3 ? 1 : 2);
    }
    node.unwanted = 3; // the bias alone is trained
    assert_int_equal(tr__op_linear_fp8.backward(&node, rules), 3);
    assert_ptr_equal(rules[1].op, &tr__op_linear_backward_bias);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),
        cmocka_unit_test(output_of_rounded_factors),
        cmocka_unit_test(gradients_of_rounded_factors),
        cmocka_unit_test(missing_rows_set_no_scale),
        cmocka_unit_test(what_is_not_finite_stays_so),
        cmocka_unit_test(rules),
        cmocka_unit_test(rules_of_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// The linear op, its backward and its rules, by hand.
#include "ops/launch.h"
#include "ops/nn/linear/linear.h"
#include "ops/nn/relu/relu.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 2, IN = 3, OUT = 2 };

static const float x[ROWS * IN] = {1, 2, 3, -1, 0, 2};
static const float weights[2][OUT * IN] = {
    {1, 0, -1, 2, 1, 0.5f}, // [out, in]
    {1, 2, 0, 1, -1, 0.5f}, // [in, out]
};
static const float bias[OUT] = {0.5f, -1};
static const float dy[ROWS * OUT] = {1, 2, 3, -1};

static const float y_want[ROWS * OUT] = {-1.5f, 4.5f, -2.5f, -2};
static const float dx_want[ROWS * IN] = {5, 2, 0, 1, -1, -3.5f};
static const float dweight_want[2][OUT * IN] = {{-2, 2, 9, 3, 4, 4},
                                                {-2, 3, 2, 4, 9, 4}};
static const float dbias_want[OUT] = {4, 1};

static const tr_tensor_desc x_desc = {TR_F32, TR_SHAPE2(ROWS, IN)};
static const tr_tensor_desc y_desc = {TR_F32, TR_SHAPE2(ROWS, OUT)};
static const tr_tensor_desc bias_desc = {TR_F32, TR_SHAPE1(OUT)};

static tr_tensor_desc weight_desc(tr_weight_layout layout) {
    bool in_first = layout == TR_WEIGHT_IN_OUT;
    return (tr_tensor_desc){TR_F32, in_first ? TR_SHAPE2(IN, OUT) : TR_SHAPE2(OUT, IN)};
}

static tr_op_desc desc_of(const tr_op *op, tr_weight_layout layout,
                          tr_activation activation) {
    tr_op_desc desc = {.op = op, .fresh = 3, .accumulate = 3, .target = {.workers = 2}};
    tr_linear_attr attr = {layout, activation};
    memcpy(desc.attr, &attr, sizeof attr);
    return desc;
}

static void fill(float *values, int count) {
    for (int i = 0; i < count; i++) {
        values[i] = 10;
    }
}

static void expect(const float *got, const float *want, int count, bool added) {
    for (int i = 0; i < count; i++) {
        assert_true(fabsf(got[i] - want[i] - (added ? 10 : 0)) < 1e-5f);
    }
}

static void check_output(const tr_kernel *kernel, tr_weight_layout layout, bool relu,
                         bool add) {
    float y[ROWS * OUT], want[ROWS * OUT];
    tr_op_desc desc =
        desc_of(&tr__op_linear, layout, relu ? TR_ACTIVATION_RELU : TR_ACTIVATION_NONE);
    desc.in_count = 3;
    desc.in[0] = x_desc;
    desc.in[1] = weight_desc(layout);
    desc.in[2] = bias_desc;
    desc.out_count = 1;
    desc.out[0] = y_desc;
    fill(y, ROWS * OUT);
    test_launch(
        kernel, &desc,
        &(tr_launch){.in = {x, weights[layout], bias}, .out = {y}, .accumulate = add});
    for (int i = 0; i < ROWS * OUT; i++) {
        want[i] = relu && y_want[i] < 0 ? 0 : y_want[i];
    }
    expect(y, want, ROWS * OUT, add);
}

static void check_input(const tr_kernel *kernel, tr_weight_layout layout, bool add) {
    float dx[ROWS * IN];
    tr_op_desc desc = desc_of(&tr__op_linear_backward_input, layout, 0);
    desc.in_count = 2;
    desc.in[0] = y_desc;
    desc.in[1] = weight_desc(layout);
    desc.out_count = 1;
    desc.out[0] = x_desc;
    fill(dx, ROWS * IN);
    test_launch(
        kernel, &desc,
        &(tr_launch){.in = {dy, weights[layout]}, .out = {dx}, .accumulate = add});
    expect(dx, dx_want, ROWS * IN, add);
}

// wanted: bit 0 the weight's gradient, bit 1 the bias's.
static void check_weight(const tr_kernel *kernel, tr_weight_layout layout,
                         uint32_t wanted, uint32_t add) {
    float dweight[OUT * IN], dbias[OUT];
    tr_op_desc desc = desc_of(&tr__op_linear_backward_weight, layout, 0);
    tr_launch launch = {.in = {dy, x}, .accumulate = add};
    desc.in_count = 2;
    desc.in[0] = y_desc;
    desc.in[1] = x_desc;
    desc.out_count = 2;
    fill(dweight, OUT * IN);
    fill(dbias, OUT);
    if (wanted & 1) {
        desc.out[0] = weight_desc(layout);
        launch.out[0] = dweight;
    }
    if (wanted & 2) {
        desc.out[1] = bias_desc;
        launch.out[1] = dbias;
    }
    test_launch(kernel, &desc, &launch);
    if (wanted & 1) {
        expect(dweight, dweight_want[layout], OUT * IN, add & 1);
    }
    if (wanted & 2) {
        expect(dbias, dbias_want, OUT, add & 2);
    }
}

static void output_by_hand(void **state) {
    (void)state;
    const tr_kernel *kernel;
    for (int k = 0; (kernel = test_kernel(&tr__op_linear, k)) != NULL; k++) {
        for (int variant = 0; variant < 8; variant++) {
            check_output(kernel, (tr_weight_layout)(variant & 1), variant & 2,
                         variant >> 2);
        }
    }
}

static void input_gradient_by_hand(void **state) {
    (void)state;
    const tr_kernel *kernel;
    for (int k = 0; (kernel = test_kernel(&tr__op_linear_backward_input, k)) != NULL;
         k++) {
        for (int variant = 0; variant < 4; variant++) {
            check_input(kernel, (tr_weight_layout)(variant & 1), variant >> 1);
        }
    }
}

static void weight_gradient_by_hand(void **state) {
    (void)state;
    const tr_kernel *kernel;
    for (int k = 0; (kernel = test_kernel(&tr__op_linear_backward_weight, k)) != NULL;
         k++) {
        for (int variant = 0; variant < 32; variant++) {
            check_weight(kernel, (tr_weight_layout)(variant & 1), variant >> 1 & 3,
                         (uint32_t)variant >> 3);
        }
    }
}

// ---- rules and shapes

static void rules_read_the_gradient_once_activated(void **state) {
    (void)state;
    tr_tensor_desc in[3] = {x_desc, weight_desc(TR_WEIGHT_IN_OUT), bias_desc};
    tr_linear_attr attr = {TR_WEIGHT_IN_OUT, TR_ACTIVATION_RELU};
    tr_rule rules[TR_OP_RULES_MAX] = {0};
    tr_op_node node = {.op = &tr__op_linear,
                       .attr = &attr,
                       .in_count = 3,
                       .out_count = 1,
                       .in = in,
                       .out = &y_desc};
    assert_int_equal(tr__op_linear.backward(&node, rules), 3);
    assert_ptr_equal(rules[0].op, &tr__op_relu_backward);
    assert_true(tr_shape_equal(rules[0].temp[0].shape, y_desc.shape));
    for (int r = 1; r < 3; r++) {
        assert_int_equal(rules[r].in[0].kind, TR_REF_TEMP);
        assert_memory_equal(rules[r].attr, &attr, sizeof attr);
    }
    assert_int_equal(rules[1].out[1].kind, TR_REF_GRAD_IN);

    attr.activation = TR_ACTIVATION_NONE;
    in[2].dtype = TR_NONE;
    memset(rules, 0, sizeof rules);
    assert_int_equal(tr__op_linear.backward(&node, rules), 2);
    assert_int_equal(rules[0].in[0].kind, TR_REF_GRAD_OUT);
    assert_int_equal(rules[0].out[1].kind, TR_REF_NONE);
    assert_ptr_equal(rules[1].op, &tr__op_linear_backward_input);
}

static void shapes_are_checked(void **state) {
    (void)state;
    tr_tensor_desc in[3] = {
        {TR_F32, TR_SHAPE3(TR_BATCH, 5, IN)}, weight_desc(TR_WEIGHT_OUT_IN), bias_desc};
    tr_tensor_desc out[TR_OP_OUT_MAX];
    tr_linear_attr attr = {TR_WEIGHT_OUT_IN, TR_ACTIVATION_NONE};
    tr_op_node node = {.op = &tr__op_linear, .attr = &attr, .in_count = 3, .in = in};
    tr_error err = {0};
    int count = 0;
    assert_int_equal(tr__op_linear.infer(&node, out, &count, NULL), TR_OK);
    assert_true(tr_shape_equal(out[0].shape, TR_SHAPE3(TR_BATCH, 5, OUT)));

    attr.layout = TR_WEIGHT_IN_OUT;
    assert_int_equal(tr__op_linear.infer(&node, out, &count, &err), TR_USAGE);
    assert_string_equal(err.message, "linear: the weight [2, 3] ([in, out]) does not "
                                     "fit an operand of shape [B, 5, 3]");
}

static void cost_counts_the_product(void **state) {
    (void)state;
    tr_op_desc desc = desc_of(&tr__op_linear, TR_WEIGHT_OUT_IN, 0);
    desc.in_count = 2;
    desc.in[0] = (tr_tensor_desc){TR_F32, TR_SHAPE3(4, 256, 768)};
    desc.in[1] = (tr_tensor_desc){TR_F32, TR_SHAPE2(3072, 768)};
    desc.out_count = 1;
    desc.out[0] = (tr_tensor_desc){TR_F32, TR_SHAPE3(4, 256, 3072)};
    const tr_kernel *kernel;
    for (int k = 0; (kernel = test_kernel(&tr__op_linear, k)) != NULL; k++) {
        tr_cost cost;
        kernel->cost(&desc, &cost);
        assert_true(cost.flops == 2.0 * 1024 * 768 * 3072);
        assert_true(cost.bytes == 4.0 * (1024 * 768 + 3072 * 768 + 1024 * 3072));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(output_by_hand),
        cmocka_unit_test(input_gradient_by_hand),
        cmocka_unit_test(weight_gradient_by_hand),
        cmocka_unit_test(rules_read_the_gradient_once_activated),
        cmocka_unit_test(shapes_are_checked),
        cmocka_unit_test(cost_counts_the_product),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

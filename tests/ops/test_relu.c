// ReLU and its backward, by hand.
#include "ops/launch.h"
#include "ops/nn/relu/relu.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { COUNT = 19 }; // a whole vector of every width and a rest

static const float x[COUNT] = {1,  -2, 0, 3,    -0.5f, 6,  7,  -8, 9, 10,
                               11, 12, 1, -1e9, 1e9,   -3, -3, 4,  -5};

static void check_forward(const tr_kernel *kernel, uint32_t accumulate) {
    float y[COUNT];
    tr_op_desc desc = {
        .op = &tr__op_relu,
        .in_count = 1,
        .out_count = 1,
        .in = {{TR_F32, TR_SHAPE1(COUNT)}},
        .out = {{TR_F32, TR_SHAPE1(COUNT)}},
        .fresh = 1,
        .accumulate = 1,
        .target = {.workers = 2},
    };
    for (int i = 0; i < COUNT; i++) {
        y[i] = 100;
    }
    test_launch(kernel, &desc,
                &(tr_launch){.in = {x}, .out = {y}, .accumulate = accumulate});
    for (int i = 0; i < COUNT; i++) {
        float want = x[i] > 0 ? x[i] : 0;
        assert_true(y[i] == (accumulate ? 100 + want : want));
    }
}

static void forward_by_hand(void **state) {
    (void)state;
    const tr_kernel *kernel;
    for (int k = 0; (kernel = test_kernel(&tr__op_relu, k)) != NULL; k++) {
        check_forward(kernel, 0);
        check_forward(kernel, 1);
    }
}

static void check_backward(const tr_kernel *kernel, uint32_t accumulate) {
    float dy[COUNT], dx[COUNT];
    tr_op_desc desc = {
        .op = &tr__op_relu_backward,
        .in_count = 2,
        .out_count = 1,
        .in = {{TR_F32, TR_SHAPE1(COUNT)}, {TR_F32, TR_SHAPE1(COUNT)}},
        .out = {{TR_F32, TR_SHAPE1(COUNT)}},
        .fresh = 1,
        .accumulate = 1,
        .target = {.workers = 2},
    };
    for (int i = 0; i < COUNT; i++) {
        dy[i] = (float)(i - 5);
        dx[i] = 0.5f;
    }
    test_launch(kernel, &desc,
                &(tr_launch){.in = {dy, x}, .out = {dx}, .accumulate = accumulate});
    for (int i = 0; i < COUNT; i++) {
        float want = x[i] > 0 ? (float)(i - 5) : 0;
        assert_true(dx[i] == (accumulate ? 0.5f + want : want));
    }
}

static void backward_by_hand(void **state) {
    (void)state;
    const tr_kernel *kernel;
    for (int k = 0; (kernel = test_kernel(&tr__op_relu_backward, k)) != NULL; k++) {
        check_backward(kernel, 0);
        check_backward(kernel, 1);
    }
}

static void not_a_number_is_not_hidden(void **state) {
    (void)state;
    const float bad = NAN;
    float y = 0;
    tr_op_desc desc = {
        .op = &tr__op_relu,
        .in_count = 1,
        .out_count = 1,
        .in = {{TR_F32, TR_SHAPE1(1)}},
        .out = {{TR_F32, TR_SHAPE1(1)}},
        .fresh = 1,
        .target = {.workers = 1},
    };
    const tr_kernel *kernel;
    for (int k = 0; (kernel = test_kernel(&tr__op_relu, k)) != NULL; k++) {
        test_launch(kernel, &desc, &(tr_launch){.in = {&bad}, .out = {&y}});
        assert_true(isnan(y));
    }
}

static void shapes_are_checked(void **state) {
    (void)state;
    tr_tensor_desc in[2] = {{TR_F32, TR_SHAPE2(TR_BATCH, 7)}, {TR_F32, TR_SHAPE1(7)}};
    tr_tensor_desc out[TR_OP_OUT_MAX];
    int count = 0;
    tr_op_node node = {.op = &tr__op_relu, .in_count = 1, .in = in};
    assert_int_equal(tr__op_relu.infer(&node, out, &count, NULL), TR_OK);
    assert_int_equal(count, 1);
    assert_int_equal(out[0].shape.dim[0], TR_BATCH);

    tr_error err = {0};
    node = (tr_op_node){.op = &tr__op_relu_backward, .in_count = 2, .in = in};
    assert_int_not_equal(tr__op_relu_backward.infer(&node, out, &count, &err), TR_OK);
    assert_string_equal(err.message,
                        "relu_backward: input 1 has the shape [7], not [B, 7]");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_by_hand),
        cmocka_unit_test(backward_by_hand),
        cmocka_unit_test(not_a_number_is_not_hidden),
        cmocka_unit_test(shapes_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// GELU: known values, and every kernel against the definition over a wide range.
#include "ops/launch.h"
#include "ops/nn/gelu/gelu.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { WIDE = 40001 }; // -20 .. 20 in steps of 1/1000

static tr_op_desc describe(const tr_op *op, tr_gelu_form form, int64_t count) {
    tr_gelu_attr attr = {form};
    tr_tensor_desc tensor = {TR_F32, TR_SHAPE1(count)};
    tr_op_desc desc = {
        .op = op,
        .in_count = op == &tr__op_gelu ? 1 : 2,
        .out_count = 1,
        .in = {tensor, tensor},
        .out = {tensor},
        .fresh = 1,
        .accumulate = 1,
        .target = {.workers = 2},
    };
    memcpy(desc.attr, &attr, sizeof attr);
    return desc;
}

// x Phi(x) with Phi(1) = 0.8413447461, Phi(-2) = 0.0227501319, Phi(0.5) = 0.6914624613
// from tables of the normal distribution; its slope Phi(x) + x phi(x) with phi(1) =
// 0.2419707245. The tanh form's values were worked out with 20 digits.
static void known_values(void **state) {
    (void)state;
    const float x[4] = {0, 1, -2, 0.5f};
    const double exact[4] = {0, 0.8413447461, -0.0455002638, 0.3457312306};
    const double tanh_form[4] = {0, 0.8411919906, -0.0454023059, 0.3457140005};
    float y[4];
    tr_op_desc desc = describe(&tr__op_gelu, TR_GELU_ERF, 4);
    test_launch(tr__op_gelu.reference, &desc, &(tr_launch){.in = {x}, .out = {y}});
    for (int i = 0; i < 4; i++) {
        assert_true(fabs(y[i] - exact[i]) < 1e-7);
    }
    desc = describe(&tr__op_gelu, TR_GELU_TANH, 4);
    test_launch(tr__op_gelu.reference, &desc, &(tr_launch){.in = {x}, .out = {y}});
    for (int i = 0; i < 4; i++) {
        assert_true(fabs(y[i] - tanh_form[i]) < 1e-7);
    }
    const float dy[4] = {1, 2, 1, 1};
    desc = describe(&tr__op_gelu_backward, TR_GELU_ERF, 4);
    test_launch(tr__op_gelu_backward.reference, &desc,
                &(tr_launch){.in = {dy, x}, .out = {y}});
    assert_true(fabs(y[0] - 0.5) < 1e-7);
    assert_true(fabs(y[1] - 2 * (0.8413447461 + 0.2419707245)) < 3e-7);
}

static void fill_wide(float *x, float *dy) {
    for (int i = 0; i < WIDE; i++) {
        x[i] = (float)(i - WIDE / 2) / 1000;
        dy[i] = 1;
    }
}

// Both kernels on the whole range against the reference: an error of one rounding of
// the gate (2^-24) times |x| is what f32 allows.
static void check_wide(const tr_op *op, tr_gelu_form form, uint32_t accumulate) {
    static float x[WIDE], dy[WIDE], want[WIDE], got[WIDE];
    fill_wide(x, dy);
    tr_op_desc desc = describe(op, form, WIDE);
    tr_launch launch = {.in = {dy, x}, .out = {want}};
    launch.in[0] = op == &tr__op_gelu ? x : dy;
    test_launch(op->reference, &desc, &launch);
    launch.out[0] = got;
    launch.accumulate = accumulate;
    const tr_kernel *kernel;
    for (int k = 1; (kernel = test_kernel(op, k)) != NULL; k++) {
        for (int i = 0; i < WIDE; i++) {
            got[i] = 1;
        }
        test_launch(kernel, &desc, &launch);
        for (int i = 0; i < WIDE; i++) {
            double sum = (double)want[i] + (accumulate ? 1 : 0);
            double limit = 3e-7 * fmax(1, fabs(x[i]));
            assert_true(fabs(got[i] - sum) <= limit);
        }
    }
}

static void kernels_over_a_wide_range(void **state) {
    (void)state;
    for (uint32_t accumulate = 0; accumulate < 2; accumulate++) {
        check_wide(&tr__op_gelu, TR_GELU_TANH, accumulate);
        check_wide(&tr__op_gelu, TR_GELU_ERF, accumulate);
        check_wide(&tr__op_gelu_backward, TR_GELU_TANH, accumulate);
        check_wide(&tr__op_gelu_backward, TR_GELU_ERF, accumulate);
    }
}

static void huge_and_not_finite(void **state) {
    (void)state;
    const float x[4] = {3e38f, -3e38f, NAN, INFINITY}, dy[4] = {1, 1, 1, 1};
    const tr_kernel *kernel;
    for (int form = TR_GELU_TANH; form <= TR_GELU_ERF; form++) {
        tr_op_desc desc = describe(&tr__op_gelu, form, 4);
        float y[4];
        for (int k = 1; (kernel = test_kernel(&tr__op_gelu, k)) != NULL; k++) {
            test_launch(kernel, &desc, &(tr_launch){.in = {x}, .out = {y}});
            assert_true(y[0] == x[0] && fabsf(y[1]) < 10);
            assert_true(isnan(y[2]) && !isfinite(y[3]));
        }
        desc = describe(&tr__op_gelu_backward, form, 4);
        for (int k = 1; (kernel = test_kernel(&tr__op_gelu_backward, k)) != NULL; k++) {
            test_launch(kernel, &desc, &(tr_launch){.in = {dy, x}, .out = {y}});
            assert_true(y[0] == 1 && fabsf(y[1]) < 1e-6f && isnan(y[2]));
        }
    }
}

static void recomputed_as_computed(void **state) {
    (void)state;
    tr_gelu_attr attr = {TR_GELU_ERF};
    tr_tensor_desc in = {TR_F32, TR_SHAPE2(TR_BATCH, 8)};
    tr_op_node node = {.op = &tr__op_gelu,
                       .attr = &attr,
                       .in_count = 1,
                       .out_count = 1,
                       .in = &in,
                       .out = &in};
    tr_rule rules[TR_OP_RULES_MAX];
    assert_int_equal(tr__op_gelu.recompute_class[0], TR_RECOMPUTE_ACTIVATION);
    assert_null(tr__op_gelu.recompute); // by itself
    assert_int_equal(tr__op_gelu.backward(&node, rules), 1);
    assert_memory_equal(rules[0].attr, &attr, sizeof attr);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_values),
        cmocka_unit_test(kernels_over_a_wide_range),
        cmocka_unit_test(huge_and_not_finite),
        cmocka_unit_test(recomputed_as_computed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

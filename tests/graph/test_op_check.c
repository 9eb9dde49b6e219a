// tr_op_check passes right ops, of the library and of a program, and finds each
// mistake.
#include "ops/nn/layer_norm/layer_norm.h"
#include "ops/nn/linear/linear.h"
#include "ops/nn/linear_cross_entropy/linear_cross_entropy.h"

#include <tranche/extend/op_check.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// ---- y [rows, n] = x [rows, n] times w [n], with a mistake

typedef enum mistake {
    NONE,
    SLOPE,      // a gradient is twice as large
    NO_RULE,    // for the gradient of w
    OVERWRITES, // where it is to add
    OUTSIDE,    // writes one element behind dw
    INPUT,      // writes to x
    UNWRITTEN,  // leaves out the last element of y
    NO_SHAPE,   // infer takes a w of any size
} mistake;

static mistake made;

static tr_status infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                       tr_error *err) {
    tr_shape x = node->in[0].shape, w = node->in[1].shape;
    if (made != NO_SHAPE && (w.rank != 1 || w.dim[0] != x.dim[x.rank - 1])) {
        return tr_fail(err, TR_USAGE, "scale: w does not fit");
    }
    out[0] = node->in[0];
    *out_count = 1;
    return TR_OK;
}

static tr_status infer_backward(const tr_op_node *node, tr_tensor_desc *out,
                                int *out_count, tr_error *err) {
    (void)err;
    out[0] = node->in[1];
    out[1] = node->in[2];
    *out_count = 2;
    return TR_OK;
}

static bool supports(const tr_op_desc *desc) {
    return desc->in[0].dtype == TR_F32;
}

static void launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    const float *x = launch->in[0], *w = launch->in[1];
    float *y = launch->out[0];
    int64_t n = desc->in[0].shape.dim[1], count = desc->in[0].shape.dim[0] * n;
    (void)state;
    for (int64_t i = 0; i < count - (made == UNWRITTEN); i++) {
        y[i] = (launch->accumulate & 1 ? y[i] : 0) + x[i] * w[i % n];
    }
    if (made == INPUT) {
        memset(launch->workspace, 0, 4);
        ((float *)(uintptr_t)x)[0] += 1;
    }
}

static size_t workspace(const tr_op_desc *desc, const void *state) {
    (void)desc;
    (void)state;
    return 4;
}

static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    const float *dy = launch->in[0], *x = launch->in[1], *w = launch->in[2];
    float *dx = launch->out[0], *dw = launch->out[1];
    int64_t n = desc->in[1].shape.dim[1], count = desc->in[1].shape.dim[0] * n;
    (void)state;
    for (int64_t i = 0; dx && i < count; i++) {
        dx[i] = (launch->accumulate & 1 ? dx[i] : 0) +
                (made == SLOPE ? 2 : 1) * dy[i] * w[i % n];
    }
    for (int64_t k = 0; dw && k < n; k++) {
        double sum = launch->accumulate & 2 && made != OVERWRITES ? dw[k] : 0;
        for (int64_t i = k; i < count; i += n) {
            sum += (double)dy[i] * x[i];
        }
        dw[k] = (float)sum;
    }
    if (dw && made == OUTSIDE) {
        dw[n] = 1;
    }
}

static const tr_kernel kernel = {
    .name = "scale", .supports = supports, .workspace = workspace, .launch = launch};
static const tr_kernel backward_kernel = {
    .name = "scale_backward", .supports = supports, .launch = launch_backward};
static const tr_op backward_op = {
    .name = "scale_backward", .infer = infer_backward, .reference = &backward_kernel};

static int rules(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    (void)node;
    rules[0] = (tr_rule){.op = &backward_op,
                         .in = {TR_GRAD_OUT(0), TR_IN(0), TR_IN(1)},
                         .out = {TR_GRAD_IN(0), TR_GRAD_IN(1)}};
    if (made == NO_RULE) {
        rules[0].out[1] = (tr_ref)TR_ABSENT;
    }
    return 1;
}

static const tr_op scale = {
    .name = "scale", .infer = infer, .backward = rules, .reference = &kernel};

static tr_status check_scale(mistake with, tr_error *err) {
    const tr_op_check_input in[] = {{.desc = {TR_F32, TR_SHAPE2(3, 5)}},
                                    {.desc = {TR_F32, TR_SHAPE1(5)}}};
    made = with;
    tr_status status = tr_op_check(&scale, NULL, in, 2, 0, err);
    made = NONE;
    return status;
}

static void test_right(void **state) {
    tr_error err = {0};
    (void)state;
    assert_int_equal(check_scale(NONE, &err), TR_OK);
}

static void test_mistakes(void **state) {
    static const char *const says[] = {
        [SLOPE] = "the gradient of input 0 is",
        [NO_RULE] = "no rule of its backward gives the gradient of input 1",
        [OVERWRITES] = "to add to the gradient of input 1",
        [OUTSIDE] = "scale_backward writes outside of its result 1",
        [INPUT] = "scale writes to an input",
        [UNWRITTEN] = "output 0 is not written whole",
        [NO_SHAPE] = "should infer of scale refuse that?",
    };
    (void)state;
    for (int m = SLOPE; m <= NO_SHAPE; m++) {
        tr_error err = {0};
        assert_int_equal(check_scale((mistake)m, &err), TR_DIFFERENT);
        if (!strstr(err.message, says[m])) {
            fail_msg("\"%s\" does not say \"%s\"", err.message, says[m]);
        }
    }
}

// A linear layer with a bias, a norm, and a loss with targets.
static void test_own_ops(void **state) {
    static const int32_t targets[4] = {2, 0, -100, 1};
    tr_linear_attr linear = {TR_WEIGHT_OUT_IN, TR_ACTIVATION_NONE};
    tr_layer_norm_attr norm = {.epsilon = 1e-5f};
    tr_lce_attr head = {.layout = TR_WEIGHT_OUT_IN};
    const tr_op_check_input product[] = {{.desc = {TR_F32, TR_SHAPE2(4, 6)}},
                                         {.desc = {TR_F32, TR_SHAPE2(3, 6)}},
                                         {.desc = {TR_F32, TR_SHAPE1(3)}}};
    const tr_op_check_input normed[] = {{.desc = {TR_F32, TR_SHAPE2(4, 6)}},
                                        {.desc = {TR_F32, TR_SHAPE1(6)}},
                                        {.desc = {TR_F32, TR_SHAPE1(6)}}};
    const tr_op_check_input loss[] = {
        {.desc = {TR_F32, TR_SHAPE2(4, 6)}},
        {.desc = {TR_F32, TR_SHAPE2(3, 6)}},
        {.desc = {TR_NONE, {0}}},
        {.desc = {TR_I32, TR_SHAPE1(4)}, .values = targets}};
    tr_error err = {0};
    (void)state;
    tr_op_check(&tr__op_linear, &linear, product, 3, 0, &err);
    assert_string_equal(err.message, "");
    tr_op_check(&tr__op_layer_norm, &norm, normed, 3, 0, &err);
    assert_string_equal(err.message, "");
    tr_op_check(&tr__op_linear_cross_entropy, &head, loss, 4, 0, &err);
    assert_string_equal(err.message, "");
}

static void test_refusals(void **state) {
    const tr_op_check_input odd[] = {{.desc = {TR_F32, TR_SHAPE2(3, 5)}},
                                     {.desc = {TR_F32, TR_SHAPE1(4)}}};
    const tr_op_check_input whole[] = {{.desc = {TR_I32, TR_SHAPE1(4)}}};
    tr_error err = {0};
    (void)state;
    assert_int_equal(tr_op_check(&scale, NULL, odd, 2, 0, &err), TR_USAGE);
    assert_non_null(strstr(err.message, "w does not fit"));
    err = (tr_error){0};
    assert_int_equal(tr_op_check(&scale, NULL, whole, 1, 0, &err), TR_USAGE);
    assert_non_null(strstr(err.message, "input 0 is of"));
    assert_int_equal(tr_op_check(&scale, NULL, odd, 0, 0, &err), TR_USAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_own_ops),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

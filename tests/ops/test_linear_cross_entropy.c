// The head: losses, gradients and logits by hand; missing targets; chunks.
#include "ops/launch.h"
#include "ops/nn/linear_cross_entropy/linear_cross_entropy.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// One weight each for two classes: logits 0 and x ln 3, so that the softmax of x = 1 is
// 1/4, 3/4, and that of x = 2 is 1/10, 9/10.
enum { ROWS = 3, CLASSES = 2 };
#define LN3 1.0986122886681098f

static const float x[ROWS] = {1, 2, 5};
static const float weight[CLASSES] = {0, LN3}; // [2, 1] and [1, 2] alike
static const float bias[CLASSES] = {0, 0};
static const int32_t targets[ROWS] = {1, 0, -100};
static const tr_run_context run = {.loss_seed = 0.5f};

static const float dx_want[ROWS] = {-0.125f * LN3, 0.45f * LN3, 0};
static const float dweight_want[CLASSES] = {-0.775f, 0.775f};
static const float dbias_want[CLASSES] = {-0.325f, 0.325f};

static const tr_op_desc inputs = {
    .in_count = 4,
    .in = {{TR_F32, TR_SHAPE2(ROWS, 1)},
           {TR_F32, TR_SHAPE2(CLASSES, 1)},
           {TR_F32, TR_SHAPE1(CLASSES)},
           {TR_I32, TR_SHAPE1(ROWS)}},
    .fresh = 15,
    .accumulate = 15,
    .target = {.workers = 2},
};

static tr_op_desc desc_of(const tr_op *op, tr_weight_layout layout, int chunk_rows) {
    tr_op_desc desc = inputs;
    tr_lce_attr attr = {layout, chunk_rows, 0};
    desc.op = op;
    memcpy(desc.attr, &attr, sizeof attr);
    if (layout == TR_WEIGHT_IN_OUT) {
        desc.in[1].shape = TR_SHAPE2(1, CLASSES);
    }
    desc.out_count = 1;
    desc.out[0] = (tr_tensor_desc){TR_F64, TR_SHAPE1(TR_SUMS)};
    return desc;
}

static tr_op_desc backward_desc(tr_weight_layout layout, int chunk_rows) {
    tr_op_desc desc =
        desc_of(&tr__op_linear_cross_entropy_backward, layout, chunk_rows);
    desc.out_count = 4;
    desc.out[3] = desc.out[0];
    for (int i = 0; i < 3; i++) {
        desc.out[i] = desc.in[i];
    }
    return desc;
}

typedef struct gradients {
    float dx[ROWS], dweight[CLASSES], dbias[CLASSES];
    double sums[TR_SUMS];
} gradients;

static gradients all_ten(void) {
    return (gradients){
        {10, 10, 10}, {10, 10}, {10, 10}, {100, 200, 300}}; // what was there before
}

static void run_backward(const tr_kernel *kernel, const tr_op_desc *desc,
                         const int32_t *wanted, uint32_t accumulate, gradients *g) {
    test_launch(kernel, desc,
                &(tr_launch){.in = {x, weight, bias, wanted},
                             .out = {g->dx, g->dweight, g->dbias, g->sums},
                             .accumulate = accumulate,
                             .run = &run});
}

static void expect(const float *got, const float *want, int count, bool added) {
    for (int i = 0; i < count; i++) {
        assert_true(fabsf(got[i] - (want ? want[i] : 0) - (added ? 10 : 0)) < 2e-6f);
    }
}

static void expect_sums(const double *sums, double loss, double count, double correct) {
    assert_true(fabs(sums[TR_SUM_LOSS] - loss) < 1e-6);
    assert_true(sums[TR_SUM_COUNT] == count);
    assert_true(sums[TR_SUM_CORRECT] == correct);
}

static double loss_by_hand(void) {
    return log(4.0 / 3) + log(10);
}

static void forward_by_hand(void **state) {
    (void)state;
    const tr_kernel *kernel;
    for (int k = 0; (kernel = test_kernel(&tr__op_linear_cross_entropy, k)) != NULL;
         k++) {
        for (int chunk = 0; chunk <= 4; chunk++) {
            double sums[TR_SUMS] = {100, 200, 300};
            tr_op_desc desc = desc_of(&tr__op_linear_cross_entropy,
                                      (tr_weight_layout)(chunk & 1), chunk);
            test_launch(kernel, &desc,
                        &(tr_launch){.in = {x, weight, bias, targets},
                                     .out = {sums},
                                     .accumulate = 1});
            expect_sums(sums, 100 + loss_by_hand(), 202, 301);
        }
    }
}

static void backward_by_hand(void **state) {
    (void)state;
    const tr_kernel *kernel;
    for (int k = 0;
         (kernel = test_kernel(&tr__op_linear_cross_entropy_backward, k)) != NULL;
         k++) {
        for (int variant = 0; variant < 80; variant++) {
            uint32_t add = (uint32_t)(variant & 7) | 8;
            gradients g = all_ten();
            tr_op_desc desc =
                backward_desc((tr_weight_layout)(variant >> 3 & 1), variant >> 4);
            run_backward(kernel, &desc, targets, add, &g);
            expect(g.dx, dx_want, ROWS, add & 1);
            expect(g.dweight, dweight_want, CLASSES, add & 2);
            expect(g.dbias, dbias_want, CLASSES, add & 4);
            expect_sums(g.sums, 100 + loss_by_hand(), 202, 301);
        }
    }
}

static void nothing_wanted_is_nothing_written(void **state) {
    (void)state;
    const tr_kernel *kernel;
    for (int k = 0;
         (kernel = test_kernel(&tr__op_linear_cross_entropy_backward, k)) != NULL;
         k++) {
        for (int left_out = 0; left_out < 3; left_out++) {
            gradients g = all_ten();
            tr_op_desc desc = backward_desc(TR_WEIGHT_OUT_IN, 2);
            tr_launch launch = {.in = {x, weight, bias, targets},
                                .out = {g.dx, g.dweight, g.dbias, g.sums},
                                .accumulate = 8,
                                .run = &run};
            desc.out[left_out].dtype = TR_NONE;
            launch.out[left_out] = NULL;
            test_launch(kernel, &desc, &launch);
            expect(g.dx, left_out == 0 ? NULL : dx_want, ROWS, left_out == 0);
            expect(g.dweight, left_out == 1 ? NULL : dweight_want, CLASSES,
                   left_out == 1);
            expect(g.dbias, left_out == 2 ? NULL : dbias_want, CLASSES, left_out == 2);
        }
    }
}

static void no_targets_give_zeros(void **state) {
    (void)state;
    const int32_t none[ROWS] = {-1, -100, -1};
    const tr_kernel *kernel;
    for (int k = 0;
         (kernel = test_kernel(&tr__op_linear_cross_entropy_backward, k)) != NULL;
         k++) {
        for (int variant = 0; variant < 24; variant++) {
            uint32_t add = (uint32_t)(variant & 7) | 8;
            gradients g = all_ten();
            tr_op_desc desc = backward_desc(TR_WEIGHT_OUT_IN, variant >> 3);
            run_backward(kernel, &desc, none, add, &g);
            expect(g.dx, NULL, ROWS, add & 1);
            expect(g.dweight, NULL, CLASSES, add & 2);
            expect(g.dbias, NULL, CLASSES, add & 4);
            expect_sums(g.sums, 100, 200, 300);
        }
    }
}

// Equal logits: the guess is the lowest index.
static void a_tie_is_guessed_low(void **state) {
    (void)state;
    const float zeros[ROWS] = {0};
    const int32_t wanted[ROWS] = {0, 1, 0};
    const tr_kernel *kernel;
    for (int k = 0; (kernel = test_kernel(&tr__op_linear_cross_entropy, k)) != NULL;
         k++) {
        double sums[TR_SUMS] = {0};
        tr_op_desc desc = desc_of(&tr__op_linear_cross_entropy, TR_WEIGHT_OUT_IN, 0);
        test_launch(kernel, &desc,
                    &(tr_launch){.in = {zeros, weight, bias, wanted},
                                 .out = {sums},
                                 .accumulate = 1});
        expect_sums(sums, 3 * log(2), 3, 2);
    }
}

static void extremes(void **state) {
    (void)state;
    const float large[ROWS] = {1e30f, -1e30f, 2};
    const float bad[ROWS] = {NAN, 1, 1};
    const int32_t wanted[ROWS] = {1, 0, 1};
    const tr_kernel *kernel;
    for (int k = 0;
         (kernel = test_kernel(&tr__op_linear_cross_entropy_backward, k)) != NULL;
         k++) {
        gradients g = all_ten();
        tr_op_desc desc = backward_desc(TR_WEIGHT_OUT_IN, 0);
        tr_launch launch = {.in = {large, weight, bias, wanted},
                            .out = {g.dx, g.dweight, g.dbias, g.sums},
                            .accumulate = 8,
                            .run = &run};
        test_launch(kernel, &desc, &launch);
        expect_sums(g.sums, 100 + log(10.0 / 9), 203, 303);
        launch.in[0] = bad;
        test_launch(kernel, &desc, &launch);
        assert_true(isnan(g.sums[TR_SUM_LOSS]));
        assert_true(isnan(g.dx[0]) && isnan(g.dweight[0]) && !isnan(g.dx[1]));
    }
}

// Two samples of three rows: the first's last target is in its second row, the second
// has none.
static void logits_of_the_last_target(void **state) {
    (void)state;
    const float rows[2 * ROWS] = {1, 2, 3, 4, 5, 6}, other_bias[CLASSES] = {0.5f, -1};
    const int32_t wanted[2 * ROWS] = {0, 1, -100, -100, -1, -1};
    const tr_kernel *kernel;
    for (int k = 0;
         (kernel = test_kernel(&tr__op_linear_cross_entropy_logits, k)) != NULL; k++) {
        float logits[2 * CLASSES] = {7, 7, 7, 7};
        tr_op_desc desc =
            desc_of(&tr__op_linear_cross_entropy_logits, TR_WEIGHT_OUT_IN, 0);
        desc.in[0].shape = TR_SHAPE3(2, ROWS, 1);
        desc.in[3].shape = TR_SHAPE2(2, ROWS);
        desc.out[0] = (tr_tensor_desc){TR_F32, TR_SHAPE2(2, CLASSES)};
        desc.accumulate = 0;
        test_launch(
            kernel, &desc,
            &(tr_launch){.in = {rows, weight, other_bias, wanted}, .out = {logits}});
        const float want[2 * CLASSES] = {0.5f, 2 * LN3 - 1, 0, 0};
        expect(logits, want, 2 * CLASSES, false);
    }
}

// GPT-2's head: the logits of a chunk are at most 52 MB, and what oneDNN needs is
// little beside them.
static void the_workspace_is_bounded(void **state) {
    (void)state;
    tr_op_desc desc = backward_desc(TR_WEIGHT_OUT_IN, 0);
    desc.in[0].shape = desc.out[0].shape = TR_SHAPE3(4, 1024, 768);
    desc.in[1].shape = desc.out[1].shape = TR_SHAPE2(50257, 768);
    desc.in[2].dtype = desc.out[2].dtype = TR_NONE;
    desc.in[3].shape = TR_SHAPE2(4, 1024);
    const tr_kernel *kernel;
    for (int k = 1;
         (kernel = test_kernel(&tr__op_linear_cross_entropy_backward, k)) != NULL;
         k++) {
        void *prepared = NULL;
        tr_cost cost;
        assert_int_equal(kernel->prepare(&desc, &prepared, NULL), TR_OK);
        assert_true(kernel->workspace(&desc, prepared) <= 56u << 20);
        kernel->release(prepared);
        kernel->cost(&desc, &cost);
        double products = 3 * 2.0 * 4096 * 768 * 50257;
        assert_true(cost.flops >= products && cost.flops < 1.01 * products);
    }
}

static void shapes_are_checked(void **state) {
    (void)state;
    tr_op_desc desc = desc_of(&tr__op_linear_cross_entropy, TR_WEIGHT_OUT_IN, 0);
    tr_tensor_desc out[TR_OP_OUT_MAX];
    tr_error err = {0};
    int count = 0;
    tr_op_node node = {.op = &tr__op_linear_cross_entropy,
                       .attr = desc.attr,
                       .in_count = 4,
                       .in = desc.in};
    assert_int_equal(tr__op_linear_cross_entropy.infer(&node, out, &count, NULL),
                     TR_OK);
    assert_int_equal(out[0].dtype, TR_F64);
    desc.in[3].shape = TR_SHAPE1(ROWS + 1);
    assert_int_equal(tr__op_linear_cross_entropy.infer(&node, out, &count, &err),
                     TR_USAGE);
    assert_string_equal(err.message, "head: input 3 has the shape [4], not [3]");
    desc = desc_of(&tr__op_linear_cross_entropy, TR_WEIGHT_OUT_IN, 0);
    desc.in[1].shape = TR_SHAPE2(CLASSES, 5);
    assert_int_equal(tr__op_linear_cross_entropy.infer(&node, out, &count, NULL),
                     TR_USAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_by_hand),
        cmocka_unit_test(backward_by_hand),
        cmocka_unit_test(nothing_wanted_is_nothing_written),
        cmocka_unit_test(no_targets_give_zeros),
        cmocka_unit_test(a_tie_is_guessed_low),
        cmocka_unit_test(extremes),
        cmocka_unit_test(logits_of_the_last_target),
        cmocka_unit_test(the_workspace_is_bounded),
        cmocka_unit_test(shapes_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

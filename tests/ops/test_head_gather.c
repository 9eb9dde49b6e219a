// The head on rows of which few have a target: it computes these alone, and gives what
// the reference gives of all.
#include "ops/launch.h"
#include "ops/nn/linear_cross_entropy/linear_cross_entropy.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// Two chunks of rows, the second smaller.
enum { ROWS = 700, WIDTH = 24, CLASSES = 52, CHUNK = 400 };

typedef struct head {
    float x[ROWS * WIDTH], weight[CLASSES * WIDTH], bias[CLASSES];
    int32_t targets[ROWS];
} head;

typedef struct gradients {
    float dx[ROWS * WIDTH], dweight[CLASSES * WIDTH], dbias[CLASSES];
    double sums[TR_SUMS];
} gradients;

static head operands;
static gradients want, got;

static float draw(uint32_t *state) {
    *state = *state * 1664525 + 1013904223;
    return (float)(*state >> 8) / (1 << 23) - 1;
}

static void fill(float *values, int count, uint32_t seed) {
    for (int i = 0; i < count; i++) {
        values[i] = draw(&seed);
    }
}

// A target in about one row of `each`; 0: in none; -1: in the last one alone.
static void fill_targets(int each) {
    uint32_t state = 77;
    for (int r = 0; r < ROWS; r++) {
        bool has = each > 0 && (draw(&state) + 1) * (float)each < 2;
        has = has || (each < 0 && r == ROWS - 1);
        operands.targets[r] = has ? (r * 7) % CLASSES : -100;
    }
}

static tr_op_desc desc_of(const tr_op *op) {
    tr_op_desc desc = {
        .op = op,
        .in_count = 4,
        .in = {{TR_F32, TR_SHAPE2(ROWS, WIDTH)},
               {TR_F32, TR_SHAPE2(CLASSES, WIDTH)},
               {TR_F32, TR_SHAPE1(CLASSES)},
               {TR_I32, TR_SHAPE1(ROWS)}},
        .fresh = 15,
        .accumulate = 15,
        .target = {.workers = 2},
    };
    const tr_lce_attr attr = {TR_WEIGHT_OUT_IN, CHUNK, 0};
    memcpy(desc.attr, &attr, sizeof attr);
    return desc;
}

static void run_backward(int which, uint32_t accumulate, gradients *to) {
    static const tr_run_context run = {.loss_seed = 0.5f};
    tr_op_desc desc = desc_of(&tr__op_linear_cross_entropy_backward);
    desc.out_count = 4;
    memcpy(desc.out, desc.in, 3 * sizeof *desc.out);
    desc.out[3] = (tr_tensor_desc){TR_F64, TR_SHAPE1(TR_SUMS)};
    fill(to->dx, ROWS * WIDTH, 1);
    fill(to->dweight, CLASSES * WIDTH, 2);
    fill(to->dbias, CLASSES, 3);
    memset(to->sums, 0, sizeof to->sums);
    test_launch(test_kernel(desc.op, which), &desc,
                &(tr_launch){.in = {operands.x, operands.weight, operands.bias,
                                    operands.targets},
                             .out = {to->dx, to->dweight, to->dbias, to->sums},
                             .accumulate = accumulate,
                             .run = &run});
}

static void near(const float *a, const float *b, int count) {
    for (int i = 0; i < count; i++) {
        assert_true(fabsf(a[i] - b[i]) <= 2e-5f);
    }
}

static void sums_near(const double *a, const double *b) {
    assert_true(fabs(a[TR_SUM_LOSS] - b[TR_SUM_LOSS]) <= 1e-5 * b[TR_SUM_LOSS]);
    assert_true(a[TR_SUM_COUNT] == b[TR_SUM_COUNT]);
    assert_true(a[TR_SUM_CORRECT] == b[TR_SUM_CORRECT]);
}

static const int densities[] = {0, -1, 20, 7, 2, 1};
enum { DENSITIES = sizeof densities / sizeof *densities };

static void backward_as_the_reference(void **state) {
    (void)state;
    for (int d = 0; d < DENSITIES; d++) {
        fill_targets(densities[d]);
        for (uint32_t add = 8; add < 16; add += 7) { // nothing, or all
            run_backward(0, add, &want);
            for (int k = 1; test_kernel(&tr__op_linear_cross_entropy_backward, k);
                 k++) {
                run_backward(k, add, &got);
                near(got.dx, want.dx, ROWS * WIDTH);
                near(got.dweight, want.dweight, CLASSES * WIDTH);
                near(got.dbias, want.dbias, CLASSES);
                sums_near(got.sums, want.sums);
            }
        }
    }
}

static void forward_as_the_reference(void **state) {
    tr_op_desc desc = desc_of(&tr__op_linear_cross_entropy);
    desc.out_count = 1;
    desc.out[0] = (tr_tensor_desc){TR_F64, TR_SHAPE1(TR_SUMS)};
    (void)state;
    for (int d = 0; d < DENSITIES; d++) {
        double sums[2][TR_SUMS] = {{0}};
        fill_targets(densities[d]);
        for (int k = 0; test_kernel(desc.op, k); k++) {
            double *to = sums[k > 0];
            memset(to, 0, sizeof *sums);
            test_launch(test_kernel(desc.op, k), &desc,
                        &(tr_launch){.in = {operands.x, operands.weight, operands.bias,
                                            operands.targets},
                                     .out = {to},
                                     .accumulate = 1});
            sums_near(to, sums[0]);
        }
    }
}

// What a row without a target holds changes nothing: it is not read.
static void other_rows_are_not_read(void **state) {
    (void)state;
    fill_targets(7);
    for (int k = 1; test_kernel(&tr__op_linear_cross_entropy_backward, k); k++) {
        run_backward(k, 8, &want);
        for (int r = 0; r < ROWS; r++) {
            for (int c = 0; c < WIDTH && operands.targets[r] < 0; c++) {
                operands.x[r * WIDTH + c] = NAN;
            }
        }
        run_backward(k, 8, &got);
        assert_memory_equal(&got, &want, sizeof got);
        fill(operands.x, ROWS * WIDTH, 11);
    }
}

// Of a tenth of the rows, 70, chunks of 64 take 128.
static void costs_count_what_is_computed(void **state) {
    tr_op_desc desc = desc_of(&tr__op_linear_cross_entropy);
    (void)state;
    for (int k = 1; test_kernel(desc.op, k); k++) {
        const tr_kernel *kernel = test_kernel(desc.op, k);
        tr_lce_attr attr = {TR_WEIGHT_OUT_IN, CHUNK, 0.1};
        tr_cost all, part;
        kernel->cost(&desc, &all);
        memcpy(desc.attr, &attr, sizeof attr);
        kernel->cost(&desc, &part);
        assert_true(fabs(part.flops / all.flops - 128.0 / ROWS) < 1e-12);
        attr.share = 0.99; // nothing is saved by gathering
        memcpy(desc.attr, &attr, sizeof attr);
        kernel->cost(&desc, &part);
        assert_true(part.flops == all.flops);
        desc = desc_of(desc.op);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(backward_as_the_reference),
        cmocka_unit_test(forward_as_the_reference),
        cmocka_unit_test(other_rows_are_not_read),
        cmocka_unit_test(costs_count_what_is_computed),
    };
    fill(operands.x, ROWS * WIDTH, 11);
    fill(operands.weight, CLASSES * WIDTH, 12);
    fill(operands.bias, CLASSES, 13);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

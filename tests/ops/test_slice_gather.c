// A slice of the head on rows of which few have a target: it computes these alone, and
// gives what the reference gives of all; with logits that are kept, and without.
#include "ops/launch.h"
#include "ops/nn/linear_cross_entropy_slice/linear_cross_entropy_slice.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

// A slice in the middle of the vocabulary; two chunks of rows, the second smaller.
enum { ROWS = 700, WIDTH = 24, FIRST = 20, SLICE = 52, CLASSES = 90, CHUNK = 400 };
enum { PAIR = 2, LOGITS = 64 }; // numbers of a row of running and best; of logits

static float x[ROWS * WIDTH], weight[SLICE * WIDTH], bias[SLICE], best[ROWS * PAIR];
static double before[ROWS * PAIR], after[ROWS * PAIR], dafter[ROWS * PAIR];
static float logits[ROWS * LOGITS];
static int32_t targets[ROWS];
static bool keeps; // logits

typedef struct results {
    double running[ROWS * PAIR], dbefore[ROWS * PAIR];
    float best[ROWS * PAIR], logits[ROWS * LOGITS];
    float dx[ROWS * WIDTH], dweight[SLICE * WIDTH], dbias[SLICE];
} results;

static results want, got;

static float draw(uint32_t *state) {
    *state = *state * 1664525 + 1013904223;
    return (float)(*state >> 8) / (1 << 23) - 1;
}

static void fill(float *values, int count, uint32_t seed) {
    for (int i = 0; i < count; i++) {
        values[i] = draw(&seed);
    }
}

static void fill_pairs(double *values, uint32_t seed, double least) {
    for (int i = 0; i < ROWS * PAIR; i++) {
        values[i] = least + (double)draw(&seed);
    }
}

// A target in about one row of `each`; 0: in none; -1: in the last one alone. Some are
// of other slices.
static void fill_targets(int each) {
    uint32_t state = 77;
    for (int r = 0; r < ROWS; r++) {
        bool has = each > 0 && (draw(&state) + 1) * (float)each < 2;
        has = has || (each < 0 && r == ROWS - 1);
        targets[r] = has ? (r * 7) % CLASSES : -100;
    }
}

static tr_op_desc desc_of(const tr_op *op, int in_count) {
    const tr_tensor_desc pairs = {TR_F64, TR_SHAPE2(ROWS, PAIR)};
    tr_op_desc desc = {
        .op = op,
        .in_count = in_count,
        .in = {{TR_F32, TR_SHAPE2(ROWS, WIDTH)},
               {TR_F32, TR_SHAPE2(SLICE, WIDTH)},
               {TR_F32, TR_SHAPE1(SLICE)},
               {TR_I32, TR_SHAPE1(ROWS)},
               pairs,
               {TR_F32, TR_SHAPE2(ROWS, PAIR)}},
        .fresh = 15,
        .accumulate = 15,
        .target = {.workers = 2},
    };
    const tr_lce_slice_attr attr = {{TR_WEIGHT_OUT_IN, CHUNK, 0}, FIRST, keeps};
    memcpy(desc.attr, &attr, sizeof attr);
    return desc;
}

static void run_forward(int which, results *to) {
    tr_op_desc desc = desc_of(&tr__op_linear_cross_entropy_slice, 6);
    desc.out_count = keeps ? 3 : 2;
    desc.out[0] = desc.in[4];
    desc.out[1] = desc.in[5];
    desc.out[2] = (tr_tensor_desc){TR_F32, TR_SHAPE2(ROWS, LOGITS)};
    memset(to, 0x55, sizeof *to);
    test_launch(test_kernel(desc.op, which), &desc,
                &(tr_launch){.in = {x, weight, bias, targets, before, best},
                             .out = {to->running, to->best, to->logits}});
}

static void run_backward(int which, uint32_t accumulate, results *to) {
    tr_op_desc desc = desc_of(&tr__op_linear_cross_entropy_slice_backward, 7 + keeps);
    desc.in[5] = desc.in[6] = desc.in[4];
    desc.in[7] = (tr_tensor_desc){TR_F32, TR_SHAPE2(ROWS, LOGITS)};
    desc.out_count = 4;
    memcpy(desc.out, desc.in, 3 * sizeof *desc.out);
    desc.out[3] = desc.in[4];
    fill(to->dx, ROWS * WIDTH, 1);
    fill(to->dweight, SLICE * WIDTH, 2);
    fill(to->dbias, SLICE, 3);
    fill_pairs(to->dbefore, 4, 0);
    test_launch(
        test_kernel(desc.op, which), &desc,
        &(tr_launch){.in = {x, weight, bias, targets, before, after, dafter, logits},
                     .out = {to->dx, to->dweight, to->dbias, to->dbefore},
                     .accumulate = accumulate});
}

static void near(const float *a, const float *b, int count) {
    for (int i = 0; i < count; i++) {
        assert_true(fabsf(a[i] - b[i]) <= 3e-5f);
    }
}

static void pairs_near(const double *a, const double *b) {
    for (int i = 0; i < ROWS * PAIR; i++) {
        assert_true(fabs(a[i] - b[i]) <= 1e-5);
    }
}

// As one forward makes them, for the backwards.
static void make_given(void) {
    run_forward(0, &want);
    memcpy(after, want.running, sizeof after);
    memcpy(logits, want.logits, sizeof logits);
}

static void as_the_reference(void **state) {
    static const int densities[] = {0, -1, 20, 7, 2, 1};
    keeps = *state != NULL;
    for (size_t d = 0; d < sizeof densities / sizeof *densities; d++) {
        fill_targets(densities[d]);
        make_given();
        for (int k = 1; test_kernel(&tr__op_linear_cross_entropy_slice, k); k++) {
            run_forward(k, &got);
            pairs_near(got.running, want.running);
            near(got.best, want.best, ROWS * PAIR);
            near(got.logits, want.logits, keeps ? ROWS * LOGITS : 0);
        }
        for (uint32_t add = 0; add < 16; add += 15) { // nothing, or all
            run_backward(0, add, &want);
            for (int k = 1; test_kernel(&tr__op_linear_cross_entropy_slice_backward, k);
                 k++) {
                run_backward(k, add, &got);
                near(got.dx, want.dx, ROWS * WIDTH);
                near(got.dweight, want.dweight, SLICE * WIDTH);
                near(got.dbias, want.dbias, SLICE);
                pairs_near(got.dbefore, want.dbefore);
            }
        }
    }
}

// What a row without a target holds changes nothing: it is not read.
static void other_rows_are_not_read(void **state) {
    keeps = *state != NULL;
    fill_targets(7);
    make_given();
    for (int k = 1; test_kernel(&tr__op_linear_cross_entropy_slice_backward, k); k++) {
        run_backward(k, 0, &want);
        for (int r = 0; r < ROWS; r++) {
            for (int c = 0; c < WIDTH && targets[r] < 0; c++) {
                x[r * WIDTH + c] = NAN;
            }
        }
        run_backward(k, 0, &got);
        assert_memory_equal(got.dweight, want.dweight, sizeof got.dweight);
        assert_memory_equal(got.dx, want.dx, sizeof got.dx);
        fill(x, ROWS * WIDTH, 11);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_the_reference),
        cmocka_unit_test_prestate(as_the_reference, &keeps),
        cmocka_unit_test(other_rows_are_not_read),
        cmocka_unit_test_prestate(other_rows_are_not_read, &keeps),
    };
    fill(x, ROWS * WIDTH, 11);
    fill(weight, SLICE * WIDTH, 12);
    fill(bias, SLICE, 13);
    fill(best, ROWS * PAIR, 14);
    fill_pairs(before, 15, 3);
    fill_pairs(dafter, 16, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Scales of tensors that ranks share: what each rank finds of its part, and all have
// gathered, rounds every number of the part as the whole tensor's product on one rank
// does, by every kernel: of x that is cut by columns, of weights by columns and rows,
// and of gradients. By the scale of a rank's own part it would not.
#include "backend/cpu/isa.h"
#include "base/rng.h"
#include "ops/launch.h"
#include "ops/nn/largest/largest.h"
#include "ops/nn/linear_fp8/linear_fp8.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RANKS = 2, ROWS = 3, PART = 16, WIDTH = RANKS * PART, BELOW = 2, TOLD = 3 };

static tr_tensor_desc matrix(int64_t rows, int64_t columns) {
    return (tr_tensor_desc){TR_F32, TR_SHAPE2(rows, columns)};
}

static tr_op_desc describe(const tr_op *op, const void *attr, int in_count,
                           const tr_tensor_desc *in, tr_tensor_desc out) {
    tr_op_desc desc = {.op = op,
                       .in_count = in_count,
                       .out_count = 1,
                       .out = {out},
                       .fresh = 1,
                       .target = {.level = (int)tr__cpu_isa(), .workers = 2}};
    memcpy(desc.in, in, (size_t)in_count * sizeof *in);
    memcpy(desc.attr, attr, op->attr_bytes);
    return desc;
}

// Of a part of very small numbers, and one of large ones: by a scale of its own the
// first part would keep what the whole's scale rounds to zero, or to few bits.
static float number(int64_t row, int64_t column) {
    float size =
        ldexpf(1 + (float)tr__draw_below(64, (uint64_t)row, 7, (uint64_t)column) / 64,
               (column < PART ? -17 : 3) - (int)(row + column) % 7);
    return (row * 5 + column) % 3 ? size : -size;
}

// Rows of the rank's columns; of all with ranks 1.
static void fill(float *x, int64_t rows, int64_t ranks, int64_t rank) {
    for (int64_t i = 0; i < rows * WIDTH / ranks; i++) {
        x[i] = number(i / (WIDTH / ranks), i % (WIDTH / ranks) + rank * WIDTH / ranks);
    }
}

static float found_by(int kernel, const float *x, int64_t rows, uint32_t by_rows,
                      const tr_run_context *run) {
    const tr_largest_attr attr = {by_rows};
    const tr_tensor_desc in = matrix(rows, PART), out = {TR_F32, TR_SHAPE1(1)};
    float largest = -1;
    tr_op_desc desc = describe(&tr__op_largest, &attr, 1, &in, out);
    test_launch(test_kernel(desc.op, kernel), &desc,
                &(tr_launch){.in = {x}, .out = {&largest}, .run = run});
    return largest;
}

// What ranks have gathered of two tensors, of which the second is asked for.
static void gather(int kernel, int64_t rows, float told[RANKS][BELOW]) {
    const tr_tensor_desc one = {TR_F32, TR_SHAPE1(1)}, in[] = {one, one};
    float x[WIDTH * PART], other = 1e30f;
    for (int rank = 0; rank < RANKS; rank++) {
        const tr_gather_largest_attr attr = {1, RANKS, rank};
        tr_op_desc desc =
            describe(&tr__op_gather_largest, &attr, BELOW, in, matrix(RANKS, BELOW));
        fill(x, rows, RANKS, rank);
        float largest = found_by(kernel, x, rows, 0, NULL);
        test_launch(desc.op->reference, &desc,
                    &(tr_launch){.in = {&other, &largest}, .out = {told}});
    }
}

// Identity: every number of the other factor comes out as it is rounded.
static void picks(float *x, int64_t size) {
    memset(x, 0, (size_t)(size * size) * sizeof *x);
    for (int64_t i = 0; i < size; i++) {
        x[i * size + i] = 1;
    }
}

typedef struct rounding {
    const tr_op *op;
    const char *what;
    int factor; // that is cut
} rounding;

// y: [rows, size], the rounded numbers of x: [rows, size]; of the second factor's
// kinds x' is the factor. told: NULL: by its own scale.
static void round_by(int kernel, const rounding *r, const float *x, int64_t rows,
                     int64_t size, const void *told, float *y) {
    static float identity[WIDTH * WIDTH];
    tr_linear_fp8_attr attr = {.linear = {TR_WEIGHT_OUT_IN, TR_ACTIVATION_NONE},
                               .column = {1, 1}};
    int plain = tr__fp8_plain_inputs(r->op), at = plain + r->factor;
    int64_t square = r->factor == 0 ? size : rows;
    tr_tensor_desc in[TR_OP_IN_MAX] = {{0}};
    const void *operands[TR_OP_IN_MAX] = {NULL};
    picks(identity, square);
    in[r->factor] = matrix(rows, size);
    in[1 - r->factor] = matrix(square, square);
    operands[r->factor] = x;
    operands[1 - r->factor] = identity;
    in[at] = told ? matrix(RANKS, BELOW) : in[at];
    operands[at] = told;
    tr_op_desc desc =
        describe(r->op, &attr, told ? at + 1 : plain, in, matrix(rows, size));
    tr_launch launch = {.out = {y}};
    memcpy(launch.in, operands, sizeof operands);
    test_launch(test_kernel(r->op, kernel), &desc, &launch);
}

// The columns of a rank, from all of them.
static bool same_columns(const float *all, const float *part, int64_t rows, int rank) {
    bool same = true;
    for (int64_t i = 0; i < rows * PART; i++) {
        same =
            same && all[i / PART * WIDTH + (int64_t)rank * PART + i % PART] == part[i];
    }
    return same;
}

static void numbers_are_rounded_as_in_the_whole(void **state) {
    // x by columns; dy by columns; the weight, here [in, out] of the input's gradient,
    // by columns.
    static const rounding roundings[] = {
        {&tr__op_linear_fp8, "x", 0},
        {&tr__op_linear_fp8_backward_input, "W", 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof roundings / sizeof *roundings; i++) {
        const rounding *r = &roundings[i];
        for (int k = 0; test_kernel(r->op, k); k++) {
            float all[ROWS * WIDTH], x[ROWS * WIDTH], part[ROWS * PART];
            float told[RANKS][BELOW];
            bool own_differs = false;
            int finds = test_kernel(&tr__op_largest, k) ? k : 0;
            fill(x, ROWS, 1, 0);
            round_by(k, r, x, ROWS, WIDTH, NULL, all);
            gather(finds, ROWS, told);
            for (int rank = 0; rank < RANKS; rank++) {
                fill(x, ROWS, RANKS, rank);
                round_by(k, r, x, ROWS, PART, told, part);
                if (!same_columns(all, part, ROWS, rank)) {
                    fail_msg("kernel %d: rank %d rounds %s otherwise", k, rank,
                             r->what);
                }
                round_by(k, r, x, ROWS, PART, NULL, part);
                own_differs = own_differs || !same_columns(all, part, ROWS, rank);
            }
            assert_true(own_differs);
        }
    }
}

// The gradient of the weight: dy is E5M2, whose range is wide.
static void gradients_are_rounded_as_in_the_whole(void **state) {
    static float identity[PART * PART], rounded[RANKS][PART * PART];
    (void)state;
    for (int k = 0; test_kernel(&tr__op_linear_fp8_backward_weight, k); k++) {
        const tr_linear_fp8_attr attr = {.column = {1, 0}};
        const tr_tensor_desc square = matrix(PART, PART), none = {TR_NONE, {0}};
        for (int own = 0; own < 2; own++) {
            const tr_tensor_desc in[] = {square, square,
                                         own ? none : matrix(RANKS, BELOW)};
            tr_op_desc desc =
                describe(&tr__op_linear_fp8_backward_weight, &attr, TOLD, in, square);
            // Below the least code of the other rank's numbers.
            float dy[PART * PART], told[RANKS][BELOW] = {{0, 0x1p-40f}, {0, 0x1p+20f}};
            for (int i = 0; i < PART * PART; i++) {
                dy[i] = 0x1p-40f;
            }
            picks(identity, PART);
            test_launch(test_kernel(desc.op, k), &desc,
                        &(tr_launch){.in = {dy, identity, own ? NULL : told},
                                     .out = {rounded[own]}});
        }
        assert_true(rounded[0][0] == 0 && rounded[1][0] == 0x1p-40f);
    }
}

// What is missing has no part in it; NaN and infinity have.
static void what_is_there_counts(void **state) {
    float x[ROWS * PART];
    const tr_run_context one = {.rows = 1};
    (void)state;
    for (int k = 0; test_kernel(&tr__op_largest, k); k++) {
        memset(x, 0, sizeof x);
        x[3] = -2;
        x[PART] = 5;
        assert_true(found_by(k, x, ROWS, 1, &one) == 2);
        assert_true(found_by(k, x, ROWS, 0, &one) == 5);
        x[7] = -INFINITY;
        assert_true(found_by(k, x, ROWS, 1, &one) == INFINITY);
        x[2 * PART] = NAN;
        assert_true(isnan(found_by(k, x, ROWS, 0, &one)));
    }
}

// Of a parameter it is found once.
static void what_is_kept_is_not_found_again(void **state) {
    const tr_largest_attr attr = {0};
    const tr_tensor_desc in = matrix(ROWS, PART), out = {TR_F32, TR_SHAPE1(1)};
    (void)state;
    for (int k = 1; test_kernel(&tr__op_largest, k); k++) {
        const tr_kernel *kernel = test_kernel(&tr__op_largest, k);
        float x[ROWS * PART] = {-3}, largest = 0, kept = 0;
        tr_op_desc desc = describe(&tr__op_largest, &attr, 1, &in, out);
        desc.packs = true;
        assert_int_equal(kernel->packed(&desc, NULL), sizeof kept);
        tr_launch launch = {.in = {x}, .out = {&largest}, .packed = &kept};
        test_launch(kernel, &desc, &launch);
        assert_true(largest == 3 && kept == 3);
        x[0] = 7;
        launch.is_packed = true;
        test_launch(kernel, &desc, &launch);
        assert_true(largest == 3);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_rounded_as_in_the_whole),
        cmocka_unit_test(gradients_are_rounded_as_in_the_whole),
        cmocka_unit_test(what_is_there_counts),
        cmocka_unit_test(what_is_kept_is_not_found_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

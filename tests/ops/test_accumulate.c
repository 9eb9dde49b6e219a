// Fixed-point sums: the same bits in any order and on every instruction set, what does
// not fit is told, and the way back to f32 rounds once.
#include "backend/backend.h"
#include "backend/cpu/isa.h"
#include "base/rng.h"
#include "ops/flat/accumulate/cpu_convert.h"
#include "ops/guarded.h"
#include "ops/launch.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const int64_t counts[] = {1, 3, 17, 63, 257, 16385, 100003};
enum { COUNTS = sizeof counts / sizeof *counts };

// The reference (0) and one for each instruction set that this processor has.
static bool is_there(int which) {
    return which - 1 <= (int)tr__cpu_isa();
}

// What is met besides terms that fit.
enum { TOO_LARGE = 1, NOT_FINITE = 2 };

// The sums of fixed point, = or += x; bits of what was met.
static int accumulate(int which, const float *x, int64_t count, double scale,
                      double limit, bool add, int64_t *sums) {
    tr_op_desc desc = {
        .op = &tr__op_accumulate,
        .in_count = 1,
        .out_count = 2,
        .in = {{TR_F32, TR_SHAPE1(count)}},
        .out = {{TR_I64, TR_SHAPE1(count)}, {TR_F64, TR_SHAPE1(TR_ACCUMULATE_COUNTS)}},
        .target = {.workers = 3, .level = which - 1},
    };
    double met[TR_ACCUMULATE_COUNTS] = {0};
    tr_run_context run = {.fixed_scale = scale, .fixed_limit = limit};
    tr_launch launch = {.in = {x}, .out = {sums, met}, .accumulate = add, .run = &run};
    test_launch(tr__kernel_find(&desc), &desc, &launch);
    return (met[TR_ACCUMULATE_TOO_LARGE] > 0 ? TOO_LARGE : 0) |
           (met[TR_ACCUMULATE_NOT_FINITE] > 0 ? NOT_FINITE : 0);
}

static void convert(int which, const int64_t *sums, int64_t count, double scale,
                    float *x) {
    tr_target target = {.level = which - 1, .workers = 3};
    tr__sums_convert(TR_I64, sums, count, scale, &target, x);
}

static void by_hand(void **state) {
    (void)state;
    const float x[6] = {0.5f, 1.5f, -0.5f, -1.5f, 1e6f, -0.75f};
    const int64_t whole[6] = {0, 2, 0, -2, 1000000, -1}; // halves go to even
    for (int k = 0; is_there(k); k++) {
        int64_t sums[6] = {99, 99, 99, 99, 99, 99};
        float back[6];
        assert_int_equal(accumulate(k, x, 6, 1, TR_FIXED_TOP, false, sums), 0);
        assert_memory_equal(sums, whole, sizeof sums);
        assert_int_equal(accumulate(k, x, 6, 2, TR_FIXED_TOP, true, sums), 0);
        assert_int_equal(sums[0], 1);
        assert_int_equal(sums[3], -5);
        assert_int_equal(sums[4], 3000000);
        convert(k, sums, 6, 0.5, back);
        assert_true(back[0] == 2 && back[3] == -10 && back[4] == 6e6f);
    }
}

static void what_does_not_fit_is_told(void **state) {
    (void)state;
    for (int k = 0; is_there(k); k++) {
        float x[40] = {0};
        int64_t sums[40];
        x[37] = 8;
        assert_int_equal(accumulate(k, x, 40, 4, 32, false, sums), 0);
        assert_int_equal(accumulate(k, x, 40, 4, 31, false, sums), TOO_LARGE);
        x[37] = -8;
        assert_int_equal(accumulate(k, x, 40, 4, 31, true, sums), TOO_LARGE);
        x[3] = NAN;
        assert_int_equal(accumulate(k, x, 40, 4, 32, false, sums), NOT_FINITE);
        x[3] = -INFINITY;
        assert_int_equal(accumulate(k, x, 40, 4, 31, false, sums),
                         NOT_FINITE | TOO_LARGE);
        x[3] = 3e38f; // finite, and stays so
        assert_int_equal(accumulate(k, x, 40, 0x1p60, 0x1p62, false, sums), TOO_LARGE);
    }
}

enum { TERMS = 5 };

// terms: [TERMS][count], added in the order that `order` says.
static void sum(int which, float *const terms[TERMS], const int order[TERMS],
                int64_t count, int64_t *sums) {
    for (int i = 0; i < TERMS; i++) {
        assert_int_equal(
            accumulate(which, terms[order[i]], count, 0x1p40, 0x1p59, i > 0, sums), 0);
    }
}

static void sums_do_not_depend_on_the_order(void **state) {
    (void)state;
    static const int orders[3][TERMS] = {
        {0, 1, 2, 3, 4}, {4, 2, 0, 1, 3}, {3, 4, 1, 2, 0}};
    for (int c = 0; c < COUNTS; c++) {
        size_t bytes = (size_t)counts[c] * sizeof(float);
        test_memory terms[TERMS], sums = test_memory_take(2 * bytes);
        test_memory want = test_memory_take(2 * bytes);
        float *at_term[TERMS];
        for (int i = 0; i < TERMS; i++) {
            terms[i] = test_memory_take(bytes);
            at_term[i] = terms[i].data;
            tr__fill_normal(at_term[i], 0, counts[c], 0, powf(10, (float)i - 3), 7,
                            (uint64_t)i);
        }
        for (int k = 0; is_there(k); k++) {
            for (int o = 0; o < 3; o++) {
                bool first = k == 0 && o == 0;
                sum(k, at_term, orders[o], counts[c], first ? want.data : sums.data);
                if (!first) {
                    assert_memory_equal(sums.data, want.data, 2 * bytes);
                }
            }
        }
        assert_true(test_memory_intact(&sums) && test_memory_intact(&want));
        for (int i = 0; i < TERMS; i++) {
            test_memory_give(&terms[i]);
        }
        test_memory_give(&sums);
        test_memory_give(&want);
    }
}

// Sums of i64 are added to others as they are, also where f32 would not hold them.
static void sums_are_added_to_sums(void **state) {
    (void)state;
    static const int64_t x[3] = {(INT64_C(1) << 61) + 1, -7, INT64_C(1) << 40};
    tr_op_desc desc = {.op = &tr__op_accumulate,
                       .in_count = 1,
                       .out_count = 1,
                       .in = {{TR_I64, TR_SHAPE1(3)}},
                       .out = {{TR_I64, TR_SHAPE1(3)}},
                       .target = {.workers = 3}};
    for (int k = 0; is_there(k); k++) {
        int64_t sums[3] = {1, 2, 3};
        tr_launch launch = {.in = {x}, .out = {sums}, .accumulate = 1};
        desc.target.level = k - 1;
        test_launch(tr__kernel_find(&desc), &desc, &launch);
        for (int i = 0; i < 3; i++) {
            assert_true(sums[i] == x[i] + i + 1);
        }
        launch.accumulate = 0;
        test_launch(tr__kernel_find(&desc), &desc, &launch);
        assert_memory_equal(sums, x, sizeof x);
    }
}

// Sums near the middle between two f32, a bit above or below: rounding twice would take
// the wrong one.
static void the_way_back_rounds_once(void **state) {
    (void)state;
    enum { CASES = 4000 };
    static int64_t sums[CASES];
    static float got[CASES], want[CASES];
    for (int i = 0; i < CASES; i++) {
        uint64_t draw = tr__draw_below(UINT64_C(1) << 24, (uint64_t)i, 3, 0);
        int shift = 25 + i % 13; // of 24 bits and a half
        int64_t middle = (int64_t)(draw << (shift + 1)) + (INT64_C(1) << shift);
        sums[i] = (i % 2 ? -1 : 1) * (middle + i % 3 - 1);
    }
    for (int k = 0; is_there(k); k++) {
        convert(k, sums, CASES, 0x1p33, got);
        for (int i = 0; i < CASES; i++) {
            want[i] = (float)((long double)sums[i] / 0x1p33L);
        }
        assert_memory_equal(got, want, sizeof got);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),
        cmocka_unit_test(what_does_not_fit_is_told),
        cmocka_unit_test(sums_do_not_depend_on_the_order),
        cmocka_unit_test(sums_are_added_to_sums),
        cmocka_unit_test(the_way_back_rounds_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

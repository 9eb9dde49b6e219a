// The sum of squares: exact where it can be, the same bits however it is cut, and never
// finite when an element is not.
#include "backend/cpu/isa.h"
#include "base/rng.h"
#include "ops/flat/gradient_squares/cpu_squares.h"
#include "ops/guarded.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int64_t blocks_of(int64_t count) {
    return (count + TR_NORM_BLOCK - 1) / TR_NORM_BLOCK;
}

static double sum_of(tr_squares_function squares, const float *x, int64_t count) {
    test_memory partials = test_memory_take((size_t)blocks_of(count) * sizeof(double));
    squares(x, count, 3, partials.data);
    assert_true(test_memory_intact(&partials));
    double sum = tr__squares_sum(0, partials.data, blocks_of(count));
    test_memory_give(&partials);
    return sum;
}

static tr_squares_function implementation(int which) {
    return which - 1 <= (int)tr__cpu_isa() ? tr__squares_choose(which - 1) : NULL;
}

static void by_hand(void **state) {
    (void)state;
    float x[3000];
    for (int i = 0; i < 3000; i++) {
        x[i] = (float)(i % 7 - 3); // squares 9 4 1 0 1 4 9: 28 in each seven
    }
    tr_squares_function squares;
    for (int k = 0; (squares = implementation(k)); k++) {
        double partials[3];
        assert_true(sum_of(squares, x, 1) == 9);
        assert_true(sum_of(squares, x, 3) == 14);
        assert_true(sum_of(squares, x, 7) == 28);
        squares(x, 3000, 1, partials);
        assert_true(partials[0] == 146 * 28 + 13); // 1022 and two more
        assert_true(tr__squares_sum(0, partials, 3) == 428 * 28 + 14 + 0 + 0);
    }
}

static void against_long_double(void **state) {
    (void)state;
    static const int64_t counts[] = {1, 3, 17, 63, 257, 1023, 1024, 1025, 100003};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        test_memory x = test_memory_take((size_t)counts[i] * sizeof(float));
        tr__fill_normal(x.data, 0, counts[i], 0, 1, 5, 0);
        long double want = 0;
        for (int64_t j = 0; j < counts[i]; j++) {
            long double value = ((const float *)x.data)[j];
            want += value * value;
        }
        tr_squares_function squares;
        for (int k = 0; (squares = implementation(k)); k++) {
            assert_true(fabsl(sum_of(squares, x.data, counts[i]) - want) <=
                        1e-13L * want);
        }
        test_memory_give(&x);
    }
}

static void cuts_threads_and_instructions_change_no_bit(void **state) {
    (void)state;
    enum { COUNT = 200 * TR_NORM_BLOCK + 5, BLOCKS = 201 };
    static float x[COUNT];
    static double want[BLOCKS], got[BLOCKS];
    tr__fill_normal(x, 0, COUNT, 0, 1, 6, 0);
    tr__squares_choose(TR_ISA_GENERIC)(x, COUNT, 1, want);
    for (int k = 1; implementation(k); k++) {
        for (int threads = 1; threads <= 3; threads++) {
            memset(got, 0xFF, sizeof got);
            implementation(k)(x, COUNT, threads, got);
            assert_memory_equal(got, want, sizeof want);
            for (int b = 0; b < BLOCKS; b++) {
                int64_t left = COUNT - (int64_t)b * TR_NORM_BLOCK;
                implementation(k)(x + (int64_t)b * TR_NORM_BLOCK,
                                  left < TR_NORM_BLOCK ? left : TR_NORM_BLOCK, threads,
                                  got + b);
            }
            assert_memory_equal(got, want, sizeof want);
        }
    }
}

static void what_is_not_finite_shows(void **state) {
    (void)state;
    enum { COUNT = 2 * TR_NORM_BLOCK + 3 };
    static const int64_t places[] = {0, 1000, TR_NORM_BLOCK, COUNT - 1};
    static const float values[] = {NAN, INFINITY, -INFINITY};
    float x[COUNT] = {0};
    tr_squares_function squares;
    for (int k = 0; (squares = implementation(k)); k++) {
        for (int i = 0; i < 4 * 3; i++) {
            x[places[i % 4]] = values[i / 4];
            assert_false(isfinite(sum_of(squares, x, COUNT)));
            x[places[i % 4]] = 0;
        }
        assert_true(sum_of(squares, x, COUNT) == 0);
    }
}

static void the_largest_numbers_do_not_overflow(void **state) {
    (void)state;
    float x[5] = {FLT_MAX, -FLT_MAX, FLT_MAX, FLT_MAX, 0x1p-149f};
    tr_squares_function squares;
    for (int k = 0; (squares = implementation(k)); k++) {
        assert_true(sum_of(squares, x, 5) == 4 * (double)FLT_MAX * (double)FLT_MAX);
        assert_true(sum_of(squares, x + 4, 1) == 0x1p-298);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),
        cmocka_unit_test(against_long_double),
        cmocka_unit_test(cuts_threads_and_instructions_change_no_bit),
        cmocka_unit_test(what_is_not_finite_shows),
        cmocka_unit_test(the_largest_numbers_do_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

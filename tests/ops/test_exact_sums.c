// Exact sums: the order of the numbers does not matter, nor who adds which of them, and
// the sum is rounded once.
#include "ops/flat/exact_sums/exact_sums.h"

#include "backend/backend.h"
#include "ops/launch.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static double sum_of(const double *x, int count) {
    int64_t sum[TR_EXACT_WORDS] = {0};
    for (int i = 0; i < count; i++) {
        tr__exact_add(sum, x[i]);
    }
    return tr__exact_value(sum);
}

#define SUM(...)                                                                       \
    sum_of((const double[]){__VA_ARGS__},                                              \
           sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

// By hand.
static void sums_are_rounded_once(void **state) {
    (void)state;
    assert_true(SUM(0) == 0);
    assert_true(SUM(1) == 1);
    assert_true(SUM(0.1) == 0.1);
    assert_true(SUM(0x1p-298) == 0x1p-298);
    assert_true(SUM(0x1.fffffffffffffp319) == 0x1.fffffffffffffp319);
    assert_true(SUM(1, 0x1p-53) == 1);                         // half: to even
    assert_true(SUM(1, 0x1p-53, 0x1p-298) == 1 + DBL_EPSILON); // more than half
    assert_true(SUM(1, 0x1p-54, 0x1p-54, 0x1p-60) == 1 + DBL_EPSILON);
    assert_true(SUM(1 + DBL_EPSILON, 0x1p-53) == 1 + 2 * DBL_EPSILON); // to even
    assert_true(SUM(0x1p200, 1, 0x1p200) == 0x1p201);
    assert_true(SUM(4294967295.0, 1) == 4294967296.0); // a carry
    assert_true(SUM(18446744073709549568.0, 2048) == 0x1p64);
}

static void what_is_no_number_stays_so(void **state) {
    (void)state;
    assert_true(isnan(SUM(1, NAN, INFINITY)));
    assert_true(isinf(SUM(1, INFINITY)));
    assert_true(isinf(SUM(DBL_MAX)));
    assert_true(SUM(DBL_MIN, 0x1p-1074, 2) == 2); // too small to be seen
}

enum { DRAWN = 4096, RANKS = 7 };

static double draw(void) {
    double x = (double)rand() / RAND_MAX;
    return ldexp(x, rand() % 500 - 250);
}

// Against the largest precision that C has, where that is enough.
static void order_does_not_matter(void **state) {
    (void)state;
    srand(1);
    for (int trial = 0; trial < 50; trial++) {
        static double x[DRAWN];
        int64_t forth[TR_EXACT_WORDS] = {0}, back[TR_EXACT_WORDS] = {0},
                ranks[RANKS][TR_EXACT_WORDS] = {{0}}, all[TR_EXACT_WORDS] = {0};
        long double near = 0;
        for (int i = 0; i < DRAWN; i++) {
            x[i] = trial % 2 ? draw() : (double)rand() / RAND_MAX;
            near += x[i];
        }
        for (int i = 0; i < DRAWN; i++) {
            tr__exact_add(forth, x[i]);
            tr__exact_add(back, x[DRAWN - 1 - i]);
            tr__exact_add(ranks[rand() % RANKS], x[i]);
        }
        for (int r = RANKS - 1; r >= 0; r--) {
            tr__exact_add_sum(all, ranks[r]);
        }
        double sum = tr__exact_value(forth);
        assert_true(sum == tr__exact_value(back) && sum == tr__exact_value(all));
        assert_true(fabsl(sum - near) <= 2 * DBL_EPSILON * (double)near);
    }
}

// Runs of pairs go into their totals' two columns.
static void runs_go_into_their_totals(void **state) {
    (void)state;
    const double parts[] = {1, 10, 2, 20, 3, 30, 4, 40, 5, 50};
    const tr_parts_run runs[] = {{0, 2, 1}, {3, 1, 1}, {4, 1, 0}};
    tr_exact_sums_attr attr = {runs, 3, 2};
    int64_t sums[6 * TR_EXACT_WORDS];
    double values[6];
    memset(sums, 0xee, sizeof sums);
    tr_op_desc desc = {.op = &tr__op_exact_sums,
                       .in_count = 1,
                       .out_count = 1,
                       .in = {{TR_F64, TR_SHAPE1(10)}},
                       .out = {{TR_I64, TR_SHAPE1(6 * TR_EXACT_WORDS)}}};
    memcpy(desc.attr, &attr, sizeof attr);
    test_launch(tr__kernel_find(&desc), &desc,
                &(tr_launch){.in = {parts}, .out = {sums}});
    tr_op_desc round = {.op = &tr__op_exact_values,
                        .in_count = 1,
                        .out_count = 1,
                        .in = {{TR_I64, TR_SHAPE1(6 * TR_EXACT_WORDS)}},
                        .out = {{TR_F64, TR_SHAPE1(6)}}};
    test_launch(tr__kernel_find(&round), &round,
                &(tr_launch){.in = {sums}, .out = {values}});
    const double want[] = {5, 50, 7, 70, 0, 0};
    assert_memory_equal(values, want, sizeof want);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_rounded_once),
        cmocka_unit_test(what_is_no_number_stays_so),
        cmocka_unit_test(order_does_not_matter),
        cmocka_unit_test(runs_go_into_their_totals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// What a check makes of distances, on made-up ones.
#include "check/check_judge.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { TENSORS = 3 };

static tr_check_cut judged(const double off[TENSORS], const double allowed[TENSORS],
                           bool same_bits, bool same) {
    static double distance[TENSORS], most[TENSORS];
    tr_check_cut cut = {.same_bits = same_bits,
                        .loss = 2,
                        .loss_allowed = 0.01,
                        .distance = distance,
                        .allowed = most};
    for (int t = 0; t < TENSORS; t++) {
        distance[t] = off[t];
        most[t] = allowed[t];
    }
    tr__check_judge(&cut, TENSORS, same, 2);
    return cut;
}

// Rounding moves the tensors by 0.3%, 1.9% and 30%: 5% in one of the first two is a
// mistake, in the last one nobody can tell.
static void test_mistake_of_five_percent(void **state) {
    const double moved[TENSORS] = {0.003, 0.019, 0.3};
    double allowed[TENSORS];
    (void)state;
    for (int t = 0; t < TENSORS; t++) {
        allowed[t] = tr__check_allowed(moved[t], TR_CHANGES_ORDER);
    }
    tr_check_cut cut = judged(moved, allowed, false, false);
    assert_true(cut.passed);
    assert_int_equal(cut.undecided, 1);
    for (size_t t = 0; t < TENSORS; t++) {
        double off[TENSORS] = {moved[0], moved[1], moved[2]};
        off[t] = sqrt(moved[t] * moved[t] + 0.05 * 0.05);
        cut = judged(off, allowed, false, false);
        assert_true(cut.passed == (t == 2));
        assert_true(t == 2 || cut.worst == t);
    }
}

// The worst is the one that is farthest off for what it is allowed.
static void test_worst(void **state) {
    const double allowed[TENSORS] = {0.5, 0.01, 0.1};
    (void)state;
    assert_int_equal(judged((double[]){0.4, 0.009, 0.01}, allowed, false, false).worst,
                     1);
    assert_int_equal(judged((double[]){0.4, 0.0, 0.0}, allowed, false, false).worst, 0);
    tr_check_cut cut = judged((double[]){0.6, NAN, 0.2}, allowed, false, false);
    assert_false(cut.passed);
    assert_int_equal(cut.worst, 1);
}

static void test_same_bits(void **state) {
    const double none[TENSORS] = {0};
    (void)state;
    assert_true(judged(none, none, true, true).passed);
    assert_false(judged(none, none, true, false).passed); // 0 and -0
    tr_check_cut cut = judged((double[]){0, 0, 1e-9}, none, true, false);
    assert_false(cut.passed);
    assert_int_equal(cut.worst, 2);
}

static void test_loss(void **state) {
    double off[TENSORS] = {0}, allowed[TENSORS] = {1, 1, 1};
    tr_check_cut cut = {
        .loss = 2.02, .loss_allowed = 0.01, .distance = off, .allowed = allowed};
    (void)state;
    tr__check_judge(&cut, TENSORS, false, 2);
    assert_false(cut.passed);
    cut.loss = 2.005;
    tr__check_judge(&cut, TENSORS, false, 2);
    assert_true(cut.passed);
    cut.loss = NAN;
    tr__check_judge(&cut, TENSORS, false, 2);
    assert_false(cut.passed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mistake_of_five_percent),
        cmocka_unit_test(test_worst),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

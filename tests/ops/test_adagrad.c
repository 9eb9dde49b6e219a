// Adagrad: by hand, against PyTorch, and in pieces.
#include "ops/update.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static const tr_hyper plain = {.lr = 0.25, .eps = 1};
static const tr_hyper full = {.lr = 0.5,
                              .eps = 1,
                              .weight_decay = 0.5,
                              .initial_accumulator = 9,
                              .lr_decay = 0.5};

// One update of p = 2 with gradient 3; with full's decay the gradient is 4.
static float updated(tr_update_function update, const tr_hyper *hyper, int number,
                     float *sum) {
    float p = 2, g = 6;
    tr_update one = {
        .param = &p,
        .grad = &g,
        .state = {sum},
        .count = 1,
        .grad_scale = 0.5,
        .number = number,
    };
    update(hyper, &one);
    return p;
}

static void by_hand(void **state) {
    (void)state;
    tr_update_function update;
    for (int k = 0; (update = test_update_function(&tr__optimizer_adagrad, k)); k++) {
        float sum = NAN; // not read by the first update
        assert_float_equal(updated(update, &plain, 1, &sum), 2 - 0.75 / 4, 1e-6);
        assert_true(sum == 9);
        sum = 16; // 25: a root of 5
        assert_float_equal(updated(update, &plain, 2, &sum), 2 - 0.75 / 6, 1e-6);
        assert_true(sum == 25);
    }
}

static void with_decays_by_hand(void **state) {
    (void)state;
    tr_update_function update;
    for (int k = 0; (update = test_update_function(&tr__optimizer_adagrad, k)); k++) {
        float sum = NAN; // 9 + 16
        assert_float_equal(updated(update, &full, 1, &sum), 2 - 2. / 6, 1e-6);
        assert_true(sum == 25);
        sum = 20; // 36; the third update's rate is a quarter
        assert_float_equal(updated(update, &full, 3, &sum), 2 - 1. / 7, 1e-6);
        assert_true(sum == 36);
    }
}

static void as_pytorch_does(void **state) {
    (void)state;
    test_update_golden(&tr__optimizer_adagrad, "adagrad", 1);
    test_update_golden(&tr__optimizer_adagrad, "adagrad_l2", 1);
    test_update_golden(&tr__optimizer_adagrad, "adagrad_l2", 0x1p7);
}

static void fast_agrees_with_reference(void **state) {
    (void)state;
    test_update_agrees(&tr__optimizer_adagrad, &plain, 1, 1e-6);
    test_update_agrees(&tr__optimizer_adagrad, &full, 2, 1e-6);
}

static void cuts_change_no_bit(void **state) {
    (void)state;
    test_update_cuts(&tr__optimizer_adagrad, &full, 1);
    test_update_cuts(&tr__optimizer_adagrad, &full, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),
        cmocka_unit_test(with_decays_by_hand),
        cmocka_unit_test(as_pytorch_does),
        cmocka_unit_test(fast_agrees_with_reference),
        cmocka_unit_test(cuts_change_no_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Adagrad: by hand, against PyTorch, and in pieces.
#include "ops/optimizers/adagrad/adagrad.h"
#include "ops/update.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static tr_hyper plain, full;

static const test_field fields[] = {
    {"eps", offsetof(tr_adagrad_hyper, eps), false},
    {"lr_decay", offsetof(tr_adagrad_hyper, lr_decay), false},
    {"initial_accumulator_value", offsetof(tr_adagrad_hyper, initial_accumulator),
     false},
    {0},
};
static test_golden golden = {.fields = fields, .starts_itself = true};

static int set_up(void **state) {
    const tr_adagrad_hyper bare = {.eps = 1};
    const tr_adagrad_hyper all = {.eps = 1, .initial_accumulator = 9, .lr_decay = 0.5};
    (void)state;
    plain = test_hyper((tr_hyper){.lr = 0.25}, &bare, sizeof bare);
    full = test_hyper((tr_hyper){.lr = 0.5, .weight_decay = 0.5}, &all, sizeof all);
    golden.of = tr__optimizer_settings_find("Adagrad");
    return 0;
}

// One update of p = 2 with gradient 3; with full's decay the gradient is 4.
static float updated(tr_update_kernel *update, const tr_hyper *hyper, int number,
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
    tr_update_kernel *update;
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
    tr_update_kernel *update;
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
    test_update_golden(&golden, "adagrad", 1);
    test_update_golden(&golden, "adagrad_l2", 1);
    test_update_golden(&golden, "adagrad_l2", 0x1p7);
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
    return cmocka_run_group_tests(tests, set_up, NULL);
}

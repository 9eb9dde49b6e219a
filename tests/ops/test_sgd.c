// SGD: by hand, against PyTorch, and in pieces.
#include "ops/optimizers/sgd/sgd.h"
#include "ops/update.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static tr_hyper plain, heavy, nesterov;

static const test_field fields[] = {
    {"momentum", offsetof(tr_sgd_hyper, momentum.decay), false},
    {"dampening", offsetof(tr_sgd_hyper, dampening), false},
    {"nesterov", offsetof(tr_sgd_hyper, momentum.nesterov), true},
    {0},
};
static test_golden golden = {.fields = fields, .starts_itself = true};

static tr_hyper with(tr_sgd_hyper own) {
    return test_hyper((tr_hyper){.lr = 0.25, .weight_decay = 0.5}, &own, sizeof own);
}

static int set_up(void **state) {
    (void)state;
    plain = with((tr_sgd_hyper){0});
    heavy = with((tr_sgd_hyper){.momentum = {.decay = 0.5}, .dampening = 0.25});
    nesterov = with((tr_sgd_hyper){.momentum = {.decay = 0.5, .nesterov = true}});
    golden.of = tr__optimizer_settings_find("SGD");
    return 0;
}

// One update of p = 2 with gradient 3; with the decay the gradient is 4.
static float updated(tr_update_kernel *update, const tr_hyper *hyper, int number,
                     float *buffer) {
    float p = 2, g = 6;
    tr_update one = {
        .param = &p,
        .grad = &g,
        .state = {buffer},
        .count = 1,
        .grad_scale = 0.5,
        .number = number,
    };
    update(hyper, &one);
    return p;
}

static void without_momentum_no_buffer(void **state) {
    (void)state;
    tr_update_kernel *update;
    for (int k = 0; (update = test_update_function(&tr__optimizer_sgd, k)); k++) {
        assert_true(updated(update, &plain, 1, NULL) == 1);
        assert_true(updated(update, &plain, 2, NULL) == 1);
    }
}

static void momentum_by_hand(void **state) {
    (void)state;
    tr_update_kernel *update;
    for (int k = 0; (update = test_update_function(&tr__optimizer_sgd, k)); k++) {
        float buffer = NAN; // not read by the first update
        assert_true(updated(update, &heavy, 1, &buffer) == 1 && buffer == 4);
        buffer = 6; // 6/2 + 4 * 3/4
        assert_true(updated(update, &heavy, 2, &buffer) == 0.5f && buffer == 6);
    }
}

static void nesterov_by_hand(void **state) {
    (void)state;
    tr_update_kernel *update;
    for (int k = 0; (update = test_update_function(&tr__optimizer_sgd, k)); k++) {
        float buffer = NAN;
        // The buffer is 4, the direction 4 + 4/2.
        assert_true(updated(update, &nesterov, 1, &buffer) == 0.5f && buffer == 4);
        // The buffer is 8/2 + 4, the direction 4 + 8/2.
        buffer = 8;
        assert_true(updated(update, &nesterov, 2, &buffer) == 0 && buffer == 8);
    }
}

static void as_pytorch_does(void **state) {
    (void)state;
    static const char *const names[] = {"sgd", "sgd_l2", "sgd_momentum",
                                        "sgd_dampening", "sgd_nesterov"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        test_update_golden(&golden, names[i], 1);
        test_update_golden(&golden, names[i], 0x1p7);
    }
}

static void fast_agrees_with_reference(void **state) {
    (void)state;
    test_update_agrees(&tr__optimizer_sgd, &plain, 1, 1e-6);
    test_update_agrees(&tr__optimizer_sgd, &heavy, 1, 1e-6);
    test_update_agrees(&tr__optimizer_sgd, &heavy, 2, 1e-6);
    test_update_agrees(&tr__optimizer_sgd, &nesterov, 2, 1e-6);
}

static void cuts_change_no_bit(void **state) {
    (void)state;
    test_update_cuts(&tr__optimizer_sgd, &plain, 1);
    test_update_cuts(&tr__optimizer_sgd, &heavy, 1);
    test_update_cuts(&tr__optimizer_sgd, &nesterov, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_momentum_no_buffer),
        cmocka_unit_test(momentum_by_hand),
        cmocka_unit_test(nesterov_by_hand),
        cmocka_unit_test(as_pytorch_does),
        cmocka_unit_test(fast_agrees_with_reference),
        cmocka_unit_test(cuts_change_no_bit),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}

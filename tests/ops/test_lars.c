// LARS: by hand, against timm's, and in pieces.
#include "ops/optimizers/lars/lars.h"
#include "ops/update.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static tr_hyper plain, heavy, nesterov;

static const test_field fields[] = {
    {"eps", offsetof(tr_lars_hyper, eps), false},
    {"momentum", offsetof(tr_lars_hyper, momentum.decay), false},
    {"nesterov", offsetof(tr_lars_hyper, momentum.nesterov), true},
    {"trust_coefficient", offsetof(tr_lars_hyper, trust_coefficient), false},
    {0},
};
static test_golden golden = {.fields = fields, .starts_itself = true};

static tr_hyper with(tr_lars_hyper own) {
    return test_hyper((tr_hyper){.lr = 0.5, .weight_decay = 0.5}, &own, sizeof own);
}

static int set_up(void **state) {
    (void)state;
    plain = with((tr_lars_hyper){0});
    heavy =
        with((tr_lars_hyper){.momentum = {.decay = 0.5}, .trust_coefficient = 0.25});
    nesterov = with((tr_lars_hyper){.momentum = {.decay = 0.5, .nesterov = true}});
    golden.of = tr__optimizer_settings_find("LARS");
    return 0;
}

// One update of p = 2 with gradient 3, with the decay 4, at trust 1/4.
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
        .trust = 0.25,
    };
    update(hyper, &one);
    return p;
}

static void by_hand(void **state) {
    (void)state;
    tr_update_kernel *update;
    for (int k = 0; (update = test_update_function(&tr__optimizer_lars, k)); k++) {
        assert_true(updated(update, &plain, 1, NULL) == 1.5f);
        float buffer = NAN; // not read by the first update
        assert_true(updated(update, &heavy, 1, &buffer) == 1.5f && buffer == 0.5f);
        buffer = 3; // 3/2 + 4/8
        assert_true(updated(update, &heavy, 2, &buffer) == 0 && buffer == 2);
        buffer = 1; // 1/2 + 4/8, of which half, and 4/8
        assert_true(updated(update, &nesterov, 2, &buffer) == 1 && buffer == 1);
    }
}

static void direction_is_the_gradient(void **state) {
    (void)state;
    for (int k = 0; test_update_function(&tr__optimizer_lars, k); k++) {
        float p[3] = {1, 2, 3}, g[3] = {2, -4, 6}, d[3];
        tr_update update = {.param = p, .grad = g, .count = 3, .grad_scale = 0.5};
        test_update_direct(&tr__optimizer_lars, k)(&plain, &update, d);
        assert_true(d[0] == 1 && d[1] == -2 && d[2] == 3);
        assert_true(p[0] == 1 && p[1] == 2 && p[2] == 3);
    }
}

static void trust_ratios(void **state) {
    (void)state;
    double (*trust)(const tr_hyper *, double, double) =
        tr__optimizer_lars.adaptation->trust;
    tr_hyper hyper = with((tr_lars_hyper){.eps = 8, .trust_coefficient = 0.25});
    assert_true(trust(&heavy, 4, 6) == 0.125); // 1 / (6 + 2)
    assert_true(trust(&hyper, 4, 6) == 0.0625);
    assert_true(trust(&hyper, 0, 6) == 1 && trust(&hyper, 4, 0) == 1);
}

static void as_timm_does(void **state) {
    (void)state;
    test_update_golden(&golden, "lars", 1);
    test_update_golden(&golden, "lars", 0x1p7);
    test_update_golden(&golden, "lars_nesterov", 1);
    test_update_golden(&golden, "lars_zero", 1);
    test_update_golden(&golden, "lars_still", 1);
}

static void fast_agrees_with_reference(void **state) {
    (void)state;
    test_update_agrees(&tr__optimizer_lars, &plain, 1, 1e-6);
    test_update_agrees(&tr__optimizer_lars, &heavy, 1, 1e-6);
    test_update_agrees(&tr__optimizer_lars, &heavy, 2, 1e-6);
    test_update_agrees(&tr__optimizer_lars, &nesterov, 2, 1e-6);
}

static void cuts_change_no_bit(void **state) {
    (void)state;
    test_update_cuts(&tr__optimizer_lars, &plain, 1);
    test_update_cuts(&tr__optimizer_lars, &heavy, 1);
    test_update_cuts(&tr__optimizer_lars, &nesterov, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),
        cmocka_unit_test(direction_is_the_gradient),
        cmocka_unit_test(trust_ratios),
        cmocka_unit_test(as_timm_does),
        cmocka_unit_test(fast_agrees_with_reference),
        cmocka_unit_test(cuts_change_no_bit),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}

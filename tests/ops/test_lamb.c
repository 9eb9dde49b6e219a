// LAMB: by hand and against those of torch_optimizer and timm.
#include "ops/optimizers/lamb/lamb.h"
#include "ops/update.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static const tr_lamb_hyper own = {
    .eps = 1, .min_coeff = 0.01, .max_coeff = 10, .bias_correction = true};
static const tr_lamb_hyper paper_own = {
    .eps = 1, .max_coeff = INFINITY, .bias_correction = true, .corrected = true};
static tr_hyper deepspeed, paper;

static const test_field fields[] = {
    {"eps", offsetof(tr_lamb_hyper, eps), false},
    {"corrected", offsetof(tr_lamb_hyper, corrected), true},
    {"min_coeff", offsetof(tr_lamb_hyper, min_coeff), false},
    {"max_coeff", offsetof(tr_lamb_hyper, max_coeff), false},
    {0},
};
static test_golden golden = {.fields = fields};

static tr_hyper with(tr_lamb_hyper numbers) {
    tr_hyper shared = {.lr = 0.25, .weight_decay = 0.5, .beta1 = 0.5, .beta2 = 0.75};
    return test_hyper(shared, &numbers, sizeof numbers);
}

static int set_up(void **state) {
    (void)state;
    deepspeed = with(own);
    paper = with(paper_own);
    golden.of = tr__optimizer_settings_find("Lamb");
    golden.hyper =
        with((tr_lamb_hyper){.max_coeff = INFINITY, .bias_correction = true});
    return 0;
}

// Two elements, p = (3, 4), with gradient (3, 0), m = 1, v = (1.75 / 0.75, 0).
typedef struct pair {
    float p[2], g[2], m[2], v[2], u[2];
    tr_update update;
} pair;

static void pair_make(pair *x, const tr_hyper *hyper, int number) {
    *x = (pair){.p = {3, 4}, .g = {6, 0}, .m = {1, 1}, .v = {7.f / 3, 0}};
    x->update = (tr_update){
        .param = x->p,
        .grad = x->g,
        .state = {x->m, x->v},
        .count = 2,
        .grad_scale = 0.5,
        .number = number,
        .beta1_power = pow(hyper->beta1, number),
        .beta2_power = pow(hyper->beta2, number),
    };
}

// m = 1/2 + 3/2 = 2 and 1/2; v = 7/4 + 9/4 = 4 and 0; u = 2 / (2 + 1) + 3/2 and
// 1/2 + 2. The first update's rate has sqrt(1/4) / (1/2) = 1.
static void deepspeed_by_hand(void **state) {
    (void)state;
    for (int k = 0; test_update_function(&tr__optimizer_lamb, k); k++) {
        pair x;
        pair_make(&x, &deepspeed, 1);
        test_update_direct(&tr__optimizer_lamb, k)(&deepspeed, &x.update, x.u);
        assert_float_equal(x.m[0], 2, 1e-6);
        assert_float_equal(x.v[0], 4, 1e-6);
        assert_true(x.m[1] == 0.5f && x.v[1] == 0);
        assert_float_equal(x.u[0], 2. / 3 + 1.5, 1e-6);
        assert_float_equal(x.u[1], 2.5, 1e-6);
        assert_true(x.p[0] == 3 && x.p[1] == 4); // the first phase changes none
        x.update.trust = 0.5;
        test_update_function(&tr__optimizer_lamb, k)(&deepspeed, &x.update);
        assert_float_equal(x.p[0], 3 - (2. / 3 + 1.5) / 8, 1e-6);
        assert_float_equal(x.p[1], 4 - 2.5 / 8, 1e-6);
        assert_float_equal(x.m[0], 2, 1e-6); // nor the second the states
        assert_float_equal(x.v[0], 4, 1e-6);
    }
}

// Corrected by 1/2 and 1/4: m 4 and 1, sqrt(v) 4 and 0.
static void paper_by_hand(void **state) {
    (void)state;
    for (int k = 0; test_update_function(&tr__optimizer_lamb, k); k++) {
        pair x;
        pair_make(&x, &paper, 1);
        test_update_direct(&tr__optimizer_lamb, k)(&paper, &x.update, x.u);
        assert_float_equal(x.u[0], 4. / 5 + 1.5, 1e-6);
        assert_float_equal(x.u[1], 1 + 2, 1e-6);
        x.update.trust = 2;
        test_update_function(&tr__optimizer_lamb, k)(&paper, &x.update);
        assert_float_equal(x.p[0], 3 - 2.3 / 2, 1e-6);
        assert_float_equal(x.p[1], 4 - 3. / 2, 1e-6);
    }
}

static void without_bias_correction_both_are_one(void **state) {
    (void)state;
    tr_lamb_hyper plain = own, corrected = paper_own;
    plain.bias_correction = corrected.bias_correction = false;
    tr_hyper a = with(plain), b = with(corrected);
    for (int k = 0; test_update_function(&tr__optimizer_lamb, k); k++) {
        pair x, y;
        pair_make(&x, &a, 3);
        pair_make(&y, &b, 3);
        test_update_tensor(&tr__optimizer_lamb, k, &a, &x.update);
        test_update_tensor(&tr__optimizer_lamb, k, &b, &y.update);
        assert_memory_equal(x.p, y.p, sizeof x.p);
        assert_true(x.p[0] != 3);
    }
}

static void trust_ratios(void **state) {
    (void)state;
    double (*trust)(const tr_hyper *, double, double) =
        tr__optimizer_lamb.adaptation->trust;
    assert_true(trust(&deepspeed, 6, 2) == 3);
    assert_true(trust(&deepspeed, 60, 2) == 10 && trust(&paper, 60, 2) == 30);
    assert_true(trust(&deepspeed, 1, 1024) == 0.01);
    assert_true(trust(&paper, 1, 1024) == 1. / 1024);
    assert_true(trust(&deepspeed, 0, 2) == 1 && trust(&deepspeed, 2, 0) == 1);
    assert_true(trust(&paper, 0, 2) == 1 && trust(&paper, NAN, 1) == 1);
}

static void as_others_do(void **state) {
    (void)state;
    static const char *const names[] = {
        "lamb",       "lamb_below",      "lamb_above",       "lamb_zero",
        "lamb_still", "lamb_paper_zero", "lamb_paper_still", "lamb_paper",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        test_update_golden(&golden, names[i], 1);
        test_update_golden(&golden, names[i], 0x1p7);
    }
}

static void fast_agrees_with_reference(void **state) {
    (void)state;
    test_update_agrees(&tr__optimizer_lamb, &deepspeed, 1, 2e-6);
    test_update_agrees(&tr__optimizer_lamb, &deepspeed, 5, 2e-6);
    test_update_agrees(&tr__optimizer_lamb, &paper, 2, 2e-6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deepspeed_by_hand),
        cmocka_unit_test(paper_by_hand),
        cmocka_unit_test(without_bias_correction_both_are_one),
        cmocka_unit_test(trust_ratios),
        cmocka_unit_test(as_others_do),
        cmocka_unit_test(fast_agrees_with_reference),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}

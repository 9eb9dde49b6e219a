// Adam and AdamW: by hand, against PyTorch and against long double.
#include "ops/optimizers/adam/adam.h"
#include "ops/update.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static const tr_adam_hyper own = {
    .eps = 0.125, .decoupled = true, .bias_correction = true};
static tr_hyper adamw;

static const test_field fields[] = {
    {"eps", offsetof(tr_adam_hyper, eps), false},
    {"decoupled", offsetof(tr_adam_hyper, decoupled), true},
    {0},
};
static test_golden golden = {.fields = fields};

static tr_hyper with(tr_adam_hyper numbers) {
    tr_hyper shared = {.lr = 0.25, .weight_decay = 0.5, .beta1 = 0.5, .beta2 = 0.75};
    return test_hyper(shared, &numbers, sizeof numbers);
}

static int set_up(void **state) {
    (void)state;
    adamw = with(own);
    golden.of = tr__optimizer_settings_find("Adam");
    golden.hyper = with((tr_adam_hyper){.bias_correction = true});
    return 0;
}

// One update of p = 2 with gradient 3, m = 1, v = 4.
static float updated(tr_update_kernel *update, const tr_hyper *hyper, int number,
                     float *m, float *v) {
    float p = 2, g = 6;
    *m = 1;
    *v = 4;
    tr_update one = {
        .param = &p,
        .grad = &g,
        .state = {m, v},
        .count = 1,
        .grad_scale = 0.5,
        .number = number,
        .beta1_power = pow(hyper->beta1, number),
        .beta2_power = pow(hyper->beta2, number),
    };
    update(hyper, &one);
    return p;
}

// m = 1/2 + 3/2 = 2, v = 3 + 9/4 = 21/4.
static void adamw_by_hand(void **state) {
    (void)state;
    tr_update_kernel *update;
    for (int k = 0; (update = test_update_function(&tr__optimizer_adam, k)); k++) {
        float m, v;
        float p = updated(update, &adamw, 1, &m, &v);
        assert_true(m == 2 && v == 5.25f);
        // Decayed to 2 (1 - 1/8) = 7/4; bias 1/2 and 1/4, so a step of 1/2 times 2
        // over sqrt(21) + 1/8.
        assert_float_equal(p, 1.75 - 1 / (sqrt(21) + 0.125), 1e-6);
        p = updated(update, &adamw, 2, &m, &v); // bias 3/4 and 7/16
        assert_float_equal(p, 1.75 - 2. / 3 / (sqrt(12) + 0.125), 1e-6);
    }
}

static void without_bias_correction(void **state) {
    (void)state;
    tr_hyper hyper = with((tr_adam_hyper){.eps = own.eps, .decoupled = true});
    tr_update_kernel *update;
    for (int k = 0; (update = test_update_function(&tr__optimizer_adam, k)); k++) {
        float m, v, p = updated(update, &hyper, 1, &m, &v);
        assert_float_equal(p, 1.75 - 0.5 / (sqrt(5.25) + 0.125), 1e-6);
    }
}

// The gradient is 3 + 2/2 = 4: m = 5/2, v = 3 + 4 = 7.
static void adam_with_l2_by_hand(void **state) {
    (void)state;
    tr_hyper hyper = with((tr_adam_hyper){.eps = own.eps, .bias_correction = true});
    tr_update_kernel *update;
    for (int k = 0; (update = test_update_function(&tr__optimizer_adam, k)); k++) {
        float m, v, p = updated(update, &hyper, 1, &m, &v);
        assert_true(m == 2.5f && v == 7);
        assert_float_equal(p, 2 - 1.25 / (sqrt(28) + 0.125), 1e-6);
    }
}

static void as_pytorch_does(void **state) {
    (void)state;
    static const char *const names[] = {"adam", "adam_l2", "adamw", "adamw_betas"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        test_update_golden(&golden, names[i], 1);
        test_update_golden(&golden, names[i], 0x1p-9);
    }
}

// Half a unit in the last place, and what f64 adds to it.
static bool is_rounded(float got, long double want) {
    return fabsl(got - want) <= 0x1.001p-24L * fabsl(want) + 1e-14L;
}

// The reference rounds once: it is the f32 next to the result in long double.
static void reference_against_long_double(void **state) {
    (void)state;
    enum { COUNT = 1000, NUMBER = 3 };
    test_update u, before;
    test_update_open(&u, COUNT);
    test_update_open(&before, COUNT);
    tr_update all = test_update_range(&u, &adamw, NUMBER, 0, COUNT);
    tr_update old = test_update_range(&before, &adamw, NUMBER, 0, COUNT);
    tr__optimizer_adam.reference(&adamw, &all);
    for (int i = 0; i < COUNT; i++) {
        long double g = old.grad[i];
        long double m = adamw.beta1 * (long double)old.state[0][i];
        long double v = adamw.beta2 * (long double)old.state[1][i];
        m += (1 - (long double)adamw.beta1) * g;
        v += (1 - (long double)adamw.beta2) * g * g;
        long double mean = m / (1 - powl(adamw.beta1, NUMBER));
        long double square = v / (1 - powl(adamw.beta2, NUMBER));
        long double p = old.param[i] * (1 - (long double)adamw.lr * adamw.weight_decay);
        p -= adamw.lr * mean / (sqrtl(square) + own.eps);
        assert_true(is_rounded(all.param[i], p));
        assert_true(is_rounded(all.state[0][i], m));
        assert_true(is_rounded(all.state[1][i], v));
    }
    test_update_close(&u);
    test_update_close(&before);
}

static void fast_agrees_with_reference(void **state) {
    (void)state;
    tr_hyper hyper = with((tr_adam_hyper){.eps = 1e-8, .bias_correction = true});
    hyper.beta1 = 0.9;
    hyper.beta2 = 0.999;
    test_update_agrees(&tr__optimizer_adam, &adamw, 1, 1e-6);
    test_update_agrees(&tr__optimizer_adam, &hyper, 1000, 1e-6);
}

static void names_of_states(void **state) {
    (void)state;
    assert_int_equal(tr__optimizer_adam.state_count, 2);
    assert_string_equal(tr__optimizer_adam.states[0].name, "exp_avg");
    assert_string_equal(tr__optimizer_adam.states[1].name, "exp_avg_sq");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adamw_by_hand),
        cmocka_unit_test(without_bias_correction),
        cmocka_unit_test(adam_with_l2_by_hand),
        cmocka_unit_test(as_pytorch_does),
        cmocka_unit_test(reference_against_long_double),
        cmocka_unit_test(fast_agrees_with_reference),
        cmocka_unit_test(names_of_states),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}

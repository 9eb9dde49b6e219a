// Lion: by hand and against DeepSpeed's.
#include "ops/optimizers/lion/lion.h"
#include "ops/update.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static test_golden golden;

static int set_up(void **state) {
    (void)state;
    golden.of = tr__optimizer_settings_find("Lion");
    return 0;
}

static const tr_hyper plain = {.lr = 0.25, .beta1 = 0.5, .beta2 = 0.75};
static const tr_hyper decayed = {
    .lr = 0.25, .weight_decay = 0.5, .beta1 = 0.5, .beta2 = 0.75};

// One update of p = 2 with gradient `g` and a mean of `*m`.
static float updated(tr_update_kernel *update, const tr_hyper *hyper, float g,
                     float *m) {
    float p = 2, doubled = 2 * g;
    tr_update one = {
        .param = &p,
        .grad = &doubled,
        .state = {m},
        .count = 1,
        .grad_scale = 0.5,
        .number = 1,
    };
    update(hyper, &one);
    return p;
}

static void by_hand(void **state) {
    (void)state;
    tr_update_kernel *update;
    for (int k = 0; (update = test_update_function(&tr__optimizer_lion, k)); k++) {
        float m = 4;
        assert_true(updated(update, &plain, 8, &m) == 1.75f && m == 5); // 3 + 2
        m = -4; // outweighs the gradient of 2
        assert_true(updated(update, &plain, 2, &m) == 2.25f && m == -2.5f);
        m = 4; // 2 (1 - 1/8) - 1/4
        assert_true(updated(update, &decayed, 8, &m) == 1.5f && m == 5);
    }
}

// What has no direction does not move, but for the decay; NaN is not hidden.
static void zero_stays(void **state) {
    (void)state;
    tr_update_kernel *update;
    for (int k = 0; (update = test_update_function(&tr__optimizer_lion, k)); k++) {
        float m = 0;
        assert_true(updated(update, &plain, 0, &m) == 2 && m == 0);
        m = 4;
        assert_true(updated(update, &plain, -4, &m) == 2 && m == 2);
        m = 0;
        assert_true(updated(update, &decayed, 0, &m) == 1.75f);
        assert_true(isnan(updated(update, &plain, NAN, &m)) && isnan(m));
    }
}

static void as_deepspeed_does(void **state) {
    (void)state;
    test_update_golden(&golden, "lion", 1);
    test_update_golden(&golden, "lion_decay", 1);
    test_update_golden(&golden, "lion_decay", 0x1p7);
}

static void fast_agrees_with_reference(void **state) {
    (void)state;
    test_update_agrees(&tr__optimizer_lion, &plain, 1, 1e-6);
    test_update_agrees(&tr__optimizer_lion, &decayed, 5, 1e-6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),
        cmocka_unit_test(zero_stays),
        cmocka_unit_test(as_deepspeed_does),
        cmocka_unit_test(fast_agrees_with_reference),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}

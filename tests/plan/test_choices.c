// What making tensors again is said to save and to cost, against plans that do it.
#include "plan/flow/choices.h"
#include "plan/models.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { STEPS = 2 }; // of accumulation

static tr_plan *make(const tr_model *model, const tr_recompute_choice *choice) {
    tr_plan_request request = test_request(model, 3, STEPS);
    request.recomputed_ops = choice->ops;
    request.recomputed_units = choice->units ? -1 : 0;
    return test_plan(&request);
}

static int64_t saved(const tr_plan *plan) {
    int64_t bytes = 0;
    for (int u = 0; u < plan->unit_count; u++) {
        bytes += plan->units[u].recomputed ? 0 : plan->units[u].program->saved_bytes;
    }
    return bytes;
}

// Every choice keeps and costs, to the byte and the operation, what its plan does.
static void compare(const tr_model *model, const tr_recompute_choice *choices,
                    int count) {
    double least = 0;
    for (int i = 0; i < count; i++) {
        tr_plan *plan = make(model, &choices[i]);
        assert_int_equal(saved(plan), choices[i].kept);
        double flops = tr_plan_flops(plan) / STEPS;
        least = i == 0 ? flops : least;
        assert_true(fabs(flops - least - choices[i].flops) <= 1e-9 * flops);
        tr_plan_destroy(plan);
    }
}

static double price(const tr_recompute_choice *a, const tr_recompute_choice *b) {
    return (b->flops - a->flops) / (double)(a->kept - b->kept);
}

static void check_model(const tr_model *model, int least) {
    tr_recompute_choice choices[TR_RECOMPUTE_CHOICES_MAX];
    tr_recompute_choice nothing = {.ops = TR_RECOMPUTE_NOTHING};
    tr_error err = {0};
    int count = 0;
    tr_plan *plan = make(model, &(tr_recompute_choice){.ops = TR_RECOMPUTE_PRODUCT});
    assert_int_equal(tr_plan_recompute_choices(plan, choices, &count, &err), TR_OK);
    tr_plan_destroy(plan);
    assert_true(count >= least && count <= TR_RECOMPUTE_CHOICES_MAX);
    assert_int_equal(choices[0].ops, nothing.ops);
    assert_true(choices[0].flops == 0 && !choices[0].units);
    compare(model, choices, count);
    for (int i = 1; i < count && !choices[i].units; i++) {
        assert_true(choices[i].kept < choices[i - 1].kept);
        // Each class added has the best price there is.
        for (uint32_t bit = 1; bit & TR_RECOMPUTE_ALL; bit <<= 1) {
            uint32_t have = choices[i - 1].ops & TR_RECOMPUTE_ALL;
            tr_recompute_choice all = {0};
            for (int u = 0; u < model->unit_count && !(have & bit); u++) {
                tr_recompute_choice one;
                tr_plan *other = make(model, &nothing);
                assert_int_equal(
                    tr__unit_choice(other, u, have | bit, false, &one, &err), TR_OK);
                tr_plan_destroy(other);
                all.kept += one.kept;
                all.flops += one.flops;
            }
            if (!(have & bit) && all.kept < choices[i - 1].kept) {
                assert_true(price(&choices[i - 1], &all) >=
                            price(&choices[i - 1], &choices[i]) * (1 - 1e-12));
            }
        }
    }
}

static void choices_are_what_their_plans_are(void **state) {
    (void)state;
    tr_model *gpt2 = test_model_small_gpt2(0.1), *mlp = test_model_mlp();
    check_model(gpt2, 6);
    check_model(mlp, 1); // keeps nothing but its boundaries
    tr_model_destroy(gpt2);
    tr_model_destroy(mlp);
}

static void no_choices_without_a_backward(void **state) {
    (void)state;
    tr_recompute_choice choices[TR_RECOMPUTE_CHOICES_MAX];
    tr_model *mlp = test_model_mlp();
    tr_plan_request request = test_request(mlp, 1, 1);
    tr_error err = {0};
    int count = 0;
    request.inference = true;
    tr_plan *plan = test_plan(&request);
    assert_int_equal(tr_plan_recompute_choices(plan, choices, &count, &err), TR_USAGE);
    tr_plan_destroy(plan);
    tr_model_destroy(mlp);
}

static void impossible_classes_are_refused(void **state) {
    (void)state;
    static const tr_plan_request wrong[] = {
        {.recomputed_ops = TR_RECOMPUTE_ALL + 1},
        {.recomputed_ops = TR_RECOMPUTE_NOTHING | TR_RECOMPUTE_NORM},
        {.recomputed_ops_units = -1},
    };
    tr_model *mlp = test_model_mlp();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tr_plan_request request = test_request(mlp, 1, 1);
        tr_error err = {0};
        tr_plan *plan = NULL;
        request.recomputed_ops = wrong[i].recomputed_ops;
        request.recomputed_ops_units = wrong[i].recomputed_ops_units;
        assert_int_equal(tr_plan_make(&request, &plan, &err), TR_USAGE);
    }
    tr_model_destroy(mlp);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(choices_are_what_their_plans_are),
        cmocka_unit_test(no_choices_without_a_backward),
        cmocka_unit_test(impossible_classes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

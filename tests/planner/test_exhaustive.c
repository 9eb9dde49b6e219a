// The planner's choice beside that of a search through all plans.
// Labels: check
#include "draws.h"
#include "plan/models.h"
#include "planner/all_plans.h"
#include "planner/check_choice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

// All plans are many: what is looked at elsewhere is left out.
static tr_planner_request without(tr_planner_request request, unsigned which) {
    request.free &= ~which;
    return request;
}

enum {
    RECOMPUTED_OPS = 1u << TR_DIMENSION_recomputed_ops,
    BOUNDARY = 1u << TR_DIMENSION_boundary_placement,
    SAVED = 1u << TR_DIMENSION_saved_placement,
    AWAY = BOUNDARY | SAVED,
    SLICES = 1u << TR_DIMENSION_vocabulary_slices,
};

static void test_one_rank(void **state) {
    (void)state;
    tr_model *model = test_model_of_four();
    tr_machine *machine = test_slow_machine();
    test_check_budgets(without(test_planner_request(model, machine, 3, 1), SAVED));
    test_check_budgets(without(test_planner_request(model, machine, 4, 1),
                               RECOMPUTED_OPS | BOUNDARY)); // saved activations leave
    test_check_budgets(
        without(test_planner_request(model, machine, 6, 1), RECOMPUTED_OPS | AWAY));
    tr_machine_close(machine);
    tr_model_destroy(model);
}

static void test_two_ranks(void **state) {
    (void)state;
    tr_model *model = test_model_of_four();
    tr_machine *machine = test_slow_machine();
    test_check_budgets(
        without(test_planner_request(model, machine, 4, 2), RECOMPUTED_OPS | AWAY));
    tr_machine_close(machine);
    tr_model_destroy(model);
}

static void test_slices(void **state) {
    (void)state;
    tr_model *model = test_model_of_four();
    tr_machine *machine = test_slow_machine();
    tr_planner_request request =
        without(test_planner_request(model, machine, 2, 2), RECOMPUTED_OPS | AWAY);
    request.sliced = model;
    test_check_budgets(request);
    tr_machine_close(machine);
    tr_model_destroy(model);
}

// Units below the lowest trained one keep nothing, and have no backward to bound.
static void test_frozen(void **state) {
    static const char *const low[] = {"*w?e*", "*.h.0.*"}, *const part[] = {"*.h.1.*"};
    (void)state;
    tr_model *model = test_model_of_four();
    tr_machine *machine = test_slow_machine();
    tr_planner_request request =
        without(test_planner_request(model, machine, 3, 1), RECOMPUTED_OPS | SAVED);
    request.plan.frozen = low;
    request.plan.frozen_count = 2;
    test_check_budgets(request);
    request =
        without(test_planner_request(model, machine, 4, 2), RECOMPUTED_OPS | AWAY);
    request.plan.frozen = part;
    request.plan.frozen_count = 1;
    test_check_budgets(request);
    tr_machine_close(machine);
    tr_model_destroy(model);
}

static void test_reproducible(void **state) {
    (void)state;
    tr_model *model = test_model_of_four();
    tr_machine *machine = test_slow_machine();
    tr_planner_request request =
        without(test_planner_request(model, machine, 3, 1), RECOMPUTED_OPS | SAVED);
    request.plan.reproducible = true;
    test_check_budgets(request);
    tr_machine_close(machine);
    tr_model_destroy(model);
}

static tr_planner_request on_nvme(const tr_model *model, const tr_machine *machine) {
    tr_planner_request request =
        without(test_planner_request(model, machine, 2, 1), RECOMPUTED_OPS | AWAY);
    request.budget[TR_SPACE_NVME] = TR_UNLIMITED;
    return request;
}

static void test_nvme(void **state) {
    (void)state;
    tr_model *model = test_model_of_four();
    tr_machine *machine = test_slow_machine();
    test_check_budgets(on_nvme(model, machine));
    tr_machine_close(machine);
    tr_model_destroy(model);
}

static void test_bounds(void **state) {
    (void)state;
    tr_model *model = test_model_of_four();
    tr_machine *machine = test_slow_machine();
    for (int64_t ranks = 1; ranks <= 2; ranks++) {
        tr_planner_request request =
            test_planner_request(model, machine, 2 * ranks, ranks);
        test_check_bounds(&request);
        request = without(request, RECOMPUTED_OPS | AWAY);
        request.plan.reproducible = true;
        test_check_bounds(&request);
        request.plan.reproducible = false;
        request.sliced = model;
        test_check_bounds(&request);
    }
    tr_planner_request request = on_nvme(model, machine);
    test_check_bounds(&request);
    tr_machine_close(machine);
    tr_model_destroy(model);
}

// A step of pairs may be gone through in two passes.
static void test_pairs(void **state) {
    enum { PAIRS = 8 };
    (void)state;
    tr_model *model = test_model_pairs(0, PAIRS);
    tr_machine *machine = test_slow_machine();
    for (int64_t ranks = 1; ranks <= 2; ranks++) {
        tr_planner_request request =
            without(test_planner_request(model, machine, PAIRS, ranks),
                    RECOMPUTED_OPS | AWAY | SLICES);
        request.sliced = model;
        test_check_bounds(&request);
        test_check_budgets(request);
        request.plan.reproducible = true;
        test_check_bounds(&request);
    }
    tr_machine_close(machine);
    tr_model_destroy(model);
}

int main(void) {
    // All plans of a request are the planner's figures again and again: of the memory
    // that they touch a sanitizer sees all in these.
    const struct CMUnitTest few[] = {cmocka_unit_test(test_bounds),
                                     cmocka_unit_test(test_two_ranks)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds),    cmocka_unit_test(test_one_rank),
        cmocka_unit_test(test_two_ranks), cmocka_unit_test(test_slices),
        cmocka_unit_test(test_frozen),    cmocka_unit_test(test_reproducible),
        cmocka_unit_test(test_nvme),      cmocka_unit_test(test_pairs),
    };
    return TEST_SANITIZED ? cmocka_run_group_tests(few, NULL, NULL)
                          : cmocka_run_group_tests(tests, NULL, NULL);
}

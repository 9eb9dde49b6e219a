// The planner's choice beside that of a search through all plans.
// Labels: check
#include "draws.h"
#include "plan/models.h"
#include "planner/all_plans.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

// What the planner takes for the same time.
#define SAME 1.001

static tr_planned *choose(const tr_planner_request *request) {
    tr_planned *planned = NULL;
    tr_error err = {0};
    if (tr_planner_choose(request, &planned, &err) != TR_OK) {
        fail_msg("%s", err.message);
    }
    return planned;
}

static void check_choice(const tr_planner_request *request, const test_plans *plans) {
    tr_limits limits = tr__planner_limits(request);
    const tr_planner_option *best = test_fastest(plans, &limits);
    tr_error err = {0};
    tr_planned *planned = NULL;
    if (!best) {
        assert_int_equal(tr_planner_choose(request, &planned, &err), TR_BUDGET);
        return;
    }
    planned = choose(request);
    const tr_planner_option *choice = tr_planned_choice(planned);
    int64_t excess[TR_BUDGETS];
    assert_int_equal(tr__limits_excess(&limits, choice->bytes, excess), 0);
    if (choice->seconds > SAME * best->seconds) {
        fail_msg("chosen %g s (m %d, wave %d, %d again), best %g s (m %d, wave %d, %d "
                 "again), device %lld",
                 choice->seconds, (int)choice->value[0],
                 (int)choice->value[TR_DIMENSION_wave],
                 (int)choice->value[TR_DIMENSION_recomputed_units], best->seconds,
                 (int)best->value[0], (int)best->value[TR_DIMENSION_wave],
                 (int)best->value[TR_DIMENSION_recomputed_units],
                 (long long)limits.most[TR_SPACE_DEVICE]);
    }
    assert_int_equal(tr_planned_smallest(planned)->bytes[TR_SPACE_DEVICE],
                     test_smallest_device(plans, &limits));
    tr_planned_destroy(planned);
}

// From what the largest plan takes of the device to what the smallest does not.
static void check_budgets(tr_planner_request request) {
    test_plans plans = test_all_plans(&request);
    tr_limits none = tr__planner_limits(&request);
    int64_t least = test_smallest_device(&plans, &none);
    const tr_planner_option *most = test_fastest(&plans, &none);
    int64_t range = most->bytes[TR_SPACE_DEVICE] - least;
    for (int i = -1; i <= 6; i++) {
        request.budget[TR_SPACE_DEVICE] = least + range * i / 6;
        check_choice(&request, &plans);
    }
    request.budget[TR_SPACE_DEVICE] = least + range / 3;
    for (int i = 0; i < 4; i++) { // with little on the host, too
        request.budget[TR_SPACE_HOST] = TR_PROCESS_BYTES + i * 40000;
        check_choice(&request, &plans);
    }
    request.budget[TR_SPACE_DEVICE] = request.budget[TR_SPACE_HOST] = TR_UNLIMITED;
    request.together = TR_PROCESS_BYTES + least + range / 2;
    check_choice(&request, &plans);
    test_plans_free(&plans);
}

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
    check_budgets(without(test_planner_request(model, machine, 3, 1), SAVED));
    check_budgets(without(test_planner_request(model, machine, 4, 1),
                          RECOMPUTED_OPS | BOUNDARY)); // saved activations leave
    check_budgets(
        without(test_planner_request(model, machine, 6, 1), RECOMPUTED_OPS | AWAY));
    tr_machine_close(machine);
    tr_model_destroy(model);
}

static void test_two_ranks(void **state) {
    (void)state;
    tr_model *model = test_model_of_four();
    tr_machine *machine = test_slow_machine();
    check_budgets(
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
    check_budgets(request);
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
    check_budgets(request);
    request =
        without(test_planner_request(model, machine, 4, 2), RECOMPUTED_OPS | AWAY);
    request.plan.frozen = part;
    request.plan.frozen_count = 1;
    check_budgets(request);
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
    check_budgets(request);
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
    check_budgets(on_nvme(model, machine));
    tr_machine_close(machine);
    tr_model_destroy(model);
}

// What is said of a plan without making it is never more than it takes.
static void check_bounds(const tr_planner_request *request) {
    tr_search *search = NULL;
    tr_error err = {0};
    assert_int_equal(tr__search_begin(request, request->free, &search, &err), TR_OK);
    assert_true(search->group_count > 0);
    for (size_t g = 0; g < search->group_count; g++) {
        for (size_t rung = 0; rung < search->ladder_count; rung++) {
            tr_point point = tr__group_point(search, &search->groups[g], rung);
            tr_bound bound = tr__bound(search, &search->groups[g], rung);
            tr_made made;
            assert_int_equal(tr__search_make(search, &point, &made, &err), TR_OK);
            if (!made.possible) {
                continue;
            }
            char words[256];
            tr__point_say(&point, request->free, words, sizeof words);
            for (int s = 0; s < TR_SPACES; s++) {
                if (bound.bytes[s] > made.option.bytes[s]) {
                    fail_msg("%s: %s at least %lld, is %lld", words,
                             tr_space_name((tr_space)s), (long long)bound.bytes[s],
                             (long long)made.option.bytes[s]);
                }
            }
            if (bound.seconds > made.option.seconds * (1 + 1e-9)) {
                fail_msg("%s: at least %g s, is %g s", words, bound.seconds,
                         made.option.seconds);
            }
        }
    }
    tr__search_end(search);
}

static void test_bounds(void **state) {
    (void)state;
    tr_model *model = test_model_of_four();
    tr_machine *machine = test_slow_machine();
    for (int64_t ranks = 1; ranks <= 2; ranks++) {
        tr_planner_request request =
            test_planner_request(model, machine, 2 * ranks, ranks);
        check_bounds(&request);
        request = without(request, RECOMPUTED_OPS | AWAY);
        request.plan.reproducible = true;
        check_bounds(&request);
        request.plan.reproducible = false;
        request.sliced = model;
        check_bounds(&request);
    }
    tr_planner_request request = on_nvme(model, machine);
    check_bounds(&request);
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
        check_bounds(&request);
        check_budgets(request);
        request.plan.reproducible = true;
        check_bounds(&request);
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

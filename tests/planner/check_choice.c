#include "planner/check_choice.h"

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
        char chosen[256], fastest[256];
        tr_point point = tr__point_of(request, choice->value);
        tr__point_say(&point, request->free, chosen, sizeof chosen);
        point = tr__point_of(request, best->value);
        tr__point_say(&point, request->free, fastest, sizeof fastest);
        fail_msg("chosen %g s (%s), best %g s (%s), device %lld", choice->seconds,
                 chosen, best->seconds, fastest,
                 (long long)limits.most[TR_SPACE_DEVICE]);
    }
    assert_int_equal(tr_planned_smallest(planned)->bytes[TR_SPACE_DEVICE],
                     test_smallest_device(plans, &limits));
    tr_planned_destroy(planned);
}

// From what the largest plan takes of the device to what the smallest does not.
void test_check_budgets(tr_planner_request request) {
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

static void check_bound(const char *words, const char *which, const tr_bound *bound,
                        const tr_planner_option *is) {
    for (int s = 0; s < TR_SPACES; s++) {
        if (bound->bytes[s] > is->bytes[s]) {
            fail_msg("%s: %s at least %lld, is %lld", words, tr_space_name((tr_space)s),
                     (long long)bound->bytes[s], (long long)is->bytes[s]);
        }
    }
    if (bound->seconds > is->seconds * (1 + 1e-9)) {
        fail_msg("%s: %s bound: at least %g s, is %g s", words, which, bound->seconds,
                 is->seconds);
    }
}

// What is said of a plan without making it is never more than it takes.
bool test_check_bounds(const tr_planner_request *request) {
    bool possible = false;
    tr_search *search = NULL;
    tr_error err = {0};
    assert_int_equal(tr__search_begin(request, request->free, &search, &err), TR_OK);
    assert_true(search->group_count > 0);
    for (size_t g = 0; g < search->group_count; g++) {
        for (size_t rung = 0; rung < tr__group_rungs(search, &search->groups[g]);
             rung++) {
            tr_point point = tr__group_point(search, &search->groups[g], rung);
            tr_bound bound = tr__bound(search, &search->groups[g], rung);
            tr_made made;
            assert_int_equal(tr__search_make(search, &point, NULL, &made, &err), TR_OK);
            if (!made.possible) {
                continue;
            }
            possible = true;
            char words[256];
            tr__point_say(&point, request->free, words, sizeof words);
            check_bound(words, "quick", &bound, &made.option);
            bound = tr__bound_close(search, &search->groups[g], rung);
            check_bound(words, "close", &bound, &made.option);
        }
    }
    tr__search_end(search);
    return possible;
}

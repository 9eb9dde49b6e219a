// The proof of plans. On requests drawn at random it accepts every plan, and so does
// the older check of the steps.
#include "plan/check.h"
#include "plan/drawn.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { DRAWS = 10000 };

static void drawn_plans_are_proved(void **state) {
    test_models models;
    int plans = 0;
    (void)state;
    test_models_make(&models);
    for (uint64_t i = 0; i < DRAWS; i++) {
        tr_plan_request request = test_draw_request(&models, i);
        tr_plan *plan = NULL;
        tr_error err = {0};
        tr_status status = tr_plan_make(&request, &plan, &err); // with the proof
        if (status == TR_USAGE) {
            continue;
        }
        plans++;
        if (status != TR_OK || tr__plan_check_walk(plan, &err) != TR_OK) {
            fail_msg("request %d: %s", (int)i, err.message);
        }
        tr_plan_destroy(plan);
    }
    test_models_destroy(&models);
    print_message("%d plans\n", plans);
    assert_true(plans > DRAWS / 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(drawn_plans_are_proved)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

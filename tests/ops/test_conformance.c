// Every op against its reference, every reference against finite differences.
// Labels: check
#include "ops/carried.h"
#include "ops/conformance.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

// Those of every folder of ops (the build finds them).
#define CASES(name) extern const tr_case_list tr__cases_##name;
#include "case_lists.inc"
#undef CASES
#define CASES(name) &tr__cases_##name,
static const tr_case_list *const lists[] = {
#include "case_lists.inc"
};
#undef CASES

enum { LISTS = sizeof lists / sizeof *lists };

static void kernels_conform(void **state) {
    assert_int_equal(test_conform(*state), 0);
}

static void wrong_shapes_are_refused(void **state) {
    assert_int_equal(test_conform_refusals(*state), 0);
}

static void nan_and_infinity_are_carried(void **state) {
    assert_int_equal(test_conform_carried(*state, TR_BACKEND_CPU), 0);
}

// An argument, such as "NaN*", names the tests that are made; none: all are.
int main(int count, char **given) {
    struct CMUnitTest tests[3 * LISTS];
    for (int i = 0; i < LISTS; i++) {
        tests[3 * i] = (struct CMUnitTest){.name = lists[i]->op_name,
                                           .test_func = kernels_conform,
                                           .initial_state = (void *)lists[i]};
        tests[3 * i + 1] = (struct CMUnitTest){.name = "wrong shapes are refused",
                                               .test_func = wrong_shapes_are_refused,
                                               .initial_state = (void *)lists[i]};
        tests[3 * i + 2] =
            (struct CMUnitTest){.name = "NaN and infinity are carried",
                                .test_func = nan_and_infinity_are_carried,
                                .initial_state = (void *)lists[i]};
    }
    cmocka_set_test_filter(count > 1 ? given[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

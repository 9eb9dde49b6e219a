// The kernels of the CUDA backend against the references, on a device of the host's
// memory and threads, in both orders of threads; or on a GPU (on_gpu.sh), where all
// cases are small enough, and threads have no order. Operands are in pinned memory.
#include "draws.h"
#include "ops/apply.h"
#include "ops/carried.h"
#include "ops/conformance.h"
#include "ops/launch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CASES(name) extern const tr_case_list tr__cases_##name;
#include "case_lists.inc"
#undef CASES
#define CASES(name) &tr__cases_##name,
static const tr_case_list *const lists[] = {
#include "case_lists.inc"
};
#undef CASES

enum { LISTS = sizeof lists / sizeof *lists };

// Cases whose largest input has more are left to GPUs: attention over several tiles of
// each head has some 100,000, a head whose products are large 131,584. A sanitizer sees
// the same accesses in both orders. Without one, f32 is tried in both, bf16 in
// ascending and f16 in descending order: barriers of 16-bit kernels are those of one
// source.
enum { MOST_BYTES = TEST_DRAWS(132000, 40000), ORDERS = TEST_DRAWS(2, 1) };

static void kernels_conform(void **state) {
    const tr_case_list *list = *state;
    int large = 0;
    int64_t before = test_apply_launches[TR_BACKEND_CUDA];
    bool gpu = getenv("TR_TEST_GPU");
    int64_t most = gpu ? INT64_MAX : MOST_BYTES;
    bool both = !gpu && ORDERS > 1; // a GPU's threads have no order
    unsetenv("TR_CUDA_DESCENDING");
    assert_int_equal(
        test_conform_on(list, TR_BACKEND_CUDA, most, both ? TR_F16 : TR_NONE, &large),
        0);
    if (test_apply_launches[TR_BACKEND_CUDA] == before) {
        print_message("%s: the backend has no kernel\n", list->op_name);
        skip();
    }
    assert_int_equal(test_conform_carried(list, TR_BACKEND_CUDA), 0);
    if (both) {
        setenv("TR_CUDA_DESCENDING", "1", 1);
        assert_int_equal(test_conform_on(list, TR_BACKEND_CUDA, most, TR_BF16, &large),
                         0);
    }
    if (large > 0) {
        print_message("%s: %d cases are too large for threads in turns\n",
                      list->op_name, large);
    }
}

static int open_backend(void **state) {
    (void)state;
    return test_open_backend(TR_BACKEND_CUDA);
}

static int list_ops(void) {
    for (int i = 0; i < LISTS; i++) {
        printf("%s\n", lists[i]->op_name);
    }
    return 0;
}

// An argument, such as "atten*", names the ops that are tried; none: all are. --list
// prints their names.
int main(int count, char **given) {
    struct CMUnitTest tests[LISTS];
    for (int i = 0; i < LISTS; i++) {
        tests[i] = (struct CMUnitTest){.name = lists[i]->op_name,
                                       .test_func = kernels_conform,
                                       .initial_state = (void *)lists[i]};
    }
    if (count > 1 && strcmp(given[1], "--list") == 0) {
        return list_ops();
    }
    cmocka_set_test_filter(count > 1 ? given[1] : NULL);
    return cmocka_run_group_tests(tests, open_backend, NULL);
}

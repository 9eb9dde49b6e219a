// Every op against its reference, every reference against finite differences.
// Labels: check
#include "ops/conformance.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

extern const tr_case_list tr__cases_accumulate;
extern const tr_case_list tr__cases_attention;
extern const tr_case_list tr__cases_batch_norm;
extern const tr_case_list tr__cases_batch_stat;
extern const tr_case_list tr__cases_cast;
extern const tr_case_list tr__cases_conv2d;
extern const tr_case_list tr__cases_copy;
extern const tr_case_list tr__cases_dropout;
extern const tr_case_list tr__cases_embedding;
extern const tr_case_list tr__cases_gelu;
extern const tr_case_list tr__cases_gradient_squares;
extern const tr_case_list tr__cases_head;
extern const tr_case_list tr__cases_head_slice;
extern const tr_case_list tr__cases_head_slice_loss;
extern const tr_case_list tr__cases_layer_norm;
extern const tr_case_list tr__cases_linear;
extern const tr_case_list tr__cases_pool;
extern const tr_case_list tr__cases_relu;
extern const tr_case_list tr__cases_residual;
extern const tr_case_list tr__cases_rms_norm;
extern const tr_case_list tr__cases_shortcut;
extern const tr_case_list tr__cases_sum_of_squares;
extern const tr_case_list tr__cases_zero;

static const tr_case_list *const lists[] = {
    &tr__cases_accumulate,
    &tr__cases_attention,
    &tr__cases_cast,
    &tr__cases_copy,
    &tr__cases_dropout,
    &tr__cases_embedding,
    &tr__cases_gelu,
    &tr__cases_gradient_squares,
    &tr__cases_head,
    &tr__cases_layer_norm,
    &tr__cases_linear,
    &tr__cases_relu,
    &tr__cases_residual,
    &tr__cases_head_slice,
    &tr__cases_head_slice_loss,
    &tr__cases_batch_norm,
    &tr__cases_batch_stat,
    &tr__cases_conv2d,
    &tr__cases_pool,
    &tr__cases_rms_norm,
    &tr__cases_shortcut,
    &tr__cases_sum_of_squares,
    &tr__cases_zero,
};

enum { LISTS = sizeof lists / sizeof *lists };

static void kernels_conform(void **state) {
    assert_int_equal(test_conform(*state), 0);
}

static void wrong_shapes_are_refused(void **state) {
    assert_int_equal(test_conform_refusals(*state), 0);
}

int main(void) {
    struct CMUnitTest tests[2 * LISTS];
    for (int i = 0; i < LISTS; i++) {
        tests[2 * i] = (struct CMUnitTest){.name = lists[i]->op_name,
                                           .test_func = kernels_conform,
                                           .initial_state = (void *)lists[i]};
        tests[2 * i + 1] = (struct CMUnitTest){.name = "wrong shapes are refused",
                                               .test_func = wrong_shapes_are_refused,
                                               .initial_state = (void *)lists[i]};
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// A kernel is found by backend and op: each row of each op's folder, the kernels of the
// asked level and below, and an op's reference where no backend knows the op.
#include "backend/backend.h"
#include "backend/cpu/kernels.h"
#include "ops/nn/relu/relu.h"
#include "ops/operand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void every_row_is_found(void **state) {
    (void)state;
    int rows = 0;
    for (size_t i = 0; tr__cpu_kernel_lists[i]; i++) {
        for (const tr_cpu_kernels *row = tr__cpu_kernel_lists[i]; row->op; row++) {
            assert_ptr_equal(tr__cpu_kernels_of(row->op), row);
            assert_non_null(row->f32[TR_ISA_GENERIC]);
            rows++;
        }
    }
    assert_true(rows > 40); // the lists are not empty
}

static tr_op_desc describe(const tr_op *op, tr_dtype dtype, int level) {
    tr_tensor_desc x = {dtype, TR_SHAPE1(17)};
    return (tr_op_desc){.op = op,
                        .in_count = 1,
                        .out_count = 1,
                        .in = {x},
                        .out = {x},
                        .fresh = 1,
                        .target = {.level = level, .workers = 1}};
}

static void no_kernel_is_above_the_level(void **state) {
    (void)state;
    const tr_cpu_kernels *row = tr__cpu_kernels_of(&tr__op_relu);
    for (int level = -1; level < TR_ISA_COUNT; level++) {
        tr_op_desc desc = describe(&tr__op_relu, TR_F32, level);
        const tr_kernel *want = tr__op_relu.reference;
        for (int isa = 0; isa <= level; isa++) {
            want = row->f32[isa] ? row->f32[isa] : want;
        }
        assert_ptr_equal(tr__kernel_find(&desc), want);
    }
}

static void tensors_of_16_bits_have_their_own(void **state) {
    (void)state;
    const tr_cpu_kernels *row = tr__cpu_kernels_of(&tr__op_relu);
    tr_op_desc desc = describe(&tr__op_relu, TR_F16, TR_ISA_GENERIC);
    assert_ptr_equal(tr__kernel_find(&desc), row->half[2][TR_ISA_GENERIC]);
    desc.target.level = -1;
    assert_ptr_equal(tr__kernel_find(&desc), &tr__widened);
}

static const tr_kernel own_kernel = {.name = "own", .supports = tr__desc_f32};
static const tr_op own = {.name = "own", .reference = &own_kernel};
static const tr_op bare = {.name = "bare"};

static void an_op_of_a_user_runs_by_its_reference(void **state) {
    (void)state;
    for (int level = -1; level < TR_ISA_COUNT; level++) {
        tr_op_desc desc = describe(&own, TR_F32, level);
        assert_null(tr__cpu_kernels_of(&own));
        assert_ptr_equal(tr__kernel_find(&desc), &own_kernel);
        desc = describe(&own, TR_BF16, level);
        assert_ptr_equal(tr__kernel_find(&desc), &tr__widened);
        desc = describe(&own, TR_I64, level); // which it does not support
        assert_null(tr__kernel_find(&desc));
        desc = describe(&bare, TR_F32, level);
        assert_null(tr__kernel_find(&desc));
    }
}

static void backends_have_names(void **state) {
    (void)state;
    for (int i = 0; i < TR_BACKEND_COUNT; i++) {
        const char *name = tr__backend_names[i];
        assert_string_equal(tr__backend((tr_backend_id)i)->name, name);
        assert_int_equal(tr__backend_find(name), i);
    }
    assert_null(tr__backend_names[TR_BACKEND_COUNT]);
    const tr_backend *backend = tr__backend(TR_BACKEND_CPU);
    tr_target here = backend->here(0);
    assert_int_equal(here.backend, TR_BACKEND_CPU);
    assert_int_equal(here.level, tr__cpu_isa());
    assert_true(here.workers >= 1);
    assert_string_equal(tr__target_name(&here), tr__isa_name(tr__cpu_isa()));
    here.level = -1;
    assert_string_equal(tr__target_name(&here), "reference");
    assert_null(backend->level_name(TR_ISA_COUNT));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_found),
        cmocka_unit_test(no_kernel_is_above_the_level),
        cmocka_unit_test(tensors_of_16_bits_have_their_own),
        cmocka_unit_test(an_op_of_a_user_runs_by_its_reference),
        cmocka_unit_test(backends_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

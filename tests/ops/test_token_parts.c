// Parts of a tensor along its tokens: taken, put where they belong, and added, by every
// kernel; the parts of all ranks are the whole.
#include "ops/launch.h"
#include "ops/nn/token_parts/token_parts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SAMPLES = 3, TOKENS = 12, WIDTH = 35, COUNT = SAMPLES * TOKENS * WIDTH };

static const tr_tensor_desc whole = {TR_F32, {3, {SAMPLES, TOKENS, WIDTH}}};

static tr_op_desc describe(const tr_op *op, int64_t ranks, int64_t rank) {
    const tr_token_parts_attr attr = {.ranks = ranks, .rank = rank};
    tr_tensor_desc part = whole;
    part.shape.dim[1] /= ranks;
    bool gathers = op == &tr__op_all_gather;
    tr_op_desc desc = {.op = op,
                       .in_count = 1,
                       .out_count = 1,
                       .in = {gathers ? part : whole},
                       .out = {gathers ? whole : part},
                       .fresh = 1,
                       .accumulate = 1,
                       .target = {.workers = 2}};
    memcpy(desc.attr, &attr, sizeof attr);
    return desc;
}

static void try_kernels(const tr_kernel *take, const tr_kernel *put, int64_t ranks) {
    static float x[COUNT], y[COUNT], part[COUNT];
    int64_t count = COUNT / ranks;
    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)(i + 1);
        y[i] = -1;
    }
    for (int64_t r = 0; r < ranks; r++) {
        tr_op_desc desc = describe(&tr__op_own_part, ranks, r);
        test_launch(take, &desc, &(tr_launch){.in = {x}, .out = {part}});
        assert_memory_equal(part, x + r * count, (size_t)count * sizeof *x);
        test_launch(take, &desc,
                    &(tr_launch){.in = {x}, .out = {part}, .accumulate = 1});
        for (int64_t i = 0; i < count; i++) {
            assert_true(part[i] == 2 * x[r * count + i]);
            part[i] /= 2;
        }
        desc = describe(&tr__op_all_gather, ranks, r);
        test_launch(put, &desc, &(tr_launch){.in = {part}, .out = {y}});
        for (int64_t i = (r + 1) * count; i < COUNT; i++) {
            assert_true(y[i] == -1); // the places of others
        }
    }
    assert_memory_equal(x, y, sizeof x);
}

static void parts_are_the_whole(void **state) {
    const tr_kernel *take, *put;
    int kernels = 0;
    (void)state;
    for (int k = 0; (take = test_kernel(&tr__op_own_part, k)) != NULL; k++) {
        put = test_kernel(&tr__op_all_gather, k);
        assert_non_null(put);
        for (int64_t ranks = 1; ranks <= 4; ranks++) {
            try_kernels(take, put, ranks);
        }
        kernels++;
    }
    assert_true(kernels > 1);
}

static void what_cannot_be_shared_is_refused(void **state) {
    const tr_token_parts_attr attr = {.ranks = 5};
    const tr_op_node node = {
        .op = &tr__op_own_part, .attr = &attr, .in_count = 1, .in = &whole};
    tr_tensor_desc out[TR_OP_OUT_MAX];
    int count = 0;
    tr_error err = {0};
    (void)state;
    assert_int_equal(tr__op_own_part.infer(&node, out, &count, &err), TR_USAGE);
    assert_non_null(strstr(err.message, "5 ranks cannot share the tokens of [3, 12, "));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_the_whole),
        cmocka_unit_test(what_cannot_be_shared_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

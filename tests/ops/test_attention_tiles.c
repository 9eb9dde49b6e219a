// Attention's fast kernels against the reference.
#include "ops/attention_run.h"
#include "ops/launch.h"
#include "ops/nn/attention/attention.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// `allowed` of the largest element.
static void compare(const test_attention *s, const char *what, const test_tensor *got,
                    const test_tensor *want, double allowed) {
    double distance = test_tensor_distance(got, want);
    double size = test_tensor_largest(want);
    if (!(distance <= allowed * size)) { // a NaN too
        fail_msg("%s at B %d, S %d, H %d, D %d, dropout %g, threads %d: %g of %g", what,
                 (int)s->batch, (int)s->context, (int)s->heads, (int)s->depth,
                 (double)s->dropout, s->threads, distance, size);
    }
}

static void check(const test_attention *s, bool add) {
    bool half = s->type == TR_BF16;
    test_attention_inputs inputs = test_attention_inputs_take(s);
    test_attention_results want = test_attention_run(s, 0, &inputs, add);
    int k = 1;
    for (; test_attention_has(s, k); k++) {
        test_attention_results got = test_attention_run(s, k, &inputs, add);
        // bf16: probabilities and results are rounded, by 2^-9 each; the backward's
        // scores and the y that it reads too.
        compare(s, "y", &got.y, &want.y, half ? 0x1p-7 : 1e-5);
        compare(s, "lse", &got.lse, &want.lse, 1e-5);
        compare(s, "dqkv", &got.dqkv, &want.dqkv, half ? 0x1p-6 : 1e-5);
        test_attention_results_give(&got);
    }
    assert_true(k > 1);
    test_attention_results_give(&want);
    test_attention_inputs_give(&inputs);
}

static void check_both(test_attention s, bool add) {
    check(&s, add);
    s.type = TR_BF16;
    check(&s, add);
}

static void odd_sizes(void **state) {
    (void)state;
    const int64_t context[] = {1, 3, 17, 63}, depth[] = {1, 8, 16, 32, 63, 64, 80, 128};
    for (int c = 0; c < 4; c++) {
        for (int d = 0; d < 8; d++) {
            test_attention s = {.batch = 1 + (c + d) % 3,
                                .context = context[c],
                                .heads = 1 + (c + 2 * d) % 4,
                                .depth = depth[d],
                                .dropout = d % 2 ? 0.3f : 0,
                                .threads = 1 + d % 3};
            check_both(s, (c + d) % 2);
        }
    }
}

static void many_tiles(void **state) {
    (void)state;
    const test_attention sizes[] = {
        {1, 257, 1, 64, 0, 2, 0, NULL},    {1, 257, 2, 33, 0.2f, 3, 0, NULL},
        {2, 64, 1, 8, 0.1f, 1, 0, NULL},   {1, 128, 3, 16, 0, 4, 0, NULL},
        {1, 193, 1, 80, 0.5f, 1, 0, NULL}, {3, 65, 2, 16, 0, 5, 0, NULL},
        {1, 257, 1, 8, 0.1f, 8, 0, NULL},  {1, 130, 1, 128, 0, 2, 0, NULL}};
    for (int i = 0; i < 8; i++) {
        check_both(sizes[i], i % 2);
    }
}

// Any number of threads, more than there are heads too: the forward gives the same
// bits, the backward gives them again and again.
static void threads_agree(void **state) {
    (void)state;
    for (int threads = 2; threads <= 16; threads++) {
        test_attention s = {1, 200, 3, 48, 0.1f, threads, 0, NULL}, one = s;
        one.threads = 1;
        test_attention_inputs in = test_attention_inputs_take(&s);
        for (int k = 1; test_kernel(&tr__op_attention, k) != NULL; k++) {
            test_attention_results a = test_attention_run(&one, k, &in, false);
            test_attention_results b = test_attention_run(&s, k, &in, false);
            test_attention_results c = test_attention_run(&s, k, &in, false);
            assert_true(test_tensor_same_bits(&a.y, &b.y));
            assert_true(test_tensor_same_bits(&a.lse, &b.lse));
            assert_true(test_tensor_same_bits(&b.dqkv, &c.dqkv));
            compare(&s, "dqkv", &b.dqkv, &a.dqkv, 1e-5);
            test_attention_results_give(&a);
            test_attention_results_give(&b);
            test_attention_results_give(&c);
        }
        test_attention_inputs_give(&in);
    }
}

// The mask goes with the global sample: the second of two samples, alone.
static void samples_are_apart(void **state) {
    (void)state;
    test_attention two = {2, 70, 2, 16, 0.4f, 2, 0, NULL}, one = two;
    one.batch = 1;
    tr_op_desc desc = test_attention_describe(&one, false);
    test_attention_inputs in = test_attention_inputs_take(&two);
    int64_t half = tr_shape_count(desc.out[0].shape);
    const tr_kernel *kernel;
    desc.out[1].dtype = TR_NONE;
    for (int k = 0; (kernel = test_kernel(&tr__op_attention, k)) != NULL; k++) {
        test_attention_results all = test_attention_run(&two, k, &in, false);
        test_tensor y = {0};
        test_tensor_take(&y, desc.out[0]);
        tr_run_context later = test_attention_context;
        later.sample++;
        const float *qkv = in.qkv.memory.data, *want = all.y.memory.data;
        tr_launch launch = {
            .in = {qkv + 3 * half}, .out = {y.memory.data}, .run = &later};
        test_launch(kernel, &desc, &launch);
        assert_memory_equal(y.memory.data, want + half, y.memory.bytes);
        test_tensor_give(&y);
        test_attention_results_give(&all);
    }
    test_attention_inputs_give(&in);
}

// Scores far from 0, where exponentials over- or underflow.
static void large_scores(void **state) {
    (void)state;
    test_attention s = {1, 100, 1, 4, 0, 1, 0, NULL};
    test_attention_inputs in = test_attention_inputs_take(&s);
    test_tensor_fill(&in.qkv, 30, 1);
    test_attention_results want = test_attention_run(&s, 0, &in, false);
    for (int k = 1; test_kernel(&tr__op_attention, k) != NULL; k++) {
        test_attention_results got = test_attention_run(&s, k, &in, false);
        // Scores of a thousand are rounded to 2^-14, and so are the exponents.
        double size = test_tensor_largest(&want.y);
        assert_true(test_tensor_distance(&got.y, &want.y) <= 1e-3 * size);
        assert_true(isfinite(test_tensor_largest(&got.dqkv)));
        test_attention_results_give(&got);
    }
    test_attention_results_give(&want);
    test_attention_inputs_give(&in);
}

// A NaN in one key reaches the queries that see it, and no others.
static void not_a_number_is_not_hidden(void **state) {
    (void)state;
    enum { S = 90, D = 4 };
    test_attention s = {1, S, 1, D, 0, 2, 0, NULL};
    test_attention_inputs in = test_attention_inputs_take(&s);
    float *qkv = in.qkv.memory.data;
    qkv[70 * 3 * D + D + 1] = NAN;
    for (int k = 0; test_kernel(&tr__op_attention, k) != NULL; k++) {
        test_attention_results got = test_attention_run(&s, k, &in, false);
        for (int i = 0; i < S * D; i++) {
            assert_true(isnan(test_tensor_at(&got.y, i)) == (i / D >= 70));
        }
        test_attention_results_give(&got);
    }
    test_attention_inputs_give(&in);
}

// ---- documents

// The tensor's rows [first, first + rows) of each sample, as NaNs.
static void poison(test_tensor *tensor, int64_t first, int64_t rows) {
    tr_shape shape = tensor->desc.shape; // [B, S, W]
    int64_t row = shape.dim[2] * (int64_t)tr_dtype_bytes(tensor->desc.dtype);
    for (int64_t b = 0; b < shape.dim[0]; b++) {
        memset((char *)tensor->memory.data + (b * shape.dim[1] + first) * row, 0xFF,
               (size_t)(rows * row));
    }
}

// Are the rows from `first` on the same bits in both?
static void assert_same_rows(const test_tensor *a, const test_tensor *b, int64_t first,
                             const char *what) {
    tr_shape shape = a->desc.shape;
    int64_t row = shape.dim[2] * (int64_t)tr_dtype_bytes(a->desc.dtype);
    for (int64_t s = 0; s < shape.dim[0]; s++) {
        int64_t at = (s * shape.dim[1] + first) * row;
        if (memcmp((char *)a->memory.data + at, (char *)b->memory.data + at,
                   (size_t)((shape.dim[1] - first) * row)) != 0) {
            fail_msg("%s of the second document depends on the first", what);
        }
    }
}

// Two documents that begin with a tile: no tile lies in both. A product with a NaN is a
// NaN, whatever is done with it after, unless it is not computed at all.
static void check_blocks_between(tr_dtype type) {
    enum { BATCH = 2, FIRST = 128, CONTEXT = 300 };
    int32_t positions[BATCH * CONTEXT];
    for (int i = 0; i < BATCH * CONTEXT; i++) {
        int at = i % CONTEXT;
        positions[i] = at < FIRST ? at : at - FIRST;
    }
    const test_attention s = {.batch = BATCH,
                              .context = CONTEXT,
                              .heads = 3,
                              .depth = 32,
                              .threads = 3,
                              .type = type,
                              .positions = positions};
    test_attention_inputs clean = test_attention_inputs_take(&s);
    test_attention_inputs poisoned = test_attention_inputs_take(&s);
    poison(&poisoned.qkv, 0, FIRST);
    poison(&poisoned.dy, 0, FIRST);
    int k = 1;
    for (; test_attention_has(&s, k); k++) {
        test_attention_results a = test_attention_run(&s, k, &clean, false);
        test_attention_results b = test_attention_run(&s, k, &poisoned, false);
        assert_same_rows(&a.y, &b.y, FIRST, "y");
        assert_same_rows(&a.dqkv, &b.dqkv, FIRST, "dqkv");
        test_attention_results_give(&a);
        test_attention_results_give(&b);
    }
    assert_true(k > 1);
    test_attention_inputs_give(&clean);
    test_attention_inputs_give(&poisoned);
}

static void blocks_between_documents_are_not_computed(void **state) {
    (void)state;
    check_blocks_between(TR_F32);
    check_blocks_between(TR_BF16);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_between_documents_are_not_computed),
        cmocka_unit_test(odd_sizes),
        cmocka_unit_test(many_tiles),
        cmocka_unit_test(threads_agree),
        cmocka_unit_test(samples_are_apart),
        cmocka_unit_test(large_scores),
        cmocka_unit_test(not_a_number_is_not_hidden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

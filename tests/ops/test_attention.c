// Attention and its backward: the reference by hand, the fast kernels against it.
#include "base/rng.h"
#include "ops/attention/attention.h"
#include "ops/dropout/draw.h"
#include "ops/launch.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct setting {
    int64_t batch, context, heads, depth;
    float dropout;
    int threads;
} setting;

static tr_op_desc describe(const setting *s, bool backward) {
    int64_t width = s->heads * s->depth;
    tr_tensor_desc qkv = {TR_F32, TR_SHAPE3(s->batch, s->context, 3 * width)};
    tr_tensor_desc y = {TR_F32, TR_SHAPE3(s->batch, s->context, width)};
    tr_tensor_desc lse = {TR_F32, TR_SHAPE3(s->batch, s->heads, s->context)};
    tr_attention_attr attr = {(int32_t)s->heads, s->dropout, 5};
    tr_op_desc desc = {
        .op = &tr__op_attention,
        .in_count = 1,
        .out_count = 2,
        .in = {qkv},
        .out = {y, lse},
        .fresh = 3,
        .accumulate = 3,
        .threads = s->threads,
    };
    if (backward) {
        desc = (tr_op_desc){
            .op = &tr__op_attention_backward,
            .in_count = 4,
            .out_count = 1,
            .in = {y, qkv, y, lse},
            .out = {qkv},
            .fresh = 1,
            .accumulate = 1,
            .threads = s->threads,
        };
    }
    memcpy(desc.attr, &attr, sizeof attr);
    return desc;
}

static const tr_run_context run = {.seed = 11, .step = 3, .sample = 100, .unit = 2};

// ---- by hand

static void near(float got, double want) {
    if (!(fabs(got - want) < 1e-6)) {
        fail_msg("%.9g, not %.9g", (double)got, want);
    }
}

// Two places, one head of one column: q = {2, 1}, k = {3, 1}, v = {5, 7}. The second
// query's scores are 3 and 1.
static void forward_by_hand(void **state) {
    (void)state;
    const float qkv[] = {2, 3, 5, 1, 1, 7};
    setting s = {1, 2, 1, 1, 0, 2};
    tr_op_desc desc = describe(&s, false);
    double e = exp(-2.0), p = 1 / (1 + e);
    const tr_kernel *kernel;
    for (int k = 0; (kernel = test_kernel(&tr__op_attention, k)) != NULL; k++) {
        float y[2] = {100, 100}, lse[2] = {200, 200};
        for (uint32_t accumulate = 0; accumulate < 4; accumulate += 3) {
            tr_launch launch = {
                .in = {qkv}, .out = {y, lse}, .accumulate = accumulate, .run = &run};
            test_launch(kernel, &desc, &launch);
            double times = accumulate ? 2 : 1;
            near(y[0] / 8, times * 5 / 8);
            near(y[1] / 8, times * (5 * p + 7 * (1 - p)) / 8);
            near(lse[0] / 8, times * 6 / 8);
            near(lse[1] / 8, times * (3 + log(1 + e)) / 8);
        }
    }
}

// The same places with dy = {1, 10}: p = P(second query, first key), and the score's
// gradient is p (1 - p) (v0 - v1) dy1.
static void backward_by_hand(void **state) {
    (void)state;
    const float qkv[] = {2, 3, 5, 1, 1, 7}, dy[] = {1, 10};
    setting s = {1, 2, 1, 1, 0, 1};
    tr_op_desc desc = describe(&s, true);
    double e = exp(-2.0), p = 1 / (1 + e), g = p * (1 - p) * (5 - 7) * 10;
    float y[2] = {5, (float)(5 * p + 7 * (1 - p))};
    float lse[2] = {6, (float)(3 + log(1 + e))};
    // q0, k0, v0, q1, k1, v1
    double want[] = {0, g * 1, 1 + 10 * p, g * 3 - g * 1, -g * 1, 10 * (1 - p)};
    const tr_kernel *kernel;
    for (int k = 0; (kernel = test_kernel(&tr__op_attention_backward, k)); k++) {
        float dqkv[6] = {9, 9, 9, 9, 9, 9};
        for (uint32_t accumulate = 0; accumulate < 2; accumulate++) {
            tr_launch launch = {.in = {dy, qkv, y, lse},
                                .out = {dqkv},
                                .accumulate = accumulate,
                                .run = &run};
            test_launch(kernel, &desc, &launch);
            for (int i = 0; i < 6; i++) {
                near(dqkv[i] / 16, (accumulate ? 2 : 1) * want[i] / 16);
            }
        }
    }
}

// Equal scores: y is the mean of what is kept, times the scale of the draws.
static void dropout_by_hand(void **state) {
    (void)state;
    enum { S = 40, H = 2 };
    setting s = {2, S, H, 1, 0.5f, 2};
    tr_op_desc desc = describe(&s, false);
    float qkv[2][S][3][H] = {0}, y[2][S][H], lse[2][H][S];
    for (int i = 0; i < 2 * S * H; i++) {
        qkv[i / H / S][i / H % S][2][i % H] = 1;
    }
    const tr_kernel *kernel;
    for (int k = 0; (kernel = test_kernel(&tr__op_attention, k)) != NULL; k++) {
        tr_launch launch = {.in = {qkv}, .out = {y, lse}, .run = &run};
        test_launch(kernel, &desc, &launch);
        for (int i = 0; i < 2 * S * H; i++) {
            int row = i / H / S, query = i / H % S, head = i % H, kept = 0;
            tr_draw draw = tr__draw_open(&run, row, 5, 0.5f);
            for (int key = 0; key <= query; key++) {
                // Groups of 8 queries by 16 keys: 5 down, 3 across.
                int group = (head * 5 + query / 8) * 3 + key / 16;
                int element = group * 128 + query % 8 * 16 + key % 16;
                kept += tr__draw_keep(&draw, (uint64_t)element);
            }
            near(y[row][query][head], 2.0 * kept / (query + 1));
        }
    }
}

// ---- fast kernels against the reference

enum { GUARD = 64 };

typedef struct tensors {
    float *memory, *at;
    int64_t count;
} tensors;

static const float guard_value = -12345.0f;

static tensors open_tensor(tr_tensor_desc desc) {
    tensors t = {.count = tr_shape_count(desc.shape)};
    t.memory = malloc((size_t)(t.count + 2 * GUARD) * sizeof(float));
    assert_non_null(t.memory);
    t.at = t.memory + GUARD;
    for (int64_t i = 0; i < t.count + 2 * GUARD; i++) {
        t.memory[i] = guard_value;
    }
    return t;
}

static tensors open_normal(tr_tensor_desc desc, uint64_t stream) {
    tensors t = open_tensor(desc);
    tr__fill_normal(t.at, 0, t.count, 0, 1, 5, stream);
    return t;
}

static void close_tensor(tensors *t) {
    for (int i = 0; i < GUARD; i++) {
        assert_true(t->memory[i] == guard_value);
        assert_true(t->at[t->count + i] == guard_value);
    }
    free(t->memory);
}

static void compare(const setting *s, const char *what, const tensors *got,
                    const tensors *want) {
    double worst = 0, size = 0;
    for (int64_t i = 0; i < got->count; i++) {
        double difference = fabs((double)got->at[i] - want->at[i]);
        worst = difference <= worst ? worst : difference; // a NaN is the worst
        size = fmax(size, fabs((double)want->at[i]));
    }
    if (!(worst <= 1e-5 * size)) {
        fail_msg("%s at B %d, S %d, H %d, D %d, dropout %g, threads %d: %g of %g", what,
                 (int)s->batch, (int)s->context, (int)s->heads, (int)s->depth,
                 (double)s->dropout, s->threads, worst, size);
    }
}

typedef struct results {
    tensors y, lse, dqkv;
} results;

static const char *const result_name[] = {"y", "lse", "dqkv"};

// Forward, then backward from the forward's own results.
static results compute(const setting *s, int which, const tensors *qkv,
                       const tensors *dy, bool add) {
    tr_op_desc forward = describe(s, false), backward = describe(s, true);
    results r = {open_tensor(forward.out[0]), open_tensor(forward.out[1]),
                 open_tensor(backward.out[0])};
    tr_launch launch = {.in = {qkv->at}, .out = {r.y.at, r.lse.at}, .run = &run};
    test_launch(test_kernel(&tr__op_attention, which), &forward, &launch);
    if (add) {
        tr__fill_normal(r.dqkv.at, 0, r.dqkv.count, 0, 1, 5, 9);
    }
    launch = (tr_launch){.in = {dy->at, qkv->at, r.y.at, r.lse.at},
                         .out = {r.dqkv.at},
                         .accumulate = add,
                         .run = &run};
    test_launch(test_kernel(&tr__op_attention_backward, which), &backward, &launch);
    return r;
}

static void close_results(results *r) {
    close_tensor(&r->y);
    close_tensor(&r->lse);
    close_tensor(&r->dqkv);
}

static void check(const setting *s, bool add) {
    tr_op_desc desc = describe(s, false);
    tensors qkv = open_normal(desc.in[0], 1), dy = open_normal(desc.out[0], 2);
    results want = compute(s, 0, &qkv, &dy, add);
    for (int k = 1; test_kernel(&tr__op_attention, k) != NULL; k++) {
        results got = compute(s, k, &qkv, &dy, add);
        compare(s, result_name[0], &got.y, &want.y);
        compare(s, result_name[1], &got.lse, &want.lse);
        compare(s, result_name[2], &got.dqkv, &want.dqkv);
        close_results(&got);
    }
    close_results(&want);
    close_tensor(&qkv);
    close_tensor(&dy);
}

static void odd_sizes(void **state) {
    (void)state;
    const int64_t context[] = {1, 3, 17, 63}, depth[] = {1, 8, 16, 32, 63, 64, 80, 128};
    for (int c = 0; c < 4; c++) {
        for (int d = 0; d < 8; d++) {
            setting s = {.batch = 1 + (c + d) % 3,
                         .context = context[c],
                         .heads = 1 + (c + 2 * d) % 4,
                         .depth = depth[d],
                         .dropout = d % 2 ? 0.3f : 0,
                         .threads = 1 + d % 3};
            check(&s, (c + d) % 2);
        }
    }
}

static void many_tiles(void **state) {
    (void)state;
    const setting settings[] = {{1, 257, 1, 64, 0, 2},    {1, 257, 2, 33, 0.2f, 3},
                                {2, 64, 1, 8, 0.1f, 1},   {1, 128, 3, 16, 0, 4},
                                {1, 193, 1, 80, 0.5f, 1}, {3, 65, 2, 16, 0, 5},
                                {1, 257, 1, 8, 0.1f, 8}};
    for (int i = 0; i < 7; i++) {
        check(&settings[i], i % 2);
    }
}

// Any number of threads, more than there are heads too: the forward gives the same
// bits, the backward gives them again and again.
static void threads_agree(void **state) {
    (void)state;
    for (int threads = 1; threads <= 16; threads++) {
        setting s = {1, 200, 3, 48, 0.1f, threads}, one = s;
        one.threads = 1;
        tr_op_desc desc = describe(&s, false);
        tensors qkv = open_normal(desc.in[0], 1), dy = open_normal(desc.out[0], 2);
        for (int k = 1; test_kernel(&tr__op_attention, k) != NULL; k++) {
            results a = compute(&one, k, &qkv, &dy, false);
            results b = compute(&s, k, &qkv, &dy, false);
            results c = compute(&s, k, &qkv, &dy, false);
            assert_memory_equal(a.y.at, b.y.at, (size_t)a.y.count * 4);
            assert_memory_equal(a.lse.at, b.lse.at, (size_t)a.lse.count * 4);
            assert_memory_equal(c.dqkv.at, b.dqkv.at, (size_t)b.dqkv.count * 4);
            compare(&s, result_name[2], &b.dqkv, &a.dqkv);
            close_results(&a);
            close_results(&b);
            close_results(&c);
        }
        close_tensor(&qkv);
        close_tensor(&dy);
    }
}

// The mask goes with the global sample: a batch of two is two batches of one.
static void samples_are_apart(void **state) {
    (void)state;
    setting two = {2, 70, 2, 16, 0.4f, 2}, one = two;
    one.batch = 1;
    tr_op_desc whole = describe(&two, false), part = describe(&one, false);
    tensors qkv = open_normal(whole.in[0], 1);
    const tr_kernel *kernel;
    for (int k = 0; (kernel = test_kernel(&tr__op_attention, k)) != NULL; k++) {
        tensors y = open_tensor(whole.out[0]), lse = open_tensor(whole.out[1]);
        tensors y1 = open_tensor(part.out[0]);
        tr_run_context later = run;
        later.sample++;
        tr_launch launch = {.in = {qkv.at}, .out = {y.at, lse.at}, .run = &run};
        test_launch(kernel, &whole, &launch);
        tr_op_desc desc = part;
        desc.out[1].dtype = TR_NONE;
        launch =
            (tr_launch){.in = {qkv.at + qkv.count / 2}, .out = {y1.at}, .run = &later};
        test_launch(kernel, &desc, &launch);
        assert_memory_equal(y1.at, y.at + y1.count, (size_t)y1.count * 4);
        close_tensor(&y);
        close_tensor(&y1);
        close_tensor(&lse);
    }
    close_tensor(&qkv);
}

// Scores far from 0, where exponentials over- or underflow.
static void large_scores(void **state) {
    (void)state;
    setting s = {1, 100, 1, 4, 0, 1};
    tr_op_desc desc = describe(&s, false);
    tensors qkv = open_normal(desc.in[0], 1), dy = open_normal(desc.out[0], 2);
    for (int64_t i = 0; i < qkv.count; i++) {
        qkv.at[i] *= 30;
    }
    results want = compute(&s, 0, &qkv, &dy, false);
    for (int k = 1; test_kernel(&tr__op_attention, k) != NULL; k++) {
        results got = compute(&s, k, &qkv, &dy, false);
        for (int64_t i = 0; i < got.y.count; i++) {
            assert_true(fabsf(got.y.at[i] - want.y.at[i]) < 0.05f);
        }
        for (int64_t i = 0; i < got.dqkv.count; i++) {
            assert_true(isfinite(got.dqkv.at[i]));
        }
        close_results(&got);
    }
    close_results(&want);
    close_tensor(&qkv);
    close_tensor(&dy);
}

// A NaN in one key reaches the queries that see it, and no others.
static void not_a_number_is_not_hidden(void **state) {
    (void)state;
    enum { S = 90, D = 4 };
    setting s = {1, S, 1, D, 0, 2};
    tr_op_desc desc = describe(&s, false);
    tensors qkv = open_normal(desc.in[0], 1);
    qkv.at[70 * 3 * D + D + 1] = NAN;
    const tr_kernel *kernel;
    for (int k = 0; (kernel = test_kernel(&tr__op_attention, k)) != NULL; k++) {
        tensors y = open_tensor(desc.out[0]), lse = open_tensor(desc.out[1]);
        tr_launch launch = {.in = {qkv.at}, .out = {y.at, lse.at}, .run = &run};
        test_launch(kernel, &desc, &launch);
        for (int i = 0; i < S * D; i++) {
            assert_true(isnan(y.at[i]) == (i / D >= 70));
        }
        close_tensor(&y);
        close_tensor(&lse);
    }
    close_tensor(&qkv);
}

// ---- rules

static void shapes_are_checked(void **state) {
    (void)state;
    tr_attention_attr attr = {.heads = 4};
    tr_tensor_desc in[4] = {{TR_F32, TR_SHAPE3(TR_BATCH, 7, 24)}}, out[TR_OP_OUT_MAX];
    int count = 0;
    tr_op_node node = {.op = &tr__op_attention, .attr = &attr, .in_count = 1, .in = in};
    assert_int_equal(tr__op_attention.infer(&node, out, &count, NULL), TR_OK);
    assert_int_equal(count, 2);
    assert_true(tr_shape_equal(out[0].shape, TR_SHAPE3(TR_BATCH, 7, 8)));
    assert_true(tr_shape_equal(out[1].shape, TR_SHAPE3(TR_BATCH, 4, 7)));

    tr_error err = {0};
    attr.heads = 3;
    assert_int_equal(tr__op_attention.infer(&node, out, &count, &err), TR_USAGE);
    assert_string_equal(err.message,
                        "attention: input 0 has the shape [B, 7, 24], not [B, S, 3 C] "
                        "with C a multiple of 3 heads");
    attr = (tr_attention_attr){.heads = 4, .dropout = 1};
    assert_int_equal(tr__op_attention.infer(&node, out, &count, NULL), TR_USAGE);
    attr = (tr_attention_attr){.heads = 0};
    assert_int_equal(tr__op_attention.infer(&node, out, &count, NULL), TR_USAGE);
}

static void backward_is_a_rule(void **state) {
    (void)state;
    tr_attention_attr attr = {.heads = 4, .dropout = 0.5f, .draw_id = 8};
    tr_op_node node = {.op = &tr__op_attention, .attr = &attr};
    tr_rule rules[TR_OP_RULES_MAX] = {0};
    assert_int_equal(tr__op_attention.backward(&node, rules), 1);
    assert_ptr_equal(rules[0].op, &tr__op_attention_backward);
    assert_memory_equal(rules[0].attr, &attr, sizeof attr);

    tr_tensor_desc out[TR_OP_OUT_MAX];
    tr_tensor_desc in[4] = {{TR_F32, TR_SHAPE3(TR_BATCH, 7, 8)},
                            {TR_F32, TR_SHAPE3(TR_BATCH, 7, 24)},
                            {TR_F32, TR_SHAPE3(TR_BATCH, 7, 8)},
                            {TR_F32, TR_SHAPE3(TR_BATCH, 4, 7)}};
    int count = 0;
    node = (tr_op_node){
        .op = &tr__op_attention_backward, .attr = &attr, .in_count = 4, .in = in};
    assert_int_equal(node.op->infer(&node, out, &count, NULL), TR_OK);
    assert_int_equal(count, 1);
    assert_true(tr_shape_equal(out[0].shape, in[1].shape));
    in[3].shape.dim[1] = 5;
    assert_int_equal(node.op->infer(&node, out, &count, NULL), TR_USAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_by_hand),
        cmocka_unit_test(backward_by_hand),
        cmocka_unit_test(dropout_by_hand),
        cmocka_unit_test(odd_sizes),
        cmocka_unit_test(many_tiles),
        cmocka_unit_test(threads_agree),
        cmocka_unit_test(samples_are_apart),
        cmocka_unit_test(large_scores),
        cmocka_unit_test(not_a_number_is_not_hidden),
        cmocka_unit_test(shapes_are_checked),
        cmocka_unit_test(backward_is_a_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

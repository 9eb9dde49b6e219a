// Attention and its backward by hand, and their rules.
#include "ops/attention_run.h"
#include "ops/launch.h"
#include "ops/nn/attention/attention.h"
#include "ops/nn/dropout/draw.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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
    test_attention s = {1, 2, 1, 1, 0, 2, 0, NULL};
    tr_op_desc desc = test_attention_describe(&s, false);
    double e = exp(-2.0), p = 1 / (1 + e);
    const tr_kernel *kernel;
    for (int k = 0; (kernel = test_kernel(&tr__op_attention, k)) != NULL; k++) {
        float y[2] = {100, 100}, lse[2] = {200, 200};
        for (uint32_t accumulate = 0; accumulate < 4; accumulate += 3) {
            tr_launch launch = {.in = {qkv},
                                .out = {y, lse},
                                .accumulate = accumulate,
                                .run = &test_attention_context};
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
    test_attention s = {1, 2, 1, 1, 0, 1, 0, NULL};
    tr_op_desc desc = test_attention_describe(&s, true);
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
                                .run = &test_attention_context};
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
    test_attention s = {2, S, H, 1, 0.5f, 2, 0, NULL};
    tr_op_desc desc = test_attention_describe(&s, false);
    float qkv[2][S][3][H] = {0}, y[2][S][H], lse[2][H][S];
    for (int i = 0; i < 2 * S * H; i++) {
        qkv[i / H / S][i / H % S][2][i % H] = 1;
    }
    const tr_kernel *kernel;
    for (int k = 0; (kernel = test_kernel(&tr__op_attention, k)) != NULL; k++) {
        tr_launch launch = {
            .in = {qkv}, .out = {y, lse}, .run = &test_attention_context};
        test_launch(kernel, &desc, &launch);
        for (int i = 0; i < 2 * S * H; i++) {
            int row = i / H / S, query = i / H % S, head = i % H, kept = 0;
            tr_draw draw =
                tr__draw_open(&test_attention_context, row, TEST_ATTENTION_DRAW, 0.5f);
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

// Both ways, equal scores: y is the mean of the values of the query's document, and the
// tokens of padding, each at place 0, see and are seen by themselves alone.
static void both_ways_by_hand(void **state) {
    (void)state;
    enum { S = 150 };
    static const int length[] = {3, 70, 1, 74, 1, 1}; // the last two are padding
    int32_t places[S];
    float qkv[S][3] = {{0}}, y[S], lse[S];
    double mean[S];
    for (int d = 0, at = 0; d < 6; at += length[d++]) {
        double sum = 0;
        for (int i = 0; i < length[d]; i++) {
            places[at + i] = i;
            qkv[at + i][2] = (float)((at + i) % 7 + d);
            sum += qkv[at + i][2];
        }
        for (int i = 0; i < length[d]; i++) {
            mean[at + i] = sum / length[d];
        }
    }
    test_attention s = {1, S, 1, 1, 0, 2, 0, NULL};
    tr_op_desc desc = test_attention_describe(&s, false);
    tr_attention_attr attr = {.heads = 1, .both = 1};
    memcpy(desc.attr, &attr, sizeof attr);
    desc.in[desc.in_count++] = (tr_tensor_desc){TR_I32, TR_SHAPE2(1, S)};
    const tr_kernel *kernel;
    for (int k = 0; (kernel = test_kernel(&tr__op_attention, k)) != NULL; k++) {
        tr_launch launch = {
            .in = {qkv, places}, .out = {y, lse}, .run = &test_attention_context};
        test_launch(kernel, &desc, &launch);
        for (int i = 0; i < S; i++) {
            near(y[i] / 8, mean[i] / 8);
        }
    }
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
                        "attention: input 0 has the shape [B, 7, 24], not [B, S, W] "
                        "with W a multiple of the 9 heads of queries, keys and values");
    attr = (tr_attention_attr){.heads = 4, .kv_heads = 2};
    assert_int_equal(tr__op_attention.infer(&node, out, &count, NULL), TR_OK);
    assert_true(tr_shape_equal(out[0].shape, TR_SHAPE3(TR_BATCH, 7, 12)));
    attr = (tr_attention_attr){.heads = 4, .kv_heads = 3};
    assert_int_equal(tr__op_attention.infer(&node, out, &count, NULL), TR_USAGE);
    attr = (tr_attention_attr){.heads = 4, .window = -1};
    assert_int_equal(tr__op_attention.infer(&node, out, &count, NULL), TR_USAGE);
    attr = (tr_attention_attr){.heads = 4, .dropout = 1};
    assert_int_equal(tr__op_attention.infer(&node, out, &count, NULL), TR_USAGE);
    attr = (tr_attention_attr){.heads = 4, .both = 1, .window = 3};
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
        cmocka_unit_test(forward_by_hand),    cmocka_unit_test(backward_by_hand),
        cmocka_unit_test(dropout_by_hand),    cmocka_unit_test(shapes_are_checked),
        cmocka_unit_test(backward_is_a_rule), cmocka_unit_test(both_ways_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

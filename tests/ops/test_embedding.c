// Embedding and its backward on a small table, by hand.
#include "ops/launch.h"
#include "ops/nn/embedding/embedding.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { B = 2, S = 2, V = 4, P = 3, C = 3 };

static const tr_tensor_desc ids_desc = {TR_I32, TR_SHAPE2(B, S)};
static const tr_tensor_desc wte_desc = {TR_F32, TR_SHAPE2(V, C)};
static const tr_tensor_desc wpe_desc = {TR_F32, TR_SHAPE2(P, C)};
static const tr_tensor_desc y_desc = {TR_F32, TR_SHAPE3(B, S, C)};

static const int32_t ids[B * S] = {2, 0, 2, 2};
static const float wte[V * C] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
static const float wpe[P * C] = {0.5f, 0.5f, 0.5f, 100, 200, 300, -1, -1, -1};

static void forward_by_hand(void **state) {
    (void)state;
    const float want[B * S * C] = {7.5f, 8.5f, 9.5f, 101, 202, 303,
                                   7.5f, 8.5f, 9.5f, 107, 208, 309};
    const float bare[B * S * C] = {7, 8, 9, 1, 2, 3, 7, 8, 9, 7, 8, 9};
    tr_op_desc desc = {
        .op = &tr__op_embedding,
        .in_count = 3,
        .out_count = 1,
        .in = {ids_desc, wte_desc, wpe_desc},
        .out = {y_desc},
        .fresh = 1,
        .target = {.workers = 2},
    };
    const tr_kernel *kernel;
    float y[B * S * C];
    for (int k = 0; (kernel = test_kernel(&tr__op_embedding, k)) != NULL; k++) {
        desc.in[2] = wpe_desc;
        test_launch(kernel, &desc, &(tr_launch){.in = {ids, wte, wpe}, .out = {y}});
        assert_memory_equal(y, want, sizeof y);
        desc.in[2].dtype = TR_NONE;
        test_launch(kernel, &desc, &(tr_launch){.in = {ids, wte}, .out = {y}});
        assert_memory_equal(y, bare, sizeof y);
    }
}

// The rows of ids 1 and 2, then that of 3, which nobody asks for, then that of 0, each
// on top of what is there.
static void slices_by_hand(void **state) {
    (void)state;
    const float want[B * S * C] = {7.5f, 8.5f, 9.5f, 100, 200, 300,
                                   7.5f, 8.5f, 9.5f, 107, 208, 309};
    tr_op_desc desc = {
        .op = &tr__op_embedding,
        .in_count = 4,
        .out_count = 1,
        .in = {ids_desc, {TR_F32, TR_SHAPE2(2, C)}, wpe_desc},
        .out = {y_desc},
        .fresh = 1,
        .target = {.workers = 2},
    };
    const tr_kernel *kernel;
    float y[B * S * C];
    for (int k = 0; (kernel = test_kernel(&tr__op_embedding, k)) != NULL; k++) {
        tr_op_desc later = desc;
        tr_embedding_attr attr = {.first = 1};
        memcpy(desc.attr, &attr, sizeof attr);
        test_launch(kernel, &desc, &(tr_launch){.in = {ids, wte + C, wpe}, .out = {y}});
        assert_memory_equal(y, want, sizeof y);
        attr.first = 3;
        memcpy(later.attr, &attr, sizeof attr);
        later.in[1].shape = TR_SHAPE2(1, C);
        later.in[2].dtype = TR_NONE;
        later.in[3] = y_desc;
        test_launch(kernel, &later,
                    &(tr_launch){.in = {ids, wte + 3 * C, NULL, y}, .out = {y}});
        assert_memory_equal(y, want, sizeof y);
        attr.first = 0;
        memcpy(later.attr, &attr, sizeof attr);
        test_launch(kernel, &later,
                    &(tr_launch){.in = {ids, wte, NULL, y}, .out = {y}});
        assert_true(y[3] == 101 && y[4] == 202 && y[5] == 303);
        assert_memory_equal(y + 6, want + 6, 6 * sizeof *y);
    }
}

static void backward_by_hand(void **state) {
    (void)state;
    const float dy[B * S * C] = {1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60};
    const float dwte_want[V * C] = {4, 5, 6, 0, 0, 0, 51, 72, 93, 0, 0, 0};
    const float dwpe_want[P * C] = {11, 22, 33, 44, 55, 66, 0, 0, 0};
    tr_op_desc desc = {
        .op = &tr__op_embedding_backward,
        .in_count = 4,
        .out_count = 2,
        .in = {y_desc, ids_desc, wte_desc, wpe_desc},
        .out = {wte_desc, wpe_desc},
        .fresh = 3,
        .accumulate = 3,
        .target = {.workers = 2},
    };
    const tr_kernel *kernel;
    for (int k = 0; (kernel = test_kernel(&tr__op_embedding_backward, k)) != NULL;
         k++) {
        for (uint32_t bits = 0; bits < 4; bits++) {
            float dwte[V * C], dwpe[P * C];
            for (int i = 0; i < V * C; i++) {
                dwte[i] = 1000;
            }
            for (int i = 0; i < P * C; i++) {
                dwpe[i] = 2000;
            }
            test_launch(kernel, &desc,
                        &(tr_launch){.in = {dy, ids, wte, wpe},
                                     .out = {dwte, dwpe},
                                     .accumulate = bits});
            for (int i = 0; i < V * C; i++) {
                assert_true(dwte[i] == dwte_want[i] + (bits & 1 ? 1000 : 0));
            }
            for (int i = 0; i < P * C; i++) {
                assert_true(dwpe[i] == dwpe_want[i] + (bits & 2 ? 2000 : 0));
            }
        }
    }
}

// Large enough for several threads: the bits are those of one thread.
static void bits_do_not_depend_on_threads(void **state) {
    (void)state;
    enum { ROWS = 300, WIDE = 400, WORDS = 13 };
    static float dy[ROWS * WIDE], one[WORDS * WIDE], four[WORDS * WIDE];
    static int32_t many[ROWS];
    uint32_t draw = 1;
    for (int i = 0; i < ROWS * WIDE; i++) {
        draw = draw * 1664525u + 1013904223u;
        dy[i] = (float)draw / 4294967296.0f - 0.5f;
    }
    for (int i = 0; i < ROWS; i++) {
        many[i] = i * i % WORDS;
    }
    tr_op_desc desc = {
        .op = &tr__op_embedding_backward,
        .in_count = 3,
        .out_count = 1,
        .in = {{TR_F32, TR_SHAPE3(1, ROWS, WIDE)},
               {TR_I32, TR_SHAPE2(1, ROWS)},
               {TR_F32, TR_SHAPE2(WORDS, WIDE)}},
        .out = {{TR_F32, TR_SHAPE2(WORDS, WIDE)}},
        .fresh = 1,
    };
    const tr_kernel *kernel;
    for (int k = 1; (kernel = test_kernel(&tr__op_embedding_backward, k)) != NULL;
         k++) {
        desc.target.workers = 1;
        test_launch(kernel, &desc, &(tr_launch){.in = {dy, many}, .out = {one}});
        desc.target.workers = 4;
        test_launch(kernel, &desc, &(tr_launch){.in = {dy, many}, .out = {four}});
        assert_memory_equal(one, four, sizeof one);
    }
}

static void shapes_are_checked(void **state) {
    (void)state;
    tr_tensor_desc in[3] = {{TR_I32, TR_SHAPE2(TR_BATCH, S)}, wte_desc, wpe_desc};
    tr_tensor_desc out[TR_OP_OUT_MAX];
    int count = 0;
    tr_error err = {0};
    const tr_embedding_attr attr = {0};
    tr_op_node node = {.op = &tr__op_embedding, .attr = &attr, .in_count = 3, .in = in};
    assert_int_equal(tr__op_embedding.infer(&node, out, &count, &err), TR_OK);
    assert_true(tr_shape_equal(out[0].shape, TR_SHAPE3(TR_BATCH, S, C)));
    in[2].shape = TR_SHAPE2(1, C);
    assert_int_not_equal(tr__op_embedding.infer(&node, out, &count, &err), TR_OK);
    assert_string_equal(err.message, "embedding: the table of positions has the shape "
                                     "[1, 3], needs [2 or more, 3]");
    assert_int_equal(tr__op_embedding.no_gradient, 1 << 0 | 1 << 4);
}

static void rules_leave_out_what_is_left_out(void **state) {
    (void)state;
    tr_tensor_desc in[3] = {ids_desc, wte_desc, wpe_desc};
    tr_rule rules[TR_OP_RULES_MAX];
    const tr_embedding_attr attr = {0};
    tr_op_node node = {.op = &tr__op_embedding, .attr = &attr, .in_count = 3, .in = in};
    assert_int_equal(tr__op_embedding.backward(&node, rules), 1);
    assert_int_equal(rules[0].in[3].kind, TR_REF_IN);
    assert_int_equal(rules[0].out[1].kind, TR_REF_GRAD_IN);
    in[2].dtype = TR_NONE;
    assert_int_equal(tr__op_embedding.backward(&node, rules), 1);
    assert_int_equal(rules[0].in[3].kind, TR_REF_NONE);
    assert_int_equal(rules[0].out[1].kind, TR_REF_NONE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_by_hand),
        cmocka_unit_test(slices_by_hand),
        cmocka_unit_test(backward_by_hand),
        cmocka_unit_test(bits_do_not_depend_on_threads),
        cmocka_unit_test(shapes_are_checked),
        cmocka_unit_test(rules_leave_out_what_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

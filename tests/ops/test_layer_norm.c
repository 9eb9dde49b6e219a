// Layer norm, its backward and the fused residual norm: by hand, and what must be
// bit for bit the same.
#include "base/rng.h"
#include "ops/launch.h"
#include "ops/nn/dropout/dropout.h"
#include "ops/nn/layer_norm/layer_norm.h"
#include "ops/nn/residual/residual.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS_MAX = 600, WIDTH_MAX = 257, ELEMENTS = ROWS_MAX * WIDTH_MAX };

static tr_tensor_desc f32(tr_shape shape) {
    return (tr_tensor_desc){TR_F32, shape};
}

static tr_op_desc describe(const tr_op *op, tr_shape x, float dropout) {
    tr_layer_norm_attr attr = {.dropout = {.probability = dropout, .draw_id = 5}};
    tr_tensor_desc rows = f32(x), vector = f32(TR_SHAPE1(x.dim[x.rank - 1]));
    tr_shape lead = x;
    lead.dim[--lead.rank] = 0;
    tr_tensor_desc stats = f32(lead);
    tr_op_desc desc = {
        .op = op, .fresh = 15, .accumulate = 15, .target = {.workers = 3}};
    if (op == &tr__op_layer_norm) {
        desc.in_count = desc.out_count = 3;
        memcpy(desc.in, (tr_tensor_desc[]){rows, vector, vector}, 3 * sizeof rows);
        memcpy(desc.out, (tr_tensor_desc[]){rows, stats, stats}, 3 * sizeof rows);
    } else if (op == &tr__op_residual_norm) {
        desc.in_count = desc.out_count = 4;
        memcpy(desc.in, (tr_tensor_desc[]){rows, rows, vector, vector},
               4 * sizeof rows);
        memcpy(desc.out, (tr_tensor_desc[]){rows, rows, stats, stats}, 4 * sizeof rows);
    } else {
        desc.in_count = 5;
        desc.out_count = 3;
        memcpy(desc.in, (tr_tensor_desc[]){rows, rows, stats, stats, vector},
               5 * sizeof rows);
        memcpy(desc.out, (tr_tensor_desc[]){rows, vector, vector}, 3 * sizeof rows);
    }
    memcpy(desc.attr, &attr, sizeof attr);
    return desc;
}

static void near(const float *got, const double *want, int count, double limit) {
    for (int i = 0; i < count; i++) {
        assert_true(fabs(got[i] - want[i]) <= limit);
    }
}

// Row 1, 3: mean 2, deviation 1, normalized -1, 1. Row 5, 5 + 2: mean 6, deviation 1.
static void forward_by_hand(void **state) {
    (void)state;
    const float x[4] = {1, 3, 5, 7}, w[2] = {10, 100}, b[2] = {0.5f, -1};
    const double y_want[4] = {-9.5, 99, -9.5, 99}, mean_want[2] = {2, 6};
    const double rstd_want[2] = {1, 1};
    tr_op_desc desc = describe(&tr__op_layer_norm, TR_SHAPE2(2, 2), 0);
    const tr_kernel *kernel;
    for (int k = 0; (kernel = test_kernel(&tr__op_layer_norm, k)) != NULL; k++) {
        float y[4] = {7, 7, 7, 7}, mean[2] = {7, 7}, rstd[2] = {7, 7};
        tr_launch launch = {.in = {x, w, b}, .out = {y, mean, rstd}};
        test_launch(kernel, &desc, &launch);
        near(y, y_want, 4, 0);
        near(mean, mean_want, 2, 0);
        near(rstd, rstd_want, 2, 0);
        launch.accumulate = 7;
        test_launch(kernel, &desc, &launch);
        assert_true(y[0] == -19 && mean[1] == 12 && rstd[0] == 2);
    }
}

// One row of three: x = -1, 0, 1 (deviation d = sqrt(2/3), normalized -1/d, 0, 1/d),
// all weights 2, dy = 1, 0, 0: g = dy w = 2, 0, 0 with mean 2/3; mean(g n) = -2/(3 d);
// dx = (g - 2/3 + n 2/(3 d)) / d = (2 - 2/3 - 1, -2/3, -2/3 + 1) / d.
static void backward_by_hand(void **state) {
    (void)state;
    const double d = sqrt(2.0 / 3);
    const float dy[3] = {1, 0, 0}, x[3] = {-1, 0, 1}, w[3] = {2, 2, 2};
    const float mean[1] = {0}, rstd[1] = {(float)(1 / d)};
    const double dx_want[3] = {1 / (3 * d), -2 / (3 * d), 1 / (3 * d)};
    const double dw_want[3] = {-1 / d, 0, 0}, db_want[3] = {1, 0, 0};
    tr_op_desc desc = describe(&tr__op_layer_norm_backward, TR_SHAPE2(1, 3), 0);
    const tr_kernel *kernel;
    for (int k = 0; (kernel = test_kernel(&tr__op_layer_norm_backward, k)) != NULL;
         k++) {
        float dx[3] = {9, 9, 9}, dw[3] = {9, 9, 9}, db[3] = {9, 9, 9};
        tr_launch launch = {.in = {dy, x, mean, rstd, w}, .out = {dx, dw, db}};
        test_launch(kernel, &desc, &launch);
        near(dx, dx_want, 3, 3e-7);
        near(dw, dw_want, 3, 3e-7);
        near(db, db_want, 3, 0);
        launch.accumulate = 6;
        test_launch(kernel, &desc, &launch);
        near(dx, dx_want, 3, 3e-7);
        assert_true(fabs(dw[0] - 2 * dw_want[0]) < 6e-7 && db[0] == 2);
        launch.out[0] = launch.out[2] = NULL; // results that nobody wants
        launch.accumulate = 0;
        test_launch(kernel, &desc, &launch);
        near(dw, dw_want, 3, 3e-7);
    }
}

// A row of one element is its own mean: nothing but the bias comes through.
static void one_wide(void **state) {
    (void)state;
    const float x[2] = {3, -4}, w[1] = {5}, b[1] = {0.25f}, dy[2] = {0.1f, 0.3f};
    const float mean[2] = {3, -4}, rstd[2] = {10, 10};
    const tr_kernel *kernel;
    float y[2], stats[4], dx[2], dw[1], db[1];
    for (int k = 0; (kernel = test_kernel(&tr__op_layer_norm, k)) != NULL; k++) {
        tr_op_desc desc = describe(&tr__op_layer_norm, TR_SHAPE2(2, 1), 0);
        ((tr_layer_norm_attr *)(void *)desc.attr)->epsilon = 0.01f;
        test_launch(kernel, &desc,
                    &(tr_launch){.in = {x, w, b}, .out = {y, stats, stats + 2}});
        assert_true(y[0] == 0.25f && y[1] == 0.25f && fabsf(stats[2] - 10) < 1e-5f);
        desc = describe(&tr__op_layer_norm_backward, TR_SHAPE2(2, 1), 0);
        test_launch(test_kernel(&tr__op_layer_norm_backward, k), &desc,
                    &(tr_launch){.in = {dy, x, mean, rstd, w}, .out = {dx, dw, db}});
        assert_true(fabsf(dx[0]) < 1e-5f && fabsf(dx[1]) < 1e-5f && dw[0] == 0);
        assert_true(fabsf(db[0] - 0.4f) < 1e-7f);
    }
}

// A mean a thousand times the deviation must not spoil the statistics: a single pass
// over x and x^2 would leave two digits of them.
static void far_from_zero(void **state) {
    (void)state;
    enum { WIDE = 768 };
    static float x[WIDE], w[WIDE], b[WIDE], y[WIDE], want[WIDE];
    for (int i = 0; i < WIDE; i++) {
        x[i] = 1000 + (float)(i % 5 - 2);
        w[i] = 1;
    }
    float mean, rstd;
    tr_op_desc desc = describe(&tr__op_layer_norm, TR_SHAPE2(1, WIDE), 0);
    tr_launch launch = {.in = {x, w, b}, .out = {want, &mean, &rstd}};
    test_launch(tr__op_layer_norm.reference, &desc, &launch);
    launch.out[0] = y;
    const tr_kernel *kernel;
    for (int k = 1; (kernel = test_kernel(&tr__op_layer_norm, k)) != NULL; k++) {
        test_launch(kernel, &desc, &launch);
        for (int i = 0; i < WIDE; i++) {
            assert_true(fabsf(y[i] - want[i]) < 3e-4f);
        }
        assert_true(fabs(rstd - 1 / sqrt(2)) < 1e-3);
    }
}

typedef struct tr_test_rows {
    float r[ELEMENTS], x[ELEMENTS], w[WIDTH_MAX], b[WIDTH_MAX];
    float s[ELEMENTS], y[ELEMENTS], mean[ROWS_MAX], rstd[ROWS_MAX];
    float again[ELEMENTS], mean_again[ROWS_MAX], rstd_again[ROWS_MAX];
} tr_test_rows;

static void fill(tr_test_rows *t) {
    tr__fill_normal(t->r, 0, ELEMENTS, 0, 1, 1, 1);
    tr__fill_normal(t->x, 0, ELEMENTS, 0, 1, 1, 2);
    tr__fill_normal(t->w, 0, WIDTH_MAX, 1, 0.1f, 1, 3);
    tr__fill_normal(t->b, 0, WIDTH_MAX, 0, 1, 1, 4);
}

// s is what the residual op makes of the same attributes; y, mean and rstd are what the
// plain norm makes of s: the same bits, at every width, threaded or not.
static void check_fused(tr_test_rows *t, const tr_kernel *fused, const tr_kernel *plain,
                        const tr_kernel *residual, tr_shape x, float dropout) {
    size_t size = (size_t)tr_shape_count(x) * sizeof(float);
    size_t rows = size / (size_t)x.dim[2];
    tr_op_desc desc = describe(&tr__op_residual_norm, x, dropout);
    test_launch(fused, &desc,
                &(tr_launch){.in = {t->r, t->x, t->w, t->b},
                             .out = {t->s, t->y, t->mean, t->rstd}});
    desc = describe(&tr__op_layer_norm, x, 0);
    test_launch(plain, &desc,
                &(tr_launch){.in = {t->s, t->w, t->b},
                             .out = {t->again, t->mean_again, t->rstd_again}});
    assert_memory_equal(t->again, t->y, size);
    assert_memory_equal(t->mean_again, t->mean, rows);
    assert_memory_equal(t->rstd_again, t->rstd, rows);

    tr_dropout_attr attr = {.probability = dropout, .draw_id = 5};
    tr_op_desc sum = {.op = &tr__op_residual,
                      .in_count = 2,
                      .out_count = 1,
                      .in = {desc.in[0], desc.in[0]},
                      .out = {desc.in[0]},
                      .fresh = 1,
                      .target = {.workers = 1}};
    memcpy(sum.attr, &attr, sizeof attr);
    test_launch(residual, &sum, &(tr_launch){.in = {t->r, t->x}, .out = {t->again}});
    assert_memory_equal(t->again, t->s, size);
}

static void fused_is_the_plain_norm_bit_for_bit(void **state) {
    (void)state;
    tr_test_rows *t = calloc(1, sizeof *t);
    assert_non_null(t);
    fill(t);
    const int64_t widths[] = {1, 3, 17, 63, 128, 257};
    const tr_kernel *kernel;
    for (int k = 0; (kernel = test_kernel(&tr__op_residual_norm, k)) != NULL; k++) {
        for (int i = 0; i < 6; i++) {
            int64_t rows = k == 0 ? 5 : 300; // the reference is slow
            tr_shape shape = TR_SHAPE3(2, rows, widths[i]);
            const tr_kernel *plain = test_kernel(&tr__op_layer_norm, k);
            const tr_kernel *residual = test_kernel(&tr__op_residual, k);
            check_fused(t, kernel, plain, residual, shape, 0);
            check_fused(t, kernel, plain, residual, shape, 0.3f);
        }
    }
    free(t);
}

// With s asked for as a sum, y is still the norm of r + x alone.
static void fused_added_to(void **state) {
    (void)state;
    const float r[2] = {1, 1}, x[2] = {0, 2}, w[2] = {1, 1}, b[2] = {0, 0};
    tr_op_desc desc = describe(&tr__op_residual_norm, TR_SHAPE2(1, 2), 0);
    const tr_kernel *kernel;
    for (int k = 0; (kernel = test_kernel(&tr__op_residual_norm, k)) != NULL; k++) {
        float s[2] = {100, 200}, y[2] = {10, 20}, mean[1] = {5}, rstd[1] = {6};
        test_launch(kernel, &desc,
                    &(tr_launch){.in = {r, x, w, b},
                                 .out = {s, y, mean, rstd},
                                 .accumulate = 15});
        assert_true(s[0] == 101 && s[1] == 203 && y[0] == 9 && y[1] == 21);
        assert_true(mean[0] == 7 && rstd[0] == 7);
    }
}

static void rules_of_the_fused_op(void **state) {
    (void)state;
    tr_layer_norm_attr attr = {1e-5f, {.draw_id = 9}};
    tr_tensor_desc in[4] = {
        f32(TR_SHAPE3(TR_BATCH, 4, 8)),
        f32(TR_SHAPE3(TR_BATCH, 4, 8)),
        f32(TR_SHAPE1(8)),
        f32(TR_SHAPE1(8)),
    };
    tr_tensor_desc out[TR_OP_OUT_MAX];
    int count = 0;
    tr_op_node node = {.op = &tr__op_residual_norm,
                       .attr = &attr,
                       .in_count = 4,
                       .out_count = 4,
                       .in = in,
                       .out = out};
    assert_int_equal(tr__op_residual_norm.infer(&node, out, &count, NULL), TR_OK);
    assert_int_equal(count, 4);
    assert_true(tr_shape_equal(out[0].shape, in[0].shape));
    assert_true(tr_shape_equal(out[2].shape, TR_SHAPE2(TR_BATCH, 4)));

    tr_rule rules[TR_OP_RULES_MAX];
    assert_int_equal(tr__op_residual_norm.backward(&node, rules), 3);
    assert_ptr_equal(rules[0].op, &tr__op_layer_norm_backward);
    assert_null(rules[1].op);
    assert_null(rules[2].op);
    attr.dropout.probability = 0.5f;
    assert_int_equal(tr__op_residual_norm.backward(&node, rules), 3);
    assert_ptr_equal(rules[2].op, &tr__op_dropout);
    const tr_dropout_attr *dropout = (const void *)rules[2].attr;
    assert_true(dropout->probability == 0.5f && dropout->draw_id == 9);

    tr_error err = {0};
    attr.dropout.probability = 1;
    assert_int_not_equal(tr__op_residual_norm.infer(&node, out, &count, &err), TR_OK);
    assert_string_equal(
        err.message,
        "residual_norm: the dropout probability is 1 and must be in [0, 1)");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_by_hand),
        cmocka_unit_test(backward_by_hand),
        cmocka_unit_test(one_wide),
        cmocka_unit_test(far_from_zero),
        cmocka_unit_test(fused_is_the_plain_norm_bit_for_bit),
        cmocka_unit_test(fused_added_to),
        cmocka_unit_test(rules_of_the_fused_op),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Dropout and the residual sum: what is kept is scaled, what is drawn does not depend
// on the cut, the kernel or the direction.
#include "ops/launch.h"
#include "ops/nn/dropout/dropout.h"
#include "ops/nn/residual/residual.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SAMPLES = 6, ROWS = 50, WIDTH = 67, PER_SAMPLE = ROWS * WIDTH };
enum { COUNT = SAMPLES * PER_SAMPLE };

static tr_op_desc describe(const tr_op *op, int64_t samples, tr_dropout_attr attr) {
    tr_tensor_desc tensor = {TR_F32, TR_SHAPE3(samples, ROWS, WIDTH)};
    tr_op_desc desc = {
        .op = op,
        .in_count = op == &tr__op_dropout ? 1 : 2,
        .out_count = 1,
        .in = {tensor, tensor},
        .out = {tensor},
        .fresh = 1,
        .accumulate = 1,
        .target = {.workers = 3},
    };
    memcpy(desc.attr, &attr, sizeof attr);
    return desc;
}

static void fill(float *x, float value) {
    for (int i = 0; i < COUNT; i++) {
        x[i] = value;
    }
}

// Of n = 20,100 elements kept with probability 3/4, the share lies within five
// deviations, sqrt(3/16 n); each kept one is 4/3 times what it was.
static void share_and_scale(void **state) {
    (void)state;
    static float x[COUNT], y[COUNT];
    tr_run_context run = {.seed = 1, .step = 2, .sample = 3, .unit = 4};
    tr_op_desc desc = describe(&tr__op_dropout, SAMPLES,
                               (tr_dropout_attr){.probability = 0.25f, .draw_id = 7});
    fill(x, 3);
    test_launch(tr__op_dropout.reference, &desc,
                &(tr_launch){.in = {x}, .out = {y}, .run = &run});
    int kept = 0;
    for (int i = 0; i < COUNT; i++) {
        assert_true(y[i] == 0 || y[i] == 4);
        kept += y[i] != 0;
    }
    assert_true(fabs(kept - 0.75 * COUNT) < 5 * sqrt(0.1875 * COUNT));
}

// A batch of six samples, and the same six in launches of one, two and three.
static void mask_does_not_depend_on_the_cut(void **state) {
    (void)state;
    static float x[COUNT], whole[COUNT], cut[COUNT];
    tr_dropout_attr attr = {.probability = 0.4f, .draw_id = 1};
    fill(x, 1);
    const tr_kernel *kernel;
    for (int k = 0; (kernel = test_kernel(&tr__op_dropout, k)) != NULL; k++) {
        tr_run_context run = {.seed = 11, .sample = 1000};
        tr_op_desc desc = describe(&tr__op_dropout, SAMPLES, attr);
        float *to = k == 0 ? whole : cut;
        test_launch(kernel, &desc, &(tr_launch){.in = {x}, .out = {to}, .run = &run});
        assert_memory_equal(whole, to, sizeof whole);
        int64_t first = 0;
        for (int64_t samples = 1; samples <= 3; samples++) {
            desc = describe(&tr__op_dropout, samples, attr);
            run.sample = 1000 + (uint64_t)first;
            test_launch(kernel, &desc,
                        &(tr_launch){.in = {x + first * PER_SAMPLE},
                                     .out = {cut + first * PER_SAMPLE},
                                     .run = &run});
            first += samples;
        }
        assert_memory_equal(whole, cut, sizeof whole);
    }
}

// Parts of the tokens, each launched by itself, draw what the whole draws; parts also
// end within a sample.
static void mask_does_not_depend_on_parts(void **state) {
    enum { PARTS = 5 };
    (void)state;
    static float x[COUNT], whole[COUNT], parts[COUNT];
    const tr_run_context run = {.seed = 12, .sample = 500};
    const tr_kernel *kernel;
    fill(x, 1);
    for (int k = 0; (kernel = test_kernel(&tr__op_dropout, k)) != NULL; k++) {
        tr_op_desc desc =
            describe(&tr__op_dropout, SAMPLES,
                     (tr_dropout_attr){.probability = 0.4f, .draw_id = 1});
        test_launch(kernel, &desc,
                    &(tr_launch){.in = {x}, .out = {whole}, .run = &run});
        for (int part = 0; part < PARTS; part++) {
            desc = describe(
                &tr__op_dropout, SAMPLES,
                (tr_dropout_attr){
                    .probability = 0.4f, .draw_id = 1, .parts = PARTS, .part = part});
            desc.in[0].shape.dim[1] = desc.out[0].shape.dim[1] = ROWS / PARTS;
            int at = COUNT / PARTS * part;
            test_launch(kernel, &desc,
                        &(tr_launch){.in = {x + at}, .out = {parts + at}, .run = &run});
        }
        assert_memory_equal(whole, parts, sizeof whole);
    }
}

static int64_t differing(const float *a, const float *b) {
    int64_t count = 0;
    for (int i = 0; i < COUNT; i++) {
        count += a[i] != b[i];
    }
    return count;
}

// Another seed, step, unit or draw is another mask: half of the elements differ.
static void draws_differ(void **state) {
    (void)state;
    static float x[COUNT], y[COUNT], other[COUNT];
    const tr_run_context runs[] = {{0}, {.seed = 1}, {.step = 1}, {.unit = 1}, {0}};
    fill(x, 1);
    tr_op_desc desc = describe(&tr__op_dropout, SAMPLES,
                               (tr_dropout_attr){.probability = 0.5f, .draw_id = 0});
    const tr_kernel *kernel = test_kernel(&tr__op_dropout, 1);
    test_launch(kernel, &desc, &(tr_launch){.in = {x}, .out = {y}, .run = &runs[0]});
    for (int i = 1; i < 5; i++) {
        desc = describe(&tr__op_dropout, SAMPLES,
                        (tr_dropout_attr){.probability = 0.5f, .draw_id = i == 4});
        test_launch(kernel, &desc,
                    &(tr_launch){.in = {x}, .out = {other}, .run = &runs[i]});
        assert_true(llabs(2 * differing(y, other) - COUNT) < 10 * sqrt(COUNT));
    }
}

// residual(r, x) = r + dropout(x), for the same attributes; nothing dropped: r + x.
static void residual_by_hand(void **state) {
    (void)state;
    static float r[COUNT], x[COUNT], kept[COUNT], y[COUNT];
    fill(r, 0.5f);
    fill(x, 2);
    const tr_kernel *kernel;
    for (int k = 0; (kernel = test_kernel(&tr__op_residual, k)) != NULL; k++) {
        tr_dropout_attr attr = {.probability = 0.5f, .draw_id = 3};
        tr_op_desc desc = describe(&tr__op_dropout, SAMPLES, attr);
        test_launch(tr__op_dropout.reference, &desc,
                    &(tr_launch){.in = {x}, .out = {kept}});
        desc = describe(&tr__op_residual, SAMPLES, attr);
        tr_launch launch = {.in = {r, x}, .out = {y}};
        test_launch(kernel, &desc, &launch);
        for (int i = 0; i < COUNT; i++) {
            assert_true(y[i] == 0.5f + kept[i]);
        }
        attr.probability = 0;
        desc = describe(&tr__op_residual, SAMPLES, attr);
        fill(y, 10);
        launch.accumulate = 1;
        test_launch(kernel, &desc, &launch);
        for (int i = 0; i < COUNT; i++) {
            assert_true(y[i] == 12.5f);
        }
    }
}

static void nothing_dropped_is_a_copy(void **state) {
    (void)state;
    static float x[COUNT], y[COUNT];
    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)i / 3;
    }
    tr_op_desc desc =
        describe(&tr__op_dropout, SAMPLES, (tr_dropout_attr){.probability = 0});
    const tr_kernel *kernel;
    for (int k = 0; (kernel = test_kernel(&tr__op_dropout, k)) != NULL; k++) {
        test_launch(kernel, &desc, &(tr_launch){.in = {x}, .out = {y}});
        assert_memory_equal(x, y, sizeof x);
    }
}

static void rules(void **state) {
    (void)state;
    tr_dropout_attr attr = {.probability = 0.1f, .draw_id = 6};
    tr_tensor_desc tensor = {TR_F32, TR_SHAPE2(TR_BATCH, 8)};
    tr_tensor_desc in[2] = {tensor, tensor};
    tr_op_node node = {.op = &tr__op_residual,
                       .attr = &attr,
                       .in_count = 2,
                       .out_count = 1,
                       .in = in,
                       .out = &tensor};
    tr_rule list[TR_OP_RULES_MAX];
    assert_int_equal(tr__op_residual.backward(&node, list), 2);
    assert_null(list[0].op);
    assert_ptr_equal(list[1].op, &tr__op_dropout);
    assert_memory_equal(list[1].attr, &attr, sizeof attr);
    attr.probability = 0;
    assert_int_equal(tr__op_dropout.backward(&node, list), 1);
    assert_null(list[0].op);
    attr.probability = NAN;
    tr_tensor_desc out[TR_OP_OUT_MAX];
    int count = 0;
    assert_int_not_equal(tr__op_residual.infer(&node, out, &count, NULL), TR_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(share_and_scale),
        cmocka_unit_test(mask_does_not_depend_on_the_cut),
        cmocka_unit_test(mask_does_not_depend_on_parts),
        cmocka_unit_test(draws_differ),
        cmocka_unit_test(residual_by_hand),
        cmocka_unit_test(nothing_dropped_is_a_copy),
        cmocka_unit_test(rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

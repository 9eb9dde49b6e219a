// Slices of the head, one after the other, against the head as a whole: the same sums,
// the same gradients, for every number of slices.
#include "ops/launch.h"
#include "ops/nn/linear_cross_entropy_slice/linear_cross_entropy_slice.h"

#include "base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 21, WIDTH = 13, CLASSES = 61, SLICES_MOST = 8 };

static const tr_run_context run = {.loss_seed = 0.25f};

static const tr_tensor_desc x_desc = {TR_F32, TR_SHAPE2(ROWS, WIDTH)};
static const tr_tensor_desc targets_desc = {TR_I32, TR_SHAPE1(ROWS)};
static const tr_tensor_desc running_desc = {TR_F64, TR_SHAPE2(ROWS, 2)};
static const tr_tensor_desc best_desc = {TR_F32, TR_SHAPE2(ROWS, 2)};
static const tr_tensor_desc sums_desc = {TR_F64, TR_SHAPE1(TR_SUMS)};

typedef struct problem {
    float x[ROWS * WIDTH], weight[CLASSES * WIDTH];
    int32_t targets[ROWS];
} problem;

typedef struct answer {
    double sums[TR_SUMS], asked[TR_SUMS]; // of the backward, of the forward alone
    float dx[ROWS * WIDTH], dweight[CLASSES * WIDTH];
} answer;

// `scale` is the deviation of the logits.
static void problem_make(problem *p, float scale) {
    tr__fill_normal(p->x, 0, ROWS * WIDTH, 0, 1, 3, 1);
    tr__fill_normal(p->weight, 0, CLASSES * WIDTH, 0, scale / sqrtf(WIDTH), 3, 2);
    for (int r = 0; r < ROWS; r++) {
        p->targets[r] = (int32_t)tr__draw_below(CLASSES, (uint64_t)r, 3, 3);
    }
    p->targets[0] = 0;
    p->targets[1] = CLASSES - 1;
    p->targets[2] = -100;
}

static const tr_kernel *kernel_of(const tr_op *op, int k) {
    const tr_kernel *kernel = test_kernel(op, k);
    return kernel ? kernel : op->reference;
}

static void launch(const tr_op *op, int k, tr_op_desc desc, tr_launch with) {
    desc.op = op;
    desc.target.workers = 2;
    with.run = &run;
    test_launch(kernel_of(op, k), &desc, &with);
}

static void whole(const problem *p, int k, answer *a) {
    tr_op_desc desc = {.in_count = 4, .out_count = 4, .fresh = 7, .accumulate = 8};
    tr_op_desc asked = {.in_count = 4, .out_count = 1, .accumulate = 1};
    desc.in[0] = asked.in[0] = desc.out[0] = x_desc;
    desc.in[1] = asked.in[1] = desc.out[1] =
        (tr_tensor_desc){TR_F32, TR_SHAPE2(CLASSES, WIDTH)};
    desc.in[3] = asked.in[3] = targets_desc;
    desc.out[3] = asked.out[0] = sums_desc;
    *a = (answer){{0}, {0}, {0}, {0}};
    launch(&tr__op_linear_cross_entropy_backward, k, desc,
           (tr_launch){.in = {p->x, p->weight, NULL, p->targets},
                       .out = {a->dx, a->dweight, NULL, a->sums},
                       .accumulate = 8});
    launch(&tr__op_linear_cross_entropy, k, asked,
           (tr_launch){.in = {p->x, p->weight, NULL, p->targets},
                       .out = {a->asked},
                       .accumulate = 1});
}

static int64_t first_of(int slice, int slices) {
    return (int64_t)CLASSES * slice / slices;
}

static tr_op_desc slice_desc(int slice, int slices) {
    int64_t first = first_of(slice, slices), end = first_of(slice + 1, slices);
    tr_lce_slice_attr attr = {{TR_WEIGHT_OUT_IN, 4, 0}, first, 0};
    tr_op_desc desc = {.in[0] = x_desc, .in[3] = targets_desc};
    desc.in[1] = (tr_tensor_desc){TR_F32, TR_SHAPE2(end - first, WIDTH)};
    memcpy(desc.attr, &attr, sizeof attr);
    return desc;
}

typedef struct running {
    double sums[SLICES_MOST][ROWS * 2];
    float best[SLICES_MOST][ROWS * 2];
} running;

static void forward(const problem *p, int k, int slices, running *r) {
    for (int s = 0; s < slices; s++) {
        tr_op_desc desc = slice_desc(s, slices);
        desc.in_count = 6;
        desc.out_count = 2;
        desc.fresh = 3;
        desc.in[4].dtype = s ? running_desc.dtype : TR_NONE;
        desc.in[5].dtype = s ? best_desc.dtype : TR_NONE;
        desc.in[4].shape = desc.in[5].shape = running_desc.shape;
        desc.out[0] = running_desc;
        desc.out[1] = best_desc;
        launch(&tr__op_linear_cross_entropy_slice, k, desc,
               (tr_launch){.in = {p->x, p->weight + first_of(s, slices) * WIDTH, NULL,
                                  p->targets, s ? r->sums[s - 1] : NULL,
                                  s ? r->best[s - 1] : NULL},
                           .out = {r->sums[s], r->best[s]}});
    }
}

static void backward(const problem *p, int k, int slices, const running *r,
                     double drunning[2][ROWS * 2], answer *a) {
    for (int s = slices - 1; s >= 0; s--) {
        const int64_t first = first_of(s, slices);
        tr_op_desc desc = slice_desc(s, slices);
        uint32_t add = s < slices - 1;
        desc.in_count = 7;
        desc.out_count = 4;
        desc.fresh = 15 & ~add;
        desc.accumulate = add;
        desc.in[4].dtype = s ? running_desc.dtype : TR_NONE;
        desc.in[4].shape = running_desc.shape;
        desc.in[5] = desc.in[6] = running_desc;
        desc.out[0] = x_desc;
        desc.out[1] = desc.in[1];
        desc.out[3] = desc.in[4];
        launch(
            &tr__op_linear_cross_entropy_slice_backward, k, desc,
            (tr_launch){.in = {p->x, p->weight + first * WIDTH, NULL, p->targets,
                               s ? r->sums[s - 1] : NULL, r->sums[s], drunning[s & 1]},
                        .out = {a->dx, a->dweight + first * WIDTH, NULL,
                                s ? drunning[~s & 1] : NULL},
                        .accumulate = add});
    }
}

static void in_slices(const problem *p, int k, int slices, answer *a) {
    running r;
    double drunning[2][ROWS * 2];
    tr_op_desc loss = {.in_count = 3, .out_count = 1, .accumulate = 1};
    tr_op_desc back = {.in_count = 3, .out_count = 2, .fresh = 1, .accumulate = 2};
    loss.in[0] = back.in[0] = back.out[0] = running_desc;
    loss.in[1] = back.in[1] = best_desc;
    loss.in[2] = back.in[2] = targets_desc;
    loss.out[0] = back.out[1] = sums_desc;
    *a = (answer){{0}, {0}, {0}, {0}};
    forward(p, k, slices, &r);
    const double *last = r.sums[slices - 1];
    const float *best = r.best[slices - 1];
    launch(&tr__op_linear_cross_entropy_slice_loss, k, loss,
           (tr_launch){
               .in = {last, best, p->targets}, .out = {a->asked}, .accumulate = 1});
    launch(&tr__op_linear_cross_entropy_slice_loss_backward, k, back,
           (tr_launch){.in = {last, best, p->targets},
                       .out = {drunning[(slices - 1) & 1], a->sums},
                       .accumulate = 2});
    backward(p, k, slices, &r, drunning, a);
}

static void expect_near(const float *got, const float *want, int count) {
    float most = 0;
    for (int i = 0; i < count; i++) {
        most = fmaxf(most, fabsf(want[i]));
    }
    for (int i = 0; i < count; i++) {
        assert_true(fabsf(got[i] - want[i]) <= 2e-6f * most);
    }
}

static void slices_are_the_head(void **state) {
    static const float scales[] = {1, 30, 300};
    (void)state;
    for (int k = 0; test_kernel(&tr__op_linear_cross_entropy, k); k++) {
        for (int i = 0; i < 3; i++) {
            problem p;
            answer want, got;
            problem_make(&p, scales[i]);
            whole(&p, k, &want);
            assert_true(want.sums[TR_SUM_COUNT] == ROWS - 1);
            for (int slices = 1; slices <= SLICES_MOST; slices++) {
                in_slices(&p, k, slices, &got);
                for (int s = 0; s < TR_SUMS; s++) {
                    double off = s == TR_SUM_LOSS ? 1e-6 * want.sums[s] : 0;
                    assert_true(fabs(got.sums[s] - want.sums[s]) <= off);
                    assert_true(fabs(got.asked[s] - want.asked[s]) <= off);
                }
                expect_near(got.dx, want.dx, ROWS * WIDTH);
                expect_near(got.dweight, want.dweight, CLASSES * WIDTH);
            }
        }
    }
}

// Equal logits: the guess is the lowest class, whichever slice it is in.
static void a_tie_is_guessed_low(void **state) {
    (void)state;
    for (int k = 0; test_kernel(&tr__op_linear_cross_entropy, k); k++) {
        problem p;
        answer got;
        problem_make(&p, 1);
        memset(p.x, 0, sizeof p.x);
        for (int r = 0; r < ROWS; r++) {
            p.targets[r] = r % 3 == 0 ? 0 : r;
        }
        in_slices(&p, k, SLICES_MOST, &got);
        assert_true(got.sums[TR_SUM_CORRECT] == ROWS / 3);
        assert_true(fabs(got.sums[TR_SUM_LOSS] - ROWS * log(CLASSES)) < 1e-4);
    }
}

static void what_is_not_finite_shows(void **state) {
    (void)state;
    for (int k = 0; test_kernel(&tr__op_linear_cross_entropy, k); k++) {
        problem p;
        answer got;
        problem_make(&p, 1);
        p.x[5 * WIDTH] = NAN;
        in_slices(&p, k, 3, &got);
        assert_true(isnan(got.sums[TR_SUM_LOSS]));
        assert_true(isnan(got.dx[5 * WIDTH]) && !isnan(got.dx[0]));
        assert_true(isnan(got.dweight[0]) && isnan(got.dweight[CLASSES * WIDTH - 1]));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_are_the_head),
        cmocka_unit_test(a_tie_is_guessed_low),
        cmocka_unit_test(what_is_not_finite_shows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Plans, run: gradients and losses of many cuts, against the uncut step and against the
// losses of parameters a little aside.
// Labels: isa guard
#include "base/batch.h"
#include "base/rng.h"
#include "exec/rig.h"
#include "graph/centered_model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BATCH = TEST_BATCH };

// ---- cuts

static void assert_close(const test_rig *rig, int param, const float *got,
                         const float *want, const char *what) {
    double most = 0.05; // what is smaller may be rounding noise of larger terms
    int64_t count = test_rig_count(rig, param);
    for (int64_t i = 0; i < count; i++) {
        most = fmax(most, fabs((double)want[i]));
    }
    for (int64_t i = 0; i < count; i++) {
        double apart = fabs((double)got[i] - (double)want[i]);
        if (!(apart <= 5e-5 * most)) {
            fail_msg("%s: gradient of %s, element %lld is %g, not %g", what,
                     test_rig_name(rig, param), (long long)i, (double)got[i],
                     (double)want[i]);
        }
    }
}

static void compare(const test_rig *rig, const test_rig *whole, const char *what) {
    for (int i = 0; i < (int)rig->plan->param_count; i++) {
        assert_close(rig, i, test_rig_grad(rig, i), test_rig_grad(whole, i), what);
    }
    tr_step_statistics mine = test_rig_statistics(rig),
                       other = test_rig_statistics(whole);
    const double *got = mine.sums, *want = other.sums;
    assert_true(want[TR_SUM_COUNT] > 0 && got[TR_SUM_COUNT] == want[TR_SUM_COUNT]);
    assert_true(got[TR_SUM_CORRECT] == want[TR_SUM_CORRECT]);
    assert_true(fabs(got[TR_SUM_LOSS] / want[TR_SUM_LOSS] - 1) < 1e-5);
    assert_true(fabs(mine.norm_squares / other.norm_squares - 1) < 1e-4);
}

static void try_cuts(const tr_model *model, bool reference) {
    static const int64_t cuts[] = {12, 6, 5, 4, 3, 2, 1};
    tr_plan_request request = test_rig_request(model, BATCH);
    test_rig whole, rig;
    request.reference_kernels = true;
    test_rig_begin(&whole, &request);
    test_rig_train(&whole);
    bool centered = model == &test_model_centered;
    for (int i = 0; i < 7; i++) {
        request = test_rig_request(model, cuts[i]);
        request.reference_kernels = reference;
        if (centered && BATCH % cuts[i] != 0) {
            continue; // its mean takes in rows that pad a batch
        }
        for (int64_t wave = 1; wave <= request.accumulation_steps; wave++) {
            char what[64];
            request.wave = centered ? 0 : wave;
            request.recomputed_units = wave % 2 ? 0 : -1;
            snprintf(what, sizeof what, "m %d, wave %d", (int)cuts[i], (int)wave);
            test_rig_begin(&rig, &request);
            test_rig_train(&rig);
            compare(&rig, &whole, what);
            test_rig_end(&rig);
        }
    }
    test_rig_end(&whole);
}

static void every_cut_gives_the_gradients_of_the_whole_batch(void **state) {
    (void)state;
    tr_model *plain = test_rig_gpt2(2, 0), *dropped = test_rig_gpt2(2, 0.25);
    for (int reference = 0; reference < 2; reference++) {
        try_cuts(plain, reference);
        try_cuts(dropped, reference);
        try_cuts(&test_model_centered, reference);
    }
    tr_model_destroy(plain);
    tr_model_destroy(dropped);
}

// ---- bits

// Memory decides about nothing: the same micro-batches give the same bits, whatever is
// kept or made again. The tied embedding is added to in another order when the wave
// changes.
static void waves_and_recomputation_change_no_bit(void **state) {
    (void)state;
    tr_model *model = test_rig_gpt2(2, 0.25);
    tr_plan_request request = test_rig_request(model, 2);
    test_rig plain, rig;
    test_rig_begin(&plain, &request);
    test_rig_train(&plain);
    for (int64_t wave = 1; wave <= 6; wave++) {
        for (int64_t units = 0; units <= 3; units++) {
            request.wave = wave;
            request.recomputed_units = units;
            test_rig_begin(&rig, &request);
            test_rig_train(&rig);
            for (int i = 0; i < (int)rig.plan->param_count; i++) {
                bool tied = rig.plan->flats[rig.plan->params[i].flat].tied;
                if (!tied || wave == 1) {
                    assert_memory_equal(test_rig_grad(&rig, i),
                                        test_rig_grad(&plain, i),
                                        (size_t)test_rig_count(&rig, i) * 4);
                }
            }
            test_rig_end(&rig);
        }
    }
    test_rig_end(&plain);
    tr_model_destroy(model);
}

// ---- slopes

// Moves all parameters along a drawn direction; with `slope`, adds up how steep the
// loss is that way, by the gradients.
static void move(test_rig *rig, float by, double *slope) {
    for (int i = 0; i < (int)rig->plan->param_count; i++) {
        int64_t count = test_rig_count(rig, i);
        float *param = test_rig_param(rig, i);
        const float *grad = test_rig_grad(rig, i);
        float *direction = malloc((size_t)count * sizeof *direction);
        assert_non_null(direction);
        tr__fill_normal(direction, 0, count, 0, 1, 77, (uint64_t)i);
        for (int64_t k = 0; k < count; k++) {
            param[k] += by * direction[k];
            *slope += (double)grad[k] * (double)direction[k] / (double)TEST_LOSS_SEED;
        }
        free(direction);
    }
}

static void assert_slope(const tr_model *model, int64_t m) {
    const float step = 2e-3f;
    double slope = 0, ignored = 0, loss[2];
    tr_plan_request request = test_rig_request(model, m);
    test_rig rig;
    request.reference_kernels = true;
    test_rig_begin(&rig, &request);
    test_rig_train(&rig);
    move(&rig, step, &slope);
    test_rig_train(&rig);
    loss[0] = test_rig_statistics(&rig).sums[TR_SUM_LOSS];
    move(&rig, -2 * step, &ignored);
    test_rig_train(&rig);
    loss[1] = test_rig_statistics(&rig).sums[TR_SUM_LOSS];
    double measured = (loss[0] - loss[1]) / (2 * (double)step);
    if (!(fabs(slope - measured) <= 0.01 * fabs(measured))) {
        fail_msg("%s, m = %d: the slope is %g by gradients and %g by losses",
                 model->type, (int)m, slope, measured);
    }
    test_rig_end(&rig);
}

static void gradients_are_the_slopes_of_the_loss(void **state) {
    (void)state;
    tr_model *plain = test_rig_gpt2(2, 0), *dropped = test_rig_gpt2(2, 0.25);
    for (int64_t m = 3; m <= 12; m *= 2) {
        assert_slope(plain, m);
        assert_slope(dropped, m);
        assert_slope(&test_model_centered, m);
    }
    tr_model_destroy(plain);
    tr_model_destroy(dropped);
}

// ---- evaluation and answers

static void evaluation_has_the_loss_of_training_without_dropout(void **state) {
    (void)state;
    tr_model *plain = test_rig_gpt2(2, 0), *dropped = test_rig_gpt2(2, 0.5);
    const double *sums[2];
    test_rig rigs[2];
    for (int i = 0; i < 2; i++) {
        tr_plan_request request = test_rig_request(i ? dropped : plain, 3);
        test_rig_begin(&rigs[i], &request);
        test_rig_evaluate(&rigs[i]);
        sums[i] = tr__executor_sums(rigs[i].executor);
    }
    test_rig_train(&rigs[0]);
    tr_step_statistics statistics = test_rig_statistics(&rigs[0]);
    const double *trained = statistics.sums;
    for (int k = 0; k < TR_SUMS; k++) {
        assert_true(fabs(sums[0][k] - trained[k]) <= 1e-6 * fabs(trained[k]));
        assert_true(sums[0][k] == sums[1][k]); // nothing is dropped
    }
    test_rig_end(&rigs[0]);
    test_rig_end(&rigs[1]);
    tr_model_destroy(plain);
    tr_model_destroy(dropped);
}

// The loss of one target, from logits [count].
static double loss_of(const float *logits, int64_t count, int32_t target) {
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < count; i++) {
        most = fmax(most, (double)logits[i]);
    }
    for (int64_t i = 0; i < count; i++) {
        sum += exp((double)logits[i] - most);
    }
    return most + log(sum) - (double)logits[target];
}

// The loss of the target at `position`, from the answer to it. The slot of an inference
// plan is the caller's to fill.
static double ask(test_rig *rig, const int32_t *ids, const int32_t *targets,
                  int position) {
    const tr_run_context context = {.seed = TEST_SEED};
    int64_t offset = tr__batch_offset(&rig->plan->batch, 1, 1);
    char *slot = tr__executor_ring(rig->executor, 1);
    int32_t only[4] = {TR_NO_TARGET, TR_NO_TARGET, TR_NO_TARGET, TR_NO_TARGET};
    tr_error err = {0};
    only[position] = targets[position];
    memcpy(slot, ids, sizeof only);
    memcpy(slot + offset, only, sizeof only);
    assert_int_equal(
        tr__executor_run(rig->executor, TR_SEQUENCE_INFERENCE, &context, NULL, &err),
        TR_OK);
    return loss_of(tr__executor_logits(rig->executor), 11, targets[position]);
}

static void answers_are_what_the_loss_is_made_of(void **state) {
    (void)state;
    tr_model *model = test_rig_gpt2(2, 0.5);
    tr_plan_request request = test_rig_request(model, 1);
    int32_t ids[4], targets[4];
    int64_t sample = 0;
    double loss = 0;
    tr_error err = {0};
    test_rig evaluated, asked;
    request.train_batch_size = request.accumulation_steps = 1;
    test_rig_begin(&evaluated, &request);
    request.inference = true;
    test_rig_begin(&asked, &request);
    test_rig_evaluate(&evaluated);
    assert_int_equal(
        tr_dataset_read(asked.dataset, &sample, 1, (void *[]){ids, targets}, &err),
        TR_OK);
    for (int i = 0; i < 4; i++) {
        loss += targets[i] == TR_NO_TARGET ? 0 : ask(&asked, ids, targets, i);
    }
    double want = tr__executor_sums(evaluated.executor)[TR_SUM_LOSS];
    assert_true(want > 0 && fabs(loss / want - 1) < 1e-5);
    test_rig_end(&evaluated);
    test_rig_end(&asked);
    tr_model_destroy(model);
}

static bool stop_at_once(void *user) {
    (void)user;
    return true;
}

static void a_step_stops_when_asked(void **state) {
    (void)state;
    tr_plan_request request = test_rig_request(&test_model_centered, 4);
    const tr_run_context context = {.seed = TEST_SEED};
    tr_error err = {0};
    test_rig rig;
    test_rig_begin(&rig, &request);
    assert_int_equal(tr__executor_run(rig.executor, TR_SEQUENCE_TRAIN, &context,
                                      &(tr_walk_calls){.stop = stop_at_once}, &err),
                     TR_INTERRUPTED);
    test_rig_end(&rig);
}

// A plan that names bytes outside of its arena is refused, and no step of it is taken.
static void a_buffer_outside_of_its_arena_is_an_error(void **state) {
    (void)state;
    tr_plan_request request = test_rig_request(&test_model_centered, 4);
    test_rig rig;
    test_rig_begin(&rig, &request);
    tr_arena *const whole = rig.arenas[TR_SPACE_DEVICE];
    tr_executor *other = NULL;
    tr_arena *small = NULL;
    tr_error err = {0};
    assert_int_equal(
        tr__arena_create("device", tr__arena_bytes(whole) / 2, &small, &err), TR_OK);
    rig.arenas[TR_SPACE_DEVICE] = small;
    assert_int_equal(
        tr__executor_create(rig.plan, rig.arenas, NULL, NULL, &other, &err),
        TR_INTERNAL);
    assert_non_null(strstr(err.message, "outside of the device arena"));
    assert_null(other);
    assert_int_equal(tr__executor_replan(rig.executor, rig.plan, rig.arenas, &err),
                     TR_INTERNAL);
    rig.arenas[TR_SPACE_DEVICE] = whole;
    tr__arena_destroy(small);
    test_rig_end(&rig);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cut_gives_the_gradients_of_the_whole_batch),
        cmocka_unit_test(waves_and_recomputation_change_no_bit),
        cmocka_unit_test(gradients_are_the_slopes_of_the_loss),
        cmocka_unit_test(evaluation_has_the_loss_of_training_without_dropout),
        cmocka_unit_test(answers_are_what_the_loss_is_made_of),
        cmocka_unit_test(a_step_stops_when_asked),
        cmocka_unit_test(a_buffer_outside_of_its_arena_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

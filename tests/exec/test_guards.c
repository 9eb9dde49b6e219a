// Labels: guard
// Which steps of a walk are done; and that a training step is one walk, in which the
// engine decides once, when the statistics are complete.
#include "exec/rig.h"
#include "graph/centered_model.h"
#include "ops/optimizers/sgd/sgd.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// ---- the flags

static void assert_done(const tr_walk_flags *flags, const char *done) {
    static const tr_step_guard guards[] = {TR_GUARD_ALWAYS, TR_GUARD_RUNNING,
                                           TR_GUARD_APPLIED, TR_GUARD_AT_ONCE,
                                           TR_GUARD_DEFERRED};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(tr__guard_lets(flags, guards[i]), done[i] == 'x');
    }
}

static void guards_follow_the_flags(void **state) {
    (void)state; //                    always, running, applied, at once, deferred
    assert_done(&(tr_walk_flags){0}, "xx   ");
    assert_done(&(tr_walk_flags){.stopped = true}, "x    ");
    assert_done(&(tr_walk_flags){.deferred = true}, "xx  x");
    assert_done(&(tr_walk_flags){.deferred = true, .stopped = true}, "x   x");
    assert_done(&(tr_walk_flags){.decision = TR_DECIDE_APPLY}, "xxxx ");
    assert_done(&(tr_walk_flags){.decision = TR_DECIDE_DEFER}, "xxx  ");
}

static void a_walk_is_over_where_nothing_more_is_done(void **state) {
    static const bool over[][2] = {
        [TR_DECIDE_NOTHING] = {false, false},
        [TR_DECIDE_END] = {true, true},
        [TR_DECIDE_APPLY] = {false, false},
        [TR_DECIDE_DEFER] = {false, true},
    };
    (void)state;
    for (int i = 0; i < 4; i++) {
        tr_walk_flags flags = {.decision = (tr_decision)i};
        assert_int_equal(tr__walk_is_over(&flags, TR_GUARD_APPLIED), over[i][0]);
        assert_int_equal(tr__walk_is_over(&flags, TR_GUARD_AT_ONCE), over[i][1]);
    }
}

static void a_walk_goes_on_for_others_or_for_the_update(void **state) {
    tr_walk_flags none = {0}, deferred = {.deferred = true};
    (void)state;
    for (int i = 0; i <= TR_FAULT_OTHER; i++) {
        tr_walk_fault fault = (tr_walk_fault)i;
        assert_false(tr__walk_goes_on(&none, fault, false));
        assert_true(tr__walk_goes_on(&deferred, fault, false));
        assert_int_equal(tr__walk_goes_on(&none, fault, true), i != TR_FAULT_OTHER);
        assert_int_equal(tr__walk_goes_on(&deferred, fault, true), i != TR_FAULT_OTHER);
    }
}

// ---- the decision

typedef struct engine {
    test_rig rig;
    float *before, *grads; // of parameter 0
    tr_decision answer;
    tr_status status;
    int64_t asked, decided; // so often
    int64_t asked_then;     // when it decided
    int64_t asked_at;       // is there an end; 0: never
} engine;

static bool is_asked(void *user) {
    engine *e = user;
    return ++e->asked == e->asked_at;
}

// The gradients are complete, and nothing is updated yet.
static tr_status decide(void *user, tr_decision *decision, tr_error *err) {
    engine *e = user;
    size_t bytes = (size_t)test_rig_count(&e->rig, 0) * sizeof(float);
    memcpy(e->grads, test_rig_grad(&e->rig, 0), bytes);
    assert_memory_equal(test_rig_param(&e->rig, 0), e->before, bytes);
    assert_true(test_rig_statistics(&e->rig).norm_squares > 0);
    e->decided++;
    e->asked_then = e->asked;
    *decision = e->answer;
    return e->status == TR_OK ? TR_OK : tr_fail(err, e->status, "no");
}

static void engine_begin(engine *e, const tr_model *model) {
    tr_plan_request request = test_rig_request(model, 4);
    *e = (engine){.answer = TR_DECIDE_END};
    test_rig_begin(&e->rig, &request);
    size_t count = (size_t)test_rig_count(&e->rig, 0);
    e->before = calloc(count, sizeof *e->before);
    e->grads = calloc(count, sizeof *e->grads);
    assert_true(e->before && e->grads);
    memcpy(e->before, test_rig_param(&e->rig, 0), count * sizeof *e->before);
}

static void engine_end(engine *e) {
    free(e->before);
    free(e->grads);
    test_rig_end(&e->rig);
}

// All parameters by SGD, at rate 1.
static tr_status walk(engine *e) {
    static const tr_hyper hyper = {.lr = 1};
    static const double power[1][2] = {{1, 1}};
    const tr_plan *plan = e->rig.plan;
    tr_update_range *ranges = calloc(plan->flat_count, sizeof *ranges);
    assert_non_null(ranges);
    for (size_t f = 0; f < plan->flat_count; f++) {
        ranges[f] = (tr_update_range){.flat = (int)f, .count = plan->flats[f].count};
    }
    tr__executor_order(e->rig.executor,
                       &(tr_update_order){.optimizer = &tr__optimizer_sgd,
                                          .ranges = ranges,
                                          .range_count = plan->flat_count,
                                          .hyper = &hyper,
                                          .grad_scale = 1,
                                          .number = 1,
                                          .power = power});
    tr_status status = test_rig_walk(
        &e->rig, &(tr_walk_calls){.stop = is_asked, .decide = decide, .user = e});
    free(ranges);
    return status;
}

static int64_t changed(const engine *e) {
    const float *now = test_rig_param(&e->rig, 0);
    int64_t count = 0;
    for (int64_t i = 0; i < test_rig_count(&e->rig, 0); i++) {
        float want = e->before[i] - e->grads[i];
        assert_true(now[i] == e->before[i] || now[i] == want);
        count += now[i] != e->before[i];
    }
    return count;
}

// Whoever asks is asked before each step, until this rank has reported.
static void the_engine_decides_in_the_walk(void **state) {
    static const tr_decision answers[] = {TR_DECIDE_END, TR_DECIDE_APPLY,
                                          TR_DECIDE_DEFER};
    (void)state;
    for (int i = 0; i < 3; i++) {
        engine e;
        engine_begin(&e, &test_model_centered);
        const tr_sequence *train = &e.rig.plan->sequences[TR_SEQUENCE_TRAIN];
        int64_t to_decision = (int64_t)tr__sequence_update(train) - 1;
        e.answer = answers[i];
        assert_int_equal(walk(&e), TR_OK);
        assert_int_equal(e.decided, 1);
        assert_int_equal(e.asked_then, to_decision);
        assert_int_equal(e.asked, to_decision);
        assert_int_equal(changed(&e) > 0, answers[i] != TR_DECIDE_END);
        // There is nothing in this plan that could be deferred.
        assert_false(tr__executor_is_deferred(e.rig.executor));
        engine_end(&e);
    }
}

static void what_the_decision_fails_with_ends_the_walk(void **state) {
    (void)state;
    engine e;
    engine_begin(&e, &test_model_centered);
    e.answer = TR_DECIDE_APPLY;
    e.status = TR_NUMBERS;
    assert_int_equal(walk(&e), TR_NUMBERS);
    assert_int_equal(e.decided, 1);
    assert_int_equal(changed(&e), 0);
    engine_end(&e);
}

static void a_walk_that_is_stopped_decides_nothing(void **state) {
    (void)state;
    engine e;
    engine_begin(&e, &test_model_centered);
    e.answer = TR_DECIDE_APPLY;
    e.asked_at = 4;
    assert_int_equal(walk(&e), TR_INTERRUPTED);
    assert_int_equal(e.asked, 4);
    assert_int_equal(e.decided, 0);
    assert_int_equal(changed(&e), 0);
    engine_end(&e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guards_follow_the_flags),
        cmocka_unit_test(a_walk_is_over_where_nothing_more_is_done),
        cmocka_unit_test(a_walk_goes_on_for_others_or_for_the_update),
        cmocka_unit_test(the_engine_decides_in_the_walk),
        cmocka_unit_test(what_the_decision_fails_with_ends_the_walk),
        cmocka_unit_test(a_walk_that_is_stopped_decides_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

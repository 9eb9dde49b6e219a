// A discrete plan without one of its waits computes something else, or fails, when its
// queues are late. So the guard finds what nobody waits for; and every kind of wait is
// there for a reason.
#include "exec/rig.h"
#include "guard/guard.h"
#include "ops/optimizers/sgd/sgd.h"
#include "plan/sound.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SEEDS = 4 };

// What a step has left: parameters, sums of the loss and norms.
typedef struct result {
    tr_status status;
    float *values;
    size_t count;
    tr_step_statistics statistics;
} result;

// Waits of steps of one stream for those of another: needed where the accesses are not
// in order without them (others only bound what is in flight).
typedef struct pair {
    int64_t needed, found;
} pair;

static tr_status decide(void *user, tr_decision *decision, tr_error *err) {
    (void)err;
    *decision = *(const tr_decision *)user;
    return TR_OK;
}

// Two steps, of which the first leaves its update to the second where it can: all
// parameters by SGD, at rate 1.
static tr_status walk(test_rig *rig) {
    static const tr_hyper hyper = {.lr = 1};
    static const double power[1][2] = {{1, 1}};
    const tr_plan *plan = rig->plan;
    tr_update_range *ranges = calloc(plan->flat_count, sizeof *ranges);
    assert_non_null(ranges);
    for (size_t f = 0; f < plan->flat_count; f++) {
        ranges[f] = (tr_update_range){.flat = (int)f, .count = plan->flats[f].count};
    }
    tr_update_order order = {.optimizer = &tr__optimizer_sgd,
                             .ranges = ranges,
                             .range_count = plan->flat_count,
                             .hyper = &hyper,
                             .grad_scale = 1,
                             .number = 1,
                             .power = power};
    tr__executor_order(rig->executor, &order);
    tr_decision answers[] = {TR_DECIDE_DEFER, TR_DECIDE_APPLY};
    tr_status status = TR_OK;
    for (int i = 0; i < 2 && status == TR_OK; i++) {
        status =
            test_rig_walk(rig, &(tr_walk_calls){.decide = decide, .user = &answers[i]});
    }
    free(ranges);
    return status;
}

static result take_result(const tr_plan_request *request, int32_t step, int stream) {
    test_rig rig;
    result r = {0};
    test_rig_begin(&rig, request);
    if (step >= 0) {
        rig.plan->sequences[TR_SEQUENCE_TRAIN].steps[step].wait[stream] = 0;
    }
    r.status = walk(&rig);
    for (size_t i = 0; i < rig.plan->param_count; i++) {
        r.count += (size_t)rig.plan->params[i].count;
    }
    r.values = calloc(r.count, sizeof *r.values);
    assert_non_null(r.values);
    size_t at = 0;
    for (size_t i = 0; i < rig.plan->param_count; i++) {
        size_t count = (size_t)rig.plan->params[i].count;
        memcpy(r.values + at, test_rig_param(&rig, (int)i), count * sizeof *r.values);
        at += count;
    }
    r.statistics = test_rig_statistics(&rig);
    test_rig_end(&rig);
    return r;
}

static bool is_same(const result *a, const result *b) {
    return a->status == b->status &&
           memcmp(a->values, b->values, a->count * sizeof *a->values) == 0 &&
           memcmp(a->statistics.sums, b->statistics.sums, sizeof a->statistics.sums) ==
               0 &&
           a->statistics.norm_squares == b->statistics.norm_squares;
}

// Does the step come to something else, in one of the seeds, without this wait?
static bool is_found(const tr_plan_request *request, const result *right, int32_t step,
                     int stream) {
    bool found = false;
    for (uint64_t seed = 0; seed < SEEDS && !found; seed++) {
        test_guard_set_seed(seed);
        result r = take_result(request, step, stream);
        found = !is_same(right, &r);
        free(r.values);
    }
    return found;
}

static bool is_needed(tr_plan *plan, const tr_accesses *accesses, int32_t step,
                      int stream) {
    int32_t *wait = &plan->sequences[TR_SEQUENCE_TRAIN].steps[step].wait[stream];
    int32_t right = *wait;
    *wait = 0;
    bool sound = test_is_sound(plan, TR_SEQUENCE_TRAIN, accesses);
    *wait = right;
    return !sound;
}

// pairs: [waiting][awaited]
static void leave_out_each(const tr_plan_request *request,
                           pair pairs[TR_STREAMS][TR_STREAMS]) {
    tr_plan *plan = NULL;
    tr_accesses accesses = {0};
    tr_error err = {0};
    test_guard_set_seed(0);
    result right = take_result(request, -1, 0);
    assert_int_equal(right.status, TR_OK);
    assert_int_equal(tr_plan_make(request, &plan, &err), TR_OK);
    assert_int_equal(tr__accesses_find(plan, TR_SEQUENCE_TRAIN, &accesses, &err),
                     TR_OK);
    const tr_sequence *train = &plan->sequences[TR_SEQUENCE_TRAIN];
    for (size_t i = 0; i < train->count; i++) {
        for (int s = 0; s < TR_STREAMS; s++) {
            if (train->steps[i].wait[s] > 0) {
                pair *p = &pairs[train->steps[i].stream][s];
                bool needed = is_needed(plan, &accesses, (int32_t)i, s);
                bool found = is_found(request, &right, (int32_t)i, s);
                assert_true(needed || !found);
                p->needed += needed;
                p->found += found;
            }
        }
    }
    tr__accesses_clear(&accesses);
    tr_plan_destroy(plan);
    free(right.values);
}

// Whatever the pace, the bits are those of a device that is not discrete: see the other
// tests, which are linked with both.
static void the_pace_changes_nothing(const tr_plan_request *request) {
    test_guard_set_seed(0);
    result right = take_result(request, -1, 0);
    for (uint64_t seed = 1; seed < 10; seed++) {
        test_guard_set_seed(seed);
        result other = take_result(request, -1, 0);
        assert_true(is_same(&right, &other));
        free(other.values);
    }
    free(right.values);
}

static void print_pairs(const pair pairs[TR_STREAMS][TR_STREAMS]) {
    for (int w = 0; w < TR_STREAMS; w++) {
        for (int s = 0; s < TR_STREAMS; s++) {
            if (pairs[w][s].needed > 0) {
                print_message("%s waits for %s: %d are needed, %d are missed\n",
                              tr__stream_name((tr_stream)w),
                              tr__stream_name((tr_stream)s), (int)pairs[w][s].needed,
                              (int)pairs[w][s].found);
            }
        }
    }
}

static void every_kind_of_wait_is_missed(void **state) {
    static const struct {
        tr_stream waiting, awaited;
    } kinds[] = {
        {TR_STREAM_COMPUTE, TR_STREAM_COPY},     {TR_STREAM_COPY, TR_STREAM_COMPUTE},
        {TR_STREAM_COPY_OUT, TR_STREAM_COMPUTE}, {TR_STREAM_COPY, TR_STREAM_HOST},
        {TR_STREAM_HOST, TR_STREAM_COPY_OUT},    {TR_STREAM_DATA, TR_STREAM_COMPUTE},
    };
    pair pairs[TR_STREAMS][TR_STREAMS] = {0};
    tr_model *model = test_rig_gpt2(2, 0.1);
    tr_plan_request here = test_rig_request(model, 4), away = here;
    (void)state;
    away.optimizer_placement = TR_SPACE_HOST;
    away.param_placement = TR_SPACE_HOST;
    away.boundary_placement = TR_SPACE_HOST;
    away.recomputed_units = 2;
    the_pace_changes_nothing(&here);
    the_pace_changes_nothing(&away);
    leave_out_each(&here, pairs);
    leave_out_each(&away, pairs);
    print_pairs(pairs);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        assert_true(pairs[kinds[i].waiting][kinds[i].awaited].found > 0);
    }
    tr_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_kind_of_wait_is_missed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

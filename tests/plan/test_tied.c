// A tensor that units on several stages of a pipeline use: which stages have it, how
// they sum its gradient and what the noise scale looks at, and what the proof has
// against other sums.
#include "plan/models.h"
#include "plan/ordered.h"
#include "plan/passes/first_wave.h"
#include "plan/proof/prove.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { STAGES = 4, FIRST = 0, BETWEEN = 1, SECOND = 2, LAST = 3 };

static tr_plan_request request_at(int64_t stage, tr_pipeline_order order) {
    tr_plan_request request = test_request(&test_model_tied, 1, 4);
    request.mesh = (tr_mesh){.size = {1, 1, STAGES}, .at = {0, 0, stage}};
    request.pipeline_order = order;
    request.measure = TR_MEASURE_ALWAYS;
    return request;
}

static tr_plan *plan_at(int64_t stage) {
    tr_plan_request request = request_at(stage, TR_PIPELINE_1F1B);
    return test_plan(&request);
}

static size_t tied_of(const tr_plan *plan) {
    size_t f = 0;
    while (!plan->flats[f].tied) {
        f++;
    }
    return f;
}

// Exchanges of a part of it.
static int64_t exchanges(const tr_plan *plan, tr_part part) {
    const tr_sequence *train = &plan->sequences[TR_SEQUENCE_TRAIN];
    int64_t count = 0;
    for (size_t i = 0; i < train->count; i++) {
        count += train->steps[i].shape == TR_STEP_IS_EXCHANGE &&
                 train->steps[i].payload.exchange.part == part;
    }
    return count;
}

// The first two sum by halves; the last sends what it has, and gets the sum.
static void its_stages_alone_have_it(void **state) {
    static const int64_t sums[STAGES] = {2, 0, 4, 2}, first[STAGES] = {1, 0, 2, 1};
    (void)state;
    for (int64_t stage = 0; stage < STAGES; stage++) {
        tr_plan *plan = plan_at(stage);
        const tr_flat *flat = &plan->flats[tied_of(plan)];
        bool has = stage != BETWEEN;
        assert_int_equal(tr__stages_with(&flat->axes), 3);
        assert_int_equal(flat->count, has ? flat->all : 0);
        assert_int_equal(exchanges(plan, TR_PART_GRAD), sums[stage]);
        assert_int_equal(exchanges(plan, TR_PART_FIRST_WAVE), first[stage]);
        assert_int_equal(test_count_steps(plan, TR_VERB_add), has);
        assert_int_equal(test_count_steps(plan, TR_VERB_micro_norm_tied),
                         stage == FIRST);
        tr_plan_destroy(plan);
    }
}

static void refuse(tr_plan *plan, const char *how) {
    tr_error err = {0};
    if (tr__plan_prove(plan, &err) != TR_INTERNAL) {
        fail_msg("a plan was proved with %s", how);
    }
}

static void spoil(tr_plan *plan, tr_plan_step *step) {
    tr_exchange *e = &step->payload.exchange, kept = *e;
    unsigned guard = step->guard;
    e->to = BETWEEN;
    refuse(plan, "a stage that has none of it");
    *e = kept;
    e->to = e->from == FIRST && e->to == SECOND ? LAST : FIRST;
    refuse(plan, "another stage");
    *e = kept;
    e->kind = e->kind == TR_COMM_REDUCE ? TR_COMM_GATHER : TR_COMM_REDUCE;
    refuse(plan, "a gather for a reduction, or the other way");
    *e = kept;
    e->shard = e->shard == e->count ? (e->count + 1) / 2 : e->count;
    refuse(plan, "other parts");
    *e = kept;
    step->guard = TR_GUARD_APPLIED;
    refuse(plan, "an exchange left out");
    step->guard = (unsigned char)guard;
}

static tr_plan_step *backward_from(tr_plan_step *step, int by) {
    while (step->label.verb != TR_VERB_backward) {
        step += by;
    }
    return step;
}

static void spoil_kept(tr_plan *plan, tr_plan_step *step) {
    tr_plan_step *user = backward_from(step, -1), *next = backward_from(step, 1);
    while (next->unit != user->unit) {
        next = backward_from(next + 1, 1);
    }
    tr_plan_step *const places[] = {user, next};
    for (int i = 0; i < 2; i++) {
        tr_plan_step kept = *step;
        *step = *places[i];
        *places[i] = kept;
        refuse(plan, "a wave kept when it is not there");
        *places[i] = *step;
        *step = kept;
    }
}

// Each exchange between other stages, of other parts or left out is no plan; nor is
// what is kept of another wave.
static void other_sums_are_found(void **state) {
    (void)state;
    for (int64_t stage = 0; stage < STAGES; stage++) {
        tr_plan *plan = plan_at(stage);
        tr_sequence *train = &plan->sequences[TR_SEQUENCE_TRAIN];
        for (size_t i = 0; i < train->count; i++) {
            tr_plan_step *step = &train->steps[i];
            if (step->shape == TR_STEP_IS_EXCHANGE && step->subject == TR_OF_FLAT) {
                spoil(plan, step);
            } else if (step->label.verb == TR_VERB_add) {
                spoil_kept(plan, step);
            }
        }
        assert_int_equal(tr__plan_prove(plan, NULL), TR_OK);
        tr_plan_destroy(plan);
    }
}

// Two waves are under way in a stage's two users: neither is ever there alone.
static void waves_that_overlap_are_left_out(void **state) {
    static const struct {
        tr_pipeline_order order;
        int64_t each;
        bool shown;
    } cases[] = {{TR_PIPELINE_1F1B, 1, true},
                 {TR_PIPELINE_ZERO_BUBBLE, 1, true},
                 {TR_PIPELINE_BREADTH_FIRST, 1, true},
                 {TR_PIPELINE_INTERLEAVED, 2, true},
                 {TR_PIPELINE_V, 2, false}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int64_t stage = 0; stage < STAGES; stage++) {
            tr_plan_request request = request_at(stage, cases[i].order);
            request.virtual_stages = cases[i].each;
            tr_plan *plan = test_plan(&request);
            const tr_flat *flat = &plan->flats[tied_of(plan)];
            assert_int_equal(flat->measured, cases[i].shown);
            assert_int_equal(flat->no_micro_norm != NULL,
                             !cases[i].shown && flat->count > 0);
            tr_plan_destroy(plan);
        }
    }
}

// Whether the noise scale is worth its time is one question for all stages: the second
// alone has 3,600 operations for each byte of its gradients, all together 4,700.
static void stages_decide_alike(void **state) {
    enum { M = 600, G = 4 };
    int64_t measured = 0;
    (void)state;
    for (int64_t stage = 0; stage < STAGES; stage++) {
        tr_plan_request request = test_request(&test_model_tied, M, G);
        request.mesh = (tr_mesh){.size = {1, 1, STAGES}, .at = {0, 0, stage}};
        request.measure = TR_MEASURE_CHEAP;
        tr_plan *plan = test_plan(&request);
        measured += plan->request.measure == TR_MEASURE_ALWAYS;
        tr_plan_destroy(plan);
    }
    assert_int_equal(measured, STAGES);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_stages_alone_have_it),
        cmocka_unit_test(other_sums_are_found),
        cmocka_unit_test(waves_that_overlap_are_left_out),
        cmocka_unit_test(stages_decide_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

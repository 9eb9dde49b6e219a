// How the parts of wave tensors become one: which steps there are for it, and that the
// proof finds each of them that is left out or comes too early.
// Labels: check
#include "graph/centered_model.h"
#include "plan/flow/roles.h"
#include "plan/flow/wave.h"
#include "plan/models.h"
#include "plan/ordered.h"
#include "plan/proof/prove.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { M = 2, G = 3 };

static tr_plan *make(const tr_model *model, int64_t ranks, bool reproducible) {
    tr_plan_request request = test_request(model, M, G);
    request.mesh = tr_mesh_of_data(ranks, 0);
    request.train_batch_size *= ranks;
    request.reproducible = reproducible;
    return test_plan(&request);
}

// ---- which steps there are

typedef struct counts {
    int64_t packs, gathers, merges;
} counts;

static counts count(const tr_plan *plan, tr_sequence_kind kind) {
    const tr_sequence *sequence = &plan->sequences[kind];
    counts c = {0};
    for (size_t i = 0; i < sequence->count; i++) {
        const tr_plan_step *step = &sequence->steps[i];
        bool gather = step->shape == TR_STEP_IS_EXCHANGE &&
                      step->payload.exchange.part == TR_PART_WAVE;
        c.packs += step->label.verb == TR_VERB_pack;
        c.gathers += gather;
        c.merges += step->label.verb == TR_VERB_merge;
        assert_int_equal(step->stream == TR_STREAM_COMM && gather, gather);
    }
    return c;
}

static void assert_steps(const tr_model *model, int64_t ranks, bool reproducible,
                         counts want) {
    tr_plan *plan = make(model, ranks, reproducible);
    counts is = count(plan, TR_SEQUENCE_TRAIN);
    assert_int_equal(is.packs, want.packs);
    assert_int_equal(is.gathers, want.gathers);
    assert_int_equal(is.merges, want.merges);
    is = count(plan, TR_SEQUENCE_EVALUATE);
    assert_int_equal(is.packs + is.gathers + is.merges, 0);
    tr_plan_destroy(plan);
}

// Two units have a mean over the batch: it is merged, and so is its gradient.
static void steps_are_there_where_something_is_merged(void **state) {
    tr_model *mlp = test_model_mlp();
    (void)state;
    assert_steps(&test_model_centered, 1, false, (counts){0, 0, 0});
    assert_steps(&test_model_centered, 1, true, (counts){0, 0, 4});
    assert_steps(&test_model_centered, 3, false, (counts){0, 4, 4});
    assert_steps(&test_model_centered, 3, true, (counts){4, 4, 4});
    assert_steps(mlp, 3, true, (counts){0, 0, 0});
    tr_model_destroy(mlp);
}

// Six batch norms: the stem has one, the blocks two and three. Of one rank's alone,
// only what the states follow is exchanged; of a micro-batch, all of a unit at once.
static void statistics_of_a_rank_are_its_own(void **state) {
    tr_model *whole = test_model_resnet(TR_EFFECTIVE_BATCH);
    tr_model *rank = test_model_resnet(TR_RANK_BATCH);
    tr_model *micro = test_model_resnet(TR_MICRO_BATCH);
    (void)state;
    assert_steps(whole, 1, false, (counts){0, 0, 0});
    assert_steps(whole, 2, false, (counts){0, 12, 12});
    assert_steps(whole, 2, true, (counts){12, 12, 12});
    assert_steps(rank, 2, false, (counts){0, 6, 6});
    assert_steps(rank, 2, true, (counts){6, 6, 12});
    assert_steps(micro, 1, true, (counts){0, 0, 3});
    assert_steps(micro, 2, false, (counts){0, 3, 3});
    assert_steps(micro, 2, true, (counts){3, 3, 3});
    tr_model_destroy(whole);
    tr_model_destroy(rank);
    tr_model_destroy(micro);
}

// ---- the proof

static void assert_refused(const tr_plan *plan, const char *what, size_t step,
                           const char *word) {
    tr_error err = {0};
    tr_status status = tr__plan_prove(plan, &err);
    if (status != TR_INTERNAL || !strstr(err.message, word)) {
        fail_msg("%s, step %d: %s", what, (int)step,
                 status == TR_OK ? "the proof finds nothing" : err.message);
    }
}

// What the proof misses where this step is left out.
static const char *missed(const tr_plan_step *step) {
    const char *gradient = step->backward ? "the gradients of " : "";
    static char text[80];
    if (step->label.verb == TR_VERB_merge) {
        return step->backward ? "needs merged gradients of wave tensors"
                              : "needs merged wave tensors";
    }
    snprintf(text, sizeof text, "needs %s parts of %swave tensors",
             step->label.verb == TR_VERB_pack ? "this rank's" : "all ranks'", gradient);
    return text;
}

// What it waits for, the next one waits for; and waits count the communication steps
// before them. So nothing but the content is wrong.
static void remove_step(tr_sequence *sequence, size_t index) {
    tr_plan_step *at = &sequence->steps[index];
    bool exchanges = at->stream == TR_STREAM_COMM;
    int32_t number = 0;
    for (size_t i = 0; i <= index; i++) {
        number += sequence->steps[i].stream == TR_STREAM_COMM;
    }
    int32_t *next = &at[1].wait[TR_STREAM_COMM], wait = at->wait[TR_STREAM_COMM];
    *next = wait > *next ? wait : *next;
    for (size_t i = index + 1; i < sequence->count; i++) {
        int32_t *later = &sequence->steps[i].wait[TR_STREAM_COMM];
        *later -= exchanges && *later >= number;
    }
    memmove(at, at + 1, (sequence->count - index - 1) * sizeof *at);
    sequence->count--;
}

static void leave_out_each(tr_plan *plan, const tr_sequence *right) {
    tr_sequence *train = &plan->sequences[TR_SEQUENCE_TRAIN];
    for (size_t i = 0; i < right->count; i++) {
        if (tr__step_is_of_wave(&right->steps[i])) {
            remove_step(train, i);
            assert_refused(plan, "left out", i, missed(&right->steps[i]));
            memcpy(train->steps, right->steps, right->count * sizeof *right->steps);
            train->count = right->count;
        }
    }
}

// Pack, gather and merge follow each other; so two of them in the other order are one
// that comes too early. Each is there twice, too.
static void misplace_each(tr_plan *plan) {
    tr_sequence *train = &plan->sequences[TR_SEQUENCE_TRAIN];
    for (size_t i = 0; i + 1 < train->count; i++) {
        tr_plan_step *at = &train->steps[i], first = at[0], second = at[1];
        if (!tr__step_is_of_wave(&first) || first.unit != second.unit ||
            !tr__step_is_of_wave(&second) || first.segment != second.segment) {
            continue;
        }
        at[0] = second;
        at[1] = first;
        at[0].wait[TR_STREAM_COMM] -=
            second.label.verb == TR_VERB_merge; // for the gather
        assert_refused(plan, "the other order", i, missed(&first));
        at[0] = at[1] = first;
        assert_refused(plan, "there twice", i, "");
        at[0] = at[1] = second;
        assert_refused(plan, "there twice", i, "");
        at[0] = first;
        at[1] = second;
    }
}

// Merges of another segment, of the other direction, or without the other ranks.
static void misname_each(tr_plan *plan) {
    tr_sequence *train = &plan->sequences[TR_SEQUENCE_TRAIN];
    for (size_t i = 0; i < train->count; i++) {
        tr_plan_step *at = &train->steps[i], right = *at;
        if (at->label.verb != TR_VERB_merge) {
            continue;
        }
        at->segment = !at->segment;
        assert_refused(plan, "another segment", i, "");
        *at = right;
        at->backward = !at->backward;
        assert_refused(plan, "the other direction", i, "");
        *at = right;
        const tr_step_operand *found = tr__step_find(plan, at, TR_OPERAND_INPUT);
        if (found) {
            tr_step_operand *parts = &plan->operands[found - plan->operands];
            int32_t buffer = parts->buffer;
            parts->buffer = -1;
            assert_refused(plan, "no parts of other ranks", i, "");
            parts->buffer = buffer;
        }
        *at = right;
    }
}

static void spoil(const tr_model *model, int64_t ranks, bool reproducible) {
    tr_plan *plan = make(model, ranks, reproducible);
    const tr_sequence *train = &plan->sequences[TR_SEQUENCE_TRAIN];
    tr_sequence right = *train;
    tr_error err = {0};
    assert_true(count(plan, TR_SEQUENCE_TRAIN).merges > 0);
    right.steps = malloc(train->count * sizeof *right.steps);
    assert_non_null(right.steps);
    memcpy(right.steps, train->steps, train->count * sizeof *right.steps);
    leave_out_each(plan, &right);
    free(right.steps);
    misplace_each(plan);
    misname_each(plan);
    assert_int_equal(tr__plan_prove(plan, &err), TR_OK);
    tr_plan_destroy(plan);
}

static void the_proof_finds_what_is_not_merged(void **state) {
    tr_model *rank = test_model_resnet(TR_RANK_BATCH);
    tr_model *micro = test_model_resnet(TR_MICRO_BATCH);
    const tr_model *models[] = {&test_model_centered, rank, micro};
    (void)state;
    for (int i = 0; i < 3; i++) {
        spoil(models[i], 1, true);
        spoil(models[i], 2, true);
        spoil(models[i], 2, false);
    }
    tr_model_destroy(rank);
    tr_model_destroy(micro);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_there_where_something_is_merged),
        cmocka_unit_test(statistics_of_a_rank_are_its_own),
        cmocka_unit_test(the_proof_finds_what_is_not_merged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

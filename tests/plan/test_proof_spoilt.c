// Small drawn plans are spoilt in every way: the proof finds what can change a result,
// and of the rest an oracle that knows accesses alone shows that it cannot.
//
// TR_PROOF_PLANS=N spoils so many plans.
#include "draws.h"
#include "plan/depends.h"
#include "plan/drawn.h"
#include "plan/flow/passes.h"
#include "plan/flow/schedule.h"
#include "plan/models.h"
#include "plan/proof/check.h"
#include "plan/proof/prove.h"
#include "plan/sound.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// Small plans that are spoilt, and how many steps a small one has at most.
enum { PLANS = TEST_DRAWS(50, 5), OPEN_PLANS = TEST_DRAWS(8, 3), SMALL = 90 };

typedef struct count {
    const char *what;
    int64_t total, found, harmless;
} count;

typedef struct spoiler {
    tr_plan *plan;
    uint64_t request;
    tr_sequence_kind kind;
    tr_accesses accesses; // as they are
    count *count;
    int64_t *waits; // [TR_STREAMS] left out, and found
} spoiler;

static bool is_found(const tr_plan *plan) {
    tr_error err = {0};
    tr_status status = tr__plan_prove(plan, &err);
    assert_true(status == TR_OK || status == TR_INTERNAL);
    return status != TR_OK;
}

// `harmless`: shown to change no result, where the proof finds nothing.
static void note(spoiler *s, bool found, bool harmless, size_t step, int way) {
    s->count->total++;
    s->count->found += found;
    s->count->harmless += !found && harmless;
    if (!found && !harmless) {
        const tr_plan_step *at = &s->plan->sequences[s->kind].steps[step];
        fail_msg("request %d: %s: %s step %d (%s), way %d, is not found",
                 (int)s->request, s->count->what, tr__sequence_name(s->kind), (int)step,
                 tr__verb_name(at->label.verb), way);
    }
}

// ---- waits

static void spoil_waits(spoiler *s) {
    tr_sequence *sequence = &s->plan->sequences[s->kind];
    for (size_t i = 0; i < sequence->count; i++) {
        tr_plan_step *step = &sequence->steps[i], right = *step;
        for (int w = 0; w < TR_STREAMS; w++) {
            if (step->wait[w] > 0) {
                step->wait[w] = 0;
                bool found = is_found(s->plan);
                s->waits[w] += found;
                note(s, found, found || test_is_sound(s->plan, s->kind, &s->accesses),
                     i, w);
                *step = right;
            }
        }
    }
}

// ---- accesses

// The plan that follows from these accesses.
static void plan_anew(spoiler *s, const tr_accesses *accesses) {
    tr_plan *plan = s->plan;
    tr_error err = {0};
    for (size_t b = 0; b < plan->buffer_count; b++) {
        if (plan->buffers[b].sequence == (int)s->kind) {
            plan->buffers[b].first = INT32_MAX;
            plan->buffers[b].last = -1;
        }
    }
    assert_int_equal(tr__schedule_from(plan, s->kind, accesses, &err), TR_OK);
    for (size_t b = 0; b < plan->buffer_count; b++) { // nobody accesses it any more
        tr_buffer *buffer = &plan->buffers[b];
        if (buffer->sequence == (int)s->kind && buffer->last < buffer->first) {
            buffer->first = buffer->last = 0;
        }
    }
    assert_int_equal(tr__pass_offsets(plan, &err), TR_OK);
    if (plan->request.discrete) {
        assert_int_equal(tr__reuse_from(plan, s->kind, accesses, &err), TR_OK);
    }
}

// What a plan is made of: is it the same?
typedef struct copy {
    tr_plan_step *steps;
    tr_step_operand *operands;
    tr_buffer *buffers;
} copy;

static copy copy_plan(const spoiler *s) {
    const tr_sequence *sequence = &s->plan->sequences[s->kind];
    copy c = {malloc(sequence->count * sizeof *c.steps),
              malloc(s->plan->operand_count * sizeof *c.operands),
              malloc(s->plan->buffer_count * sizeof *c.buffers)};
    assert_true(c.steps && c.operands && c.buffers);
    memcpy(c.operands, s->plan->operands, s->plan->operand_count * sizeof *c.operands);
    memcpy(c.steps, sequence->steps, sequence->count * sizeof *c.steps);
    memcpy(c.buffers, s->plan->buffers, s->plan->buffer_count * sizeof *c.buffers);
    return c;
}

static bool are_modes_same(const spoiler *s, const copy *c) {
    bool same = true;
    for (size_t i = 0; i < s->plan->operand_count; i++) {
        same = same && c->operands[i].mode == s->plan->operands[i].mode;
    }
    return same;
}

static bool is_same(const spoiler *s, const copy *c) {
    const tr_sequence *sequence = &s->plan->sequences[s->kind];
    bool same =
        memcmp(c->steps, sequence->steps, sequence->count * sizeof *c->steps) == 0 &&
        are_modes_same(s, c);
    for (size_t b = 0; b < s->plan->buffer_count; b++) {
        same = same && c->buffers[b].offset == s->plan->buffers[b].offset;
    }
    return same;
}

// Way 0: it is left out; 1: half of it; 2: a read in place of a write, or a write.
static void spoil_access(tr_access *access, int way) {
    if (way == 0) {
        access->end = access->first;
    } else if (way == 1) {
        access->end = access->first + (access->end - access->first) / 2;
    } else {
        access->mode =
            access->mode == TR_ACCESS_READ ? TR_ACCESS_WRITE : TR_ACCESS_READ;
        access->contributes = 0;
    }
}

static void remove_access(tr_accesses *accesses, size_t steps, size_t k) {
    memmove(&accesses->items[k], &accesses->items[k + 1],
            (accesses->count - k - 1) * sizeof *accesses->items);
    accesses->count--;
    for (size_t i = 0; i <= steps; i++) {
        accesses->begin[i] -= accesses->begin[i] > k;
    }
}

static void spoil_accesses(spoiler *s) {
    size_t steps = s->plan->sequences[s->kind].count;
    copy right = copy_plan(s);
    for (size_t i = 0; i < steps; i++) {
        for (size_t k = s->accesses.begin[i]; k < s->accesses.begin[i + 1]; k++) {
            for (int way = 0; way < 3; way++) {
                tr_accesses wrong = {0};
                tr_error err = {0};
                assert_int_equal(tr__accesses_find(s->plan, s->kind, &wrong, &err),
                                 TR_OK);
                spoil_access(&wrong.items[k], way);
                if (wrong.items[k].first == wrong.items[k].end) {
                    remove_access(&wrong, steps, k);
                }
                plan_anew(s, &wrong);
                bool same = is_same(s, &right), found = !same && is_found(s->plan);
                note(s, found,
                     same || found ||
                         (are_modes_same(s, &right) &&
                          test_is_sound(s->plan, s->kind, &s->accesses)),
                     i, way);
                memcpy(s->plan->sequences[s->kind].steps, right.steps,
                       steps * sizeof *right.steps);
                memcpy(s->plan->operands, right.operands,
                       s->plan->operand_count * sizeof *right.operands);
                memcpy(s->plan->buffers, right.buffers,
                       s->plan->buffer_count * sizeof *right.buffers);
                tr__accesses_clear(&wrong);
            }
        }
    }
    plan_anew(s, &s->accesses);
    assert_true(is_same(s, &right));
    free(right.steps);
    free(right.operands);
    free(right.buffers);
}

// ---- what is launched and moved

// Ways: the operand is absent; it is only read, or is written; an add is a write, or a
// write an add; all of the buffer is written. False: the way changes nothing here.
static bool spoil_operand(const tr_plan *plan, tr_step_operand *operand, int way) {
    int64_t all = plan->buffers[operand->buffer].bytes;
    bool reads = operand->mode == TR_ACCESS_READ;
    bool longer = operand->end - operand->first < all;
    switch (way) {
    case 0:
        operand->buffer = -1;
        return true;
    case 1:
        operand->mode = reads ? TR_ACCESS_WRITE : TR_ACCESS_READ;
        return true;
    case 2:
        operand->mode =
            operand->mode == TR_ACCESS_ADD ? TR_ACCESS_WRITE : TR_ACCESS_ADD;
        return operand->contributes;
    default:
        operand->first = 0;
        operand->end = all;
        return longer && !reads;
    }
}

// Do all operands together that the step writes fill the buffer?
static bool is_filled(const tr_plan *plan, const tr_plan_step *step, int32_t buffer) {
    int64_t bytes = 0;
    for (size_t k = 0; k < step->payload.operand_count; k++) {
        const tr_step_operand *of = tr__step_operand(plan, step, k);
        bool writes = of->buffer == buffer && of->mode != TR_ACCESS_READ;
        bytes += writes ? tr__operand_bytes(of) : 0;
    }
    return bytes >= plan->buffers[buffer].bytes;
}

// What a rank sends of what it gathers in place lies within that.
static bool is_within_another(const tr_plan *plan, const tr_plan_step *step, size_t i) {
    const tr_step_operand *of = tr__step_operand(plan, step, i);
    bool within = false;
    for (size_t k = 0; k < step->payload.operand_count; k++) {
        const tr_step_operand *other = tr__step_operand(plan, step, k);
        within = within || (k != i && other->buffer == of->buffer &&
                            other->first <= of->first && of->end <= other->end);
    }
    return within;
}

static void spoil_payload(spoiler *s, size_t at) {
    const tr_plan_step *step = &s->plan->sequences[s->kind].steps[at];
    for (size_t i = 0; i < step->payload.operand_count; i++) {
        tr_step_operand *operand = tr__step_operand(s->plan, step, i), right = *operand;
        bool there = right.buffer >= 0 && right.first < right.end;
        bool within = there && is_within_another(s->plan, step, i);
        bool filled = there && is_filled(s->plan, step, right.buffer);
        for (int way = 0; there && way < 4; way++) {
            if (spoil_operand(s->plan, operand, way)) {
                note(s, is_found(s->plan), way < 2 ? within : way == 3 && filled, at,
                     way);
            }
            *operand = right;
        }
    }
}

static void spoil_payloads(spoiler *s) {
    for (size_t i = 0; i < s->plan->sequences[s->kind].count; i++) {
        spoil_payload(s, i);
    }
}

// ---- guards, steps, their order

// An interrupted walk goes on where others wait for it, or an update has begun.
static bool goes_on(const spoiler *s) {
    const tr_sequence *sequence = &s->plan->sequences[s->kind];
    bool goes = tr_mesh_ranks(&s->plan->request.mesh) > 1;
    for (size_t i = 0; i < sequence->count; i++) {
        goes = goes || sequence->steps[i].guard == TR_GUARD_DEFERRED;
    }
    return goes && s->kind == TR_SEQUENCE_TRAIN;
}

// Is it the report of a rank that has no other to tell why it was stopped?
static bool tells_nobody(const tr_plan *plan, const tr_plan_step *step) {
    return step->shape == TR_STEP_IS_HOST && step->payload.call == TR_HOST_REPORT &&
           tr_mesh_ranks(&plan->request.mesh) == 1;
}

// As an update of a flat buffer without elements.
static bool launches_nothing(const tr_plan_step *step) {
    return step->shape == TR_STEP_IS_LAUNCH && !step->payload.program &&
           step->payload.op_count == 0;
}

// What an interrupted step computes is dropped, so it may as well be computed; what is
// read into staging and not used may as well be read; and what does nothing may as well
// be done.
static void spoil_guards(spoiler *s) {
    tr_sequence *sequence = &s->plan->sequences[s->kind];
    bool goes = goes_on(s);
    for (size_t i = 0; i < sequence->count; i++) {
        tr_plan_step *step = &sequence->steps[i];
        tr_step_guard right = step->guard;
        for (int guard = TR_GUARD_RUNNING; guard <= TR_GUARD_DEFERRED; guard++) {
            step->guard = (tr_step_guard)guard;
            bool computes = right == TR_GUARD_RUNNING && guard == TR_GUARD_ALWAYS;
            bool stages = guard == TR_GUARD_ALWAYS && step->label.verb == TR_VERB_read;
            bool harmless =
                ((computes || stages) &&
                 (!goes || !test_outlives(s->plan, &s->accesses, i))) ||
                (guard == TR_GUARD_RUNNING && tells_nobody(s->plan, step)) ||
                launches_nothing(step);
            if (step->guard != right) {
                note(s, is_found(s->plan), harmless, i, guard);
            }
        }
        step->guard = right;
    }
}

static void leave_out(spoiler *s, size_t i) {
    tr_sequence *sequence = &s->plan->sequences[s->kind];
    tr_plan_step step = sequence->steps[i], *at = &sequence->steps[i];
    size_t after = sequence->count - i - 1;
    memmove(at, at + 1, after * sizeof *at);
    sequence->count--;
    bool found = is_found(s->plan);
    memmove(at + 1, at, after * sizeof *at);
    *at = step;
    sequence->count++;
    note(s, found, test_is_idle(s->plan, &step), i, 0);
}

static void spoil_steps(spoiler *s) {
    for (size_t i = 0; i < s->plan->sequences[s->kind].count; i++) {
        leave_out(s, i);
    }
}

static uint64_t digest_of(const tr_plan *plan) {
    tr_plan_digest digest;
    tr__plan_exchanges(plan, &digest);
    return digest.all;
}

// Exchanges in another order than those of other ranks are found by the digest.
static void spoil_order(spoiler *s) {
    tr_sequence *sequence = &s->plan->sequences[s->kind];
    uint64_t digest = digest_of(s->plan);
    for (size_t i = 0; i + 1 < sequence->count; i++) {
        tr_plan_step *steps = &sequence->steps[i], step = steps[0];
        if (!test_conflict(&s->accesses, i)) {
            continue;
        }
        bool matters = test_order_matters(s->plan, s->kind, &s->accesses, i) &&
                       !test_is_idle(s->plan, &steps[0]) &&
                       !test_is_idle(s->plan, &steps[1]);
        steps[0] = steps[1];
        steps[1] = step;
        bool found = is_found(s->plan) || digest_of(s->plan) != digest;
        steps[1] = steps[0];
        steps[0] = step;
        note(s, found, !matters, i, 0);
    }
}

// Of an exchange any other group than its own.
static void spoil_groups(spoiler *s) {
    tr_sequence *sequence = &s->plan->sequences[s->kind];
    for (size_t i = 0; i < sequence->count; i++) {
        tr_plan_step *step = &sequence->steps[i];
        bool exchanges = step->shape == TR_STEP_IS_EXCHANGE;
        tr_axes right = exchanges ? step->payload.exchange.group : 0;
        for (tr_axes group = 0; exchanges && group <= TR_ON_ALL; group++) {
            step->payload.exchange.group = group;
            if (group != right) {
                note(s, is_found(s->plan), false, i, (int)group);
            }
        }
        if (exchanges) {
            step->payload.exchange.group = right;
        }
    }
}

// ---- all of it

typedef struct way {
    const char *what;
    void (*spoil)(spoiler *);
} way;

static const way ways[] = {
    {"waits left out", spoil_waits},
    {"accesses left out, halved, of another mode", spoil_accesses},
    {"other guards", spoil_guards},
    {"steps left out", spoil_steps},
    {"dependent neighbours in the other order", spoil_order},
    {"other groups", spoil_groups},
    {"other operands of launches and moves", spoil_payloads},
};
enum { WAYS = sizeof ways / sizeof *ways };

// In the first `tried` ways.
static void spoil_plan_so(tr_plan *plan, uint64_t request, int tried, count *counts,
                          int64_t waits[TR_STREAMS]) {
    for (int kind = 0; kind < TR_SEQUENCES; kind++) {
        spoiler s = {.plan = plan,
                     .request = request,
                     .kind = (tr_sequence_kind)kind,
                     .waits = waits};
        tr_error err = {0};
        if (plan->sequences[kind].count == 0) {
            continue;
        }
        assert_int_equal(tr__accesses_find(plan, s.kind, &s.accesses, &err), TR_OK);
        assert_true(test_is_sound(plan, s.kind, &s.accesses));
        for (int w = 0; w < tried; w++) {
            s.count = &counts[w];
            ways[w].spoil(&s);
        }
        assert_false(is_found(plan));
        tr__accesses_clear(&s.accesses);
    }
}

static void spoil_plan(tr_plan *plan, uint64_t request, count *counts,
                       int64_t waits[TR_STREAMS]) {
    spoil_plan_so(plan, request, WAYS, counts, waits);
}

static bool is_small(const tr_plan *plan) {
    size_t steps = plan->sequences[TR_SEQUENCE_TRAIN].count;
    return steps > 0 && steps <= SMALL;
}

static bool is_any(const tr_plan *plan) {
    (void)plan;
    return true;
}

static bool hands_out(const tr_plan *plan) {
    return plan->hands_out;
}

static bool goes_twice(const tr_plan *plan) {
    return plan->request.passes > 1;
}

// Small plans of drawn requests, of those that are meant.
static void spoil_drawn(int plans, bool (*is_meant)(const tr_plan *plan),
                        count counts[WAYS], int64_t waits[TR_STREAMS]) {
    test_models models;
    for (int w = 0; w < WAYS; w++) {
        counts[w].what = ways[w].what;
    }
    test_models_make(&models);
    for (uint64_t i = 0; plans > 0; i++) {
        tr_plan_request request = test_draw_request(&models, i * 37);
        tr_plan *plan = NULL;
        tr_error err = {0};
        request.mesh.at[TR_AXIS_DATA] =
            0; // which has a part of everything; others may have none
        if (tr_plan_make(&request, &plan, &err) != TR_OK) {
            continue;
        }
        if (is_small(plan) && is_meant(plan)) {
            spoil_plan(plan, i * 37, counts, waits);
            plans--;
        }
        tr_plan_destroy(plan);
    }
    test_models_destroy(&models);
}

static void assert_some(const count *counts, int ways_tried) {
    for (int w = 0; w < ways_tried; w++) {
        const count *c = &counts[w];
        print_message("%s: %lld found, %lld harmless, %lld in all\n", c->what,
                      (long long)c->found, (long long)c->harmless, (long long)c->total);
        assert_true(c->found > 0);
        assert_int_equal(c->found + c->harmless, c->total);
    }
}

static void assert_counts(const count counts[WAYS]) {
    assert_some(counts, WAYS);
}

static void what_changes_a_result_is_found(void **state) {
    const char *asked = getenv("TR_PROOF_PLANS");
    count counts[WAYS] = {{0}};
    int64_t waits[TR_STREAMS] = {0};
    (void)state;
    spoil_drawn(asked ? atoi(asked) : PLANS, is_any, counts, waits);
    for (int stream = TR_STREAM_COMM; stream < TR_STREAMS; stream++) {
        bool of_mesh = stream == TR_STREAM_SEND || stream == TR_STREAM_RECEIVE ||
                       stream == TR_STREAM_TENSOR;
        // A few plans do not have steps of each stream that is waited for.
        assert_true(waits[stream] > 0 || of_mesh || TEST_SANITIZED);
    }
    assert_counts(counts);
}

static void what_goes_to_the_caller_goes_there_in_its_place(void **state) {
    count counts[WAYS] = {{0}};
    int64_t waits[TR_STREAMS] = {0};
    (void)state;
    spoil_drawn(OPEN_PLANS, hands_out, counts, waits);
    assert_counts(counts);
}

static void what_runs_twice_does_so_for_a_reason(void **state) {
    count counts[WAYS] = {{0}};
    int64_t waits[TR_STREAMS] = {0};
    (void)state;
    spoil_drawn(OPEN_PLANS, goes_twice, counts, waits);
    assert_counts(counts);
}

// A stage waits for what it receives, and its memory for what it sends. (What is not
// sent at all is found where the plans of all stages meet: test_match.c.)
static void what_stages_hand_on_is_waited_for(void **state) {
    tr_model *model = test_model_small_gpt2(0);
    count counts[WAYS] = {{.what = ways[0].what}};
    int64_t waits[TR_STREAMS] = {0};
    (void)state;
    for (int64_t at = 0; at < 4; at++) {
        tr_plan_request request = test_request(model, 1, 3);
        request.mesh = (tr_mesh){.size = {1, 1, 2}, .at = {0, 0, at % 2}};
        request.virtual_stages = at < 2 ? 1 : 2;
        request.pipeline_order = at < 2 ? TR_PIPELINE_1F1B : TR_PIPELINE_INTERLEAVED;
        tr_plan *plan = test_plan(&request);
        spoil_plan_so(plan, (uint64_t)at, 1, counts, waits);
        tr_plan_destroy(plan);
    }
    tr_model_destroy(model);
    assert_true(waits[TR_STREAM_SEND] > 0 && waits[TR_STREAM_RECEIVE] > 0);
    assert_true(counts[0].found > 0);
    assert_int_equal(counts[0].found + counts[0].harmless, counts[0].total);
}

// The step comes before the one before it, and so on up to the sequence's begin.
static void bring_forward(spoiler *s, size_t i) {
    tr_plan_step *steps = s->plan->sequences[s->kind].steps, step = steps[i];
    size_t to = i;
    while (to > 0 && !(tr__step_runs(&steps[to], TR_VARIANT_BACKWARD) &&
                       !tr__step_runs_weights(&steps[to]) &&
                       steps[to].unit == step.unit && steps[to].micro == step.micro)) {
        to--;
    }
    memmove(&steps[to + 1], &steps[to], (i - to) * sizeof *steps);
    steps[to] = step;
    note(s, is_found(s->plan), false, i, 0);
    memmove(&steps[to], &steps[to + 1], (i - to) * sizeof *steps);
    steps[i] = step;
}

// Of all steps that make gradients of weights which were put off. Returns how many.
static int spoil_weights(tr_plan *plan, uint64_t request, count *counts) {
    spoiler s = {.plan = plan, .request = request, .kind = TR_SEQUENCE_TRAIN};
    const tr_sequence *train = &plan->sequences[TR_SEQUENCE_TRAIN];
    int done = 0;
    for (size_t i = 0; i < train->count; i++) {
        if (tr__step_runs_weights(&train->steps[i])) {
            s.count = &counts[0];
            leave_out(&s, i);
            s.count = &counts[1];
            bring_forward(&s, i);
            s.count = &counts[2];
            spoil_payload(&s, i);
            done++;
        }
    }
    return done;
}

// Each of them matters, also where those of other micro-batches come between.
static void weights_that_come_later_are_known(void **state) {
    static const struct {
        tr_pipeline_order order;
        tr_mesh mesh;
        int recomputed;
        bool reproducible;
    } of[] = {
        {TR_PIPELINE_ZERO_BUBBLE, {.size = {1, 1, 2}}, 0, false},
        {TR_PIPELINE_ZERO_BUBBLE, {.size = {1, 1, 2}, .at = {0, 0, 1}}, 2, true},
        {TR_PIPELINE_V, {.size = {1, 1, 2}}, 1, false},
        {TR_PIPELINE_V, {.size = {2, 1, 2}, .at = {1, 0, 1}}, 0, true},
    };
    tr_model *model = test_model_deep_gpt2(4);
    count counts[3] = {{.what = "left out"},
                       {.what = "before their backward"},
                       {.what = "with other operands"}};
    (void)state;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        tr_plan_request request = test_request(model, 1, 3);
        request.mesh = of[i].mesh;
        request.pipeline_order = of[i].order;
        request.virtual_stages = of[i].order == TR_PIPELINE_V ? 2 : 1;
        request.recomputed_units = of[i].recomputed;
        request.reproducible = of[i].reproducible;
        request.train_batch_size *= of[i].mesh.size[TR_AXIS_DATA];
        tr_plan *plan = test_plan(&request);
        assert_true(spoil_weights(plan, i, counts) > 0);
        tr_plan_destroy(plan);
    }
    tr_model_destroy(model);
    assert_some(counts, sizeof counts / sizeof *counts);
}

// Ranks of the tensor axis sum inside of units; with two data ranks, beside those.
// Those that cut what lies between layers along the tokens gather and reduce there, and
// sum gradients before the norm.
static void what_ranks_sum_inside_of_units_is_summed(void **state) {
    const tr_model model = test_model_summed();
    const tr_plan_request requests[] = {
        {.mesh = {.size = {1, 2, 1}}, .accumulation_steps = 2, .wave = 1},
        {.mesh = {.size = {2, 2, 1}, .at = {0, 1, 0}},
         .accumulation_steps = 1,
         .wave = 1,
         .stage = 3,
         .recomputed_units = 2},
        {.mesh = {.size = {1, 3, 1}, .at = {0, 2, 0}},
         .accumulation_steps = 2,
         .wave = 2,
         .reproducible = true,
         .recomputed_units = 1},
        {.mesh = {.size = {1, 2, 1}},
         .accumulation_steps = 2,
         .wave = 2,
         .recomputed_units = 2},
        {.mesh = {.size = {1, 2, 1}, .at = {0, 1, 0}},
         .accumulation_steps = 2,
         .wave = 1,
         .sequence_parallel = true},
        {.mesh = {.size = {2, 2, 1}, .at = {0, 0, 0}},
         .accumulation_steps = 1,
         .wave = 1,
         .stage = 2,
         .recomputed_units = 1,
         .sequence_parallel = true},
    };
    tr_model *tokens = test_model_small_gpt2(0);
    count counts[WAYS] = {{0}};
    int64_t waits[TR_STREAMS] = {0};
    (void)state;
    for (int w = 0; w < WAYS; w++) {
        counts[w].what = ways[w].what;
    }
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        tr_plan_request request = requests[i];
        tr_plan *plan = NULL;
        tr_error err = {0};
        request.model = request.sequence_parallel ? tokens : &model;
        // But for what the model asks for itself.
        request.tensor_ranks_alike = !request.sequence_parallel;
        request.micro_batch = 2;
        request.train_batch_size =
            2 * request.accumulation_steps * request.mesh.size[TR_AXIS_DATA];
        request.threads = 1;
        request.optimizer_states = 2;
        if (tr__plan_build(&request, &plan, &err) != TR_OK) {
            fail_msg("request %zu: %s", i, err.message);
        }
        assert_true(tr__plan_exchanges_inside(plan));
        spoil_plan(plan, i, counts, waits);
        tr_plan_destroy(plan);
    }
    assert_true(waits[TR_STREAM_TENSOR] > 0);
    tr_model_destroy(tokens);
    assert_counts(counts);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_stages_hand_on_is_waited_for),
        cmocka_unit_test(weights_that_come_later_are_known),
        cmocka_unit_test(what_ranks_sum_inside_of_units_is_summed),
        cmocka_unit_test(what_changes_a_result_is_found),
        cmocka_unit_test(what_goes_to_the_caller_goes_there_in_its_place),
        cmocka_unit_test(what_runs_twice_does_so_for_a_reason)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// On requests drawn at random, plans are proved by the checker, which knows nothing of
// accesses; every step waits for what it accesses; and every buffer lives as long as
// steps access it. Where computing goes on beside, every step waits for those who use
// its memory; where it does not, lifetimes see to that, and nobody has to wait.
#include "draws.h"
#include "plan/drawn.h"
#include "plan/flow/schedule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// Of ten drawn requests two or three can be plans.
enum { DRAWS = TEST_DRAWS(10000, 1500) };

typedef struct comparison {
    const tr_plan *plan;
    tr_sequence_kind kind;
    uint64_t request;
    tr_accesses accesses;
    tr_dependencies derived;
    int32_t *waited; // [steps] of a step beside computing: until when it may go on
} comparison;

typedef struct totals {
    int64_t plans, waits, waits_for_more, waits_for_memory, lifetimes, shorter;
} totals;

// Steps wait for so many of a stream; what one has waited for, later ones need not.
static void compare_waits(const comparison *c, tr_stream stream, totals *t) {
    const tr_sequence *sequence = &c->plan->sequences[c->kind];
    int32_t *number = calloc(sequence->count + 1, sizeof *number);
    int32_t issued = 0, counted = 0, needed = 0;
    for (size_t i = 0; i < sequence->count; i++) {
        const tr_plan_step *step = &sequence->steps[i];
        int32_t on = step->stream == stream ? -1 : c->derived.on[i][stream];
        int32_t wait = step->wait[stream];
        needed = on >= 0 && number[on] > needed ? number[on] : needed;
        t->waits += wait > counted;
        t->waits_for_more += wait > counted && wait > needed;
        counted = wait > counted ? wait : counted;
        if (needed > counted) {
            fail_msg("request %d, %s step %d (%s) needs %d steps of stream %s, and "
                     "waits for %d",
                     (int)c->request, tr__sequence_name(c->kind), (int)i,
                     tr__verb_name(step->label.verb), needed, tr__stream_name(stream),
                     counted);
        }
        issued += step->stream == stream;
        number[i] = issued;
    }
    free(number);
}

// For each step of a stream beside computing, the last step at which it may still go
// on: the next one waits for it.
static void find_waited(comparison *c, tr_stream stream) {
    const tr_sequence *sequence = &c->plan->sequences[c->kind];
    int32_t done = 0, number = 0;
    size_t next = 0;
    for (size_t i = 0; i < sequence->count; i++) {
        int32_t wait = sequence->steps[i].wait[stream];
        done = wait > done ? wait : done;
        for (; number < done && next < i; next++) {
            if (sequence->steps[next].stream == stream) {
                c->waited[next] = (int32_t)i - 1;
                number++;
            }
        }
        if (sequence->steps[i].stream == stream) {
            c->waited[i] = (int32_t)sequence->count - 1;
        }
    }
}

// first, last: [buffers] steps between which the accesses need the buffer.
static void find_lifetimes(const comparison *c, int32_t *first, int32_t *last) {
    const tr_sequence *sequence = &c->plan->sequences[c->kind];
    for (size_t i = 0; i < sequence->count; i++) {
        tr_stream stream = sequence->steps[i].stream;
        bool issued = !tr__stream_is_beside(stream);
        int32_t end = issued ? (int32_t)i : c->waited[i];
        for (size_t k = c->accesses.begin[i]; k < c->accesses.begin[i + 1]; k++) {
            const tr_access *access = &c->accesses.items[k];
            int32_t value = access->value;
            first[value] = first[value] < 0 ? (int32_t)i : first[value];
            last[value] = end > last[value] ? end : last[value];
            assert_true(access->first >= 0 && access->first < access->end);
            assert_true(access->end <= c->plan->buffers[value].bytes);
        }
    }
}

static void compare_lifetimes(const comparison *c, totals *t) {
    size_t buffers = c->plan->buffer_count;
    int32_t *first = malloc(buffers * sizeof *first);
    int32_t *last = malloc(buffers * sizeof *last);
    for (size_t i = 0; i < buffers; i++) {
        first[i] = last[i] = -1;
    }
    find_lifetimes(c, first, last);
    for (size_t i = 0; i < buffers; i++) {
        const tr_buffer *buffer = &c->plan->buffers[i];
        if (buffer->sequence != (int)c->kind) {
            continue;
        }
        if (first[i] < buffer->first || last[i] > buffer->last) {
            fail_msg("request %d, %s: buffer %d (%s) is accessed in [%d, %d], and "
                     "lives in [%d, %d]",
                     (int)c->request, tr__sequence_name(c->kind), (int)i,
                     tr_ledger_name(buffer->category), first[i], last[i], buffer->first,
                     buffer->last);
        }
        t->lifetimes++;
        t->shorter += first[i] > buffer->first || last[i] < buffer->last;
    }
    free(first);
    free(last);
}

static void compare(const tr_plan *plan, tr_sequence_kind kind, uint64_t request,
                    totals *t) {
    comparison c = {.plan = plan, .kind = kind, .request = request};
    tr_error err = {0};
    c.waited = calloc(plan->sequences[kind].count + 1, sizeof *c.waited);
    assert_int_equal(tr__accesses_find(plan, kind, &c.accesses, &err), TR_OK);
    assert_int_equal(tr__schedule_find(plan, kind, &c.accesses, &c.derived, &err),
                     TR_OK);
    for (int s = 0; s < TR_STREAMS; s++) {
        if (tr__plan_is_beside(plan, (tr_stream)s)) {
            compare_waits(&c, (tr_stream)s, t);
            find_waited(&c, (tr_stream)s);
        }
    }
    compare_lifetimes(&c, t);
    tr__accesses_clear(&c.accesses);
    tr__schedule_clear(&c.derived);
    free(c.waited);
}

// So many waits are others when it is known which values share memory.
static int64_t wait_for_memory(tr_plan *plan, tr_sequence_kind kind) {
    tr_sequence *sequence = &plan->sequences[kind];
    tr_accesses accesses = {0};
    tr_error err = {0};
    int64_t others = 0;
    int32_t(*waits)[TR_STREAMS] = calloc(sequence->count + 1, sizeof *waits);
    for (size_t i = 0; i < sequence->count; i++) {
        memcpy(waits[i], sequence->steps[i].wait, sizeof *waits);
    }
    assert_int_equal(tr__accesses_find(plan, kind, &accesses, &err), TR_OK);
    assert_int_equal(tr__reuse_from(plan, kind, &accesses, &err), TR_OK);
    for (size_t i = 0; i < sequence->count; i++) {
        others += memcmp(waits[i], sequence->steps[i].wait, sizeof *waits) != 0;
    }
    tr__accesses_clear(&accesses);
    free(waits);
    return others;
}

static void plans_wait_for_what_they_access(void **state) {
    test_models models;
    totals t = {0};
    (void)state;
    test_models_make(&models);
    for (uint64_t i = 0; i < DRAWS; i++) {
        tr_plan_request request = test_draw_request(&models, i);
        tr_plan *plan = NULL;
        tr_error err = {0};
        if (tr_plan_make(&request, &plan, &err) != TR_OK) {
            if (err.status != TR_USAGE) {
                fail_msg("request %d: %s", (int)i, err.message);
            }
            continue;
        }
        for (int kind = 0; kind < TR_SEQUENCES; kind++) {
            compare(plan, (tr_sequence_kind)kind, i, &t);
            t.waits_for_memory += wait_for_memory(plan, (tr_sequence_kind)kind);
        }
        t.plans++;
        tr_plan_destroy(plan);
    }
    test_models_destroy(&models);
    print_message("%lld plans; %lld waits, %lld of them for more than is accessed; "
                  "%lld lifetimes, %lld longer than the accesses need\n",
                  (long long)t.plans, (long long)t.waits, (long long)t.waits_for_more,
                  (long long)t.lifetimes, (long long)t.shorter);
    assert_true(t.plans > DRAWS / 8);
    assert_int_equal(t.waits_for_memory, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_wait_for_what_they_access)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Labels: check
// What is left out where a micro-batch has no rows: nobody comes to read what such
// launches have not written.
#include "plan/drawn.h"
#include "plan/flow/access.h"
#include "plan/flow/passes.h"
#include "plan/flow/without_rows.h"
#include "plan/models.h"

#include "draws.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { DRAWN = TEST_DRAWS(1000, 30) };

// A walk in which some micro-batches have no rows, by the bytes that nobody has
// written.
typedef struct walk {
    const tr_plan *plan;
    const bool *leave_out; // [steps]
    const bool *empty;     // [g]
    bool **spoilt;         // [buffers][bytes]
} walk;

static bool any(const bool *bytes, int64_t first, int64_t end) {
    return memchr(bytes + first, true, (size_t)(end - first)) != NULL;
}

static bool reads_spoilt(const walk *w, const tr_access *begin, const tr_access *end) {
    bool some = false;
    for (const tr_access *a = begin; a < end; a++) {
        some = some || (a->mode != TR_ACCESS_WRITE &&
                        any(w->spoilt[a->value], a->first, a->end));
    }
    return some;
}

// What the pieces of a unit work in, and no sum.
static bool is_scratch(const walk *w, const tr_access *access) {
    const tr_buffer *of = &w->plan->buffers[access->value];
    return of->category == TR_LEDGER_workspace && of->sequence >= 0;
}

static void write(const walk *w, const tr_access *begin, const tr_access *end,
                  bool spoilt, bool adds) {
    for (const tr_access *a = begin; a < end; a++) {
        bool add = a->mode == TR_ACCESS_ADD && (adds || (spoilt && is_scratch(w, a)));
        if (a->mode == TR_ACCESS_WRITE || add) {
            memset(w->spoilt[a->value] + a->first, spoilt, (size_t)(a->end - a->first));
        }
    }
}

// What is not left out computes with nothing of it, and nothing of it is sent. Copies
// of an empty micro-batch may move it, and the caller does not read it.
static void take(const walk *w, size_t index, const tr_access *begin,
                 const tr_access *end) {
    const tr_plan_step *step = &w->plan->sequences[TR_SEQUENCE_TRAIN].steps[index];
    bool empty = step->of_micro_batch && w->empty[step->micro];
    if (empty && w->leave_out[index]) {
        write(w, begin, end, true, false);
        return;
    }
    bool spoilt = reads_spoilt(w, begin, end);
    bool may = step->shape == TR_STEP_IS_COPY || step->shape == TR_STEP_IS_FILE ||
               step->shape == TR_STEP_IS_HOST;
    if (spoilt && !(empty && may)) {
        fail_msg("step %zu, %s of micro-batch %lld, reads what was left out", index,
                 tr__verb_name(step->label.verb), (long long)step->micro);
    }
    spoilt = spoilt && step->shape != TR_STEP_IS_HOST;
    write(w, begin, end, spoilt, spoilt);
}

static void assert_nothing_stays_spoilt(const walk *w) {
    for (size_t b = 0; b < w->plan->buffer_count; b++) {
        const tr_buffer *buffer = &w->plan->buffers[b];
        assert_false(buffer->sequence < 0 && any(w->spoilt[b], 0, buffer->bytes));
    }
}

static void follow(walk *w) {
    tr_accesses accesses;
    tr_error err = {0};
    size_t count = w->plan->sequences[TR_SEQUENCE_TRAIN].count;
    assert_int_equal(tr__accesses_find(w->plan, TR_SEQUENCE_TRAIN, &accesses, &err),
                     TR_OK);
    w->spoilt = calloc(w->plan->buffer_count, sizeof *w->spoilt);
    assert_non_null(w->spoilt);
    for (size_t b = 0; b < w->plan->buffer_count; b++) {
        w->spoilt[b] = calloc((size_t)w->plan->buffers[b].bytes + 1, sizeof(bool));
        assert_non_null(w->spoilt[b]);
    }
    for (size_t i = 0; i < count; i++) {
        take(w, i, accesses.items + accesses.begin[i],
             accesses.items + accesses.begin[i + 1]);
    }
    assert_nothing_stays_spoilt(w);
    for (size_t b = 0; b < w->plan->buffer_count; b++) {
        free(w->spoilt[b]);
    }
    free(w->spoilt);
    tr__accesses_clear(&accesses);
}

static bool leaves_out(const tr_plan *plan, const bool *leave_out) {
    const tr_sequence *train = &plan->sequences[TR_SEQUENCE_TRAIN];
    bool some = false;
    for (size_t i = 0; i < train->count; i++) {
        assert_true(!leave_out[i] || train->steps[i].shape == TR_STEP_IS_LAUNCH);
        some = some || leave_out[i];
    }
    return some;
}

static bool *find(const tr_plan *plan) {
    tr_error err = {0};
    bool *found = calloc(plan->sequences[TR_SEQUENCE_TRAIN].count + 1, sizeof *found);
    assert_non_null(found);
    assert_int_equal(tr__without_rows_find(plan, found, &err), TR_OK);
    return found;
}

// ---- drawn plans

// Every set of empty micro-batches, as bits of a number.
static bool follow_all(const tr_plan *plan) {
    int64_t g = plan->request.accumulation_steps;
    bool *leave_out = find(plan), *empty = calloc((size_t)g, sizeof *empty);
    assert_non_null(empty);
    for (int bits = 1; bits < 8; bits++) {
        for (int64_t i = 0; i < g; i++) {
            empty[i] = bits >> (i * 3 / g) & 1;
        }
        walk w = {plan, leave_out, empty, NULL};
        follow(&w);
    }
    bool some = leaves_out(plan, leave_out);
    free(empty);
    free(leave_out);
    return some;
}

static void nobody_reads_what_is_left_out(void **state) {
    test_models models;
    size_t plans = 0, some = 0;
    (void)state;
    test_models_make(&models);
    for (uint64_t i = 0; i < DRAWN; i++) {
        tr_plan_request request = test_draw_request(&models, i);
        tr_plan *plan = NULL;
        tr_error err = {0};
        if (tr_plan_make(&request, &plan, &err) == TR_OK) {
            plans++;
            some += follow_all(plan);
        }
        tr_plan_destroy(plan);
    }
    printf("%zu plans, %zu leave something out\n", plans, some);
    assert_true(plans > 0 && some * 4 > plans);
    test_models_destroy(&models);
}

// Between exchanges a unit's pieces work in one place.
static void pieces_between_exchanges_find_what_they_read(void **state) {
    const tr_model summed = test_model_summed();
    tr_model *gpt2 = test_model_small_gpt2(0);
    (void)state;
    for (int i = 0; i < 4; i++) {
        bool sequence = i % 2 == 1;
        tr_plan_request request = test_request(sequence ? gpt2 : &summed, 2, 3);
        tr_plan *plan = NULL;
        tr_error err = {0};
        request.mesh = (tr_mesh){.size = {1 + i / 2, 2, 1}};
        request.train_batch_size *= request.mesh.size[TR_AXIS_DATA];
        request.sequence_parallel = sequence;
        request.tensor_ranks_alike = !sequence;
        assert_int_equal(tr__plan_build(&request, &plan, &err), TR_OK);
        follow_all(plan);
        tr_plan_destroy(plan);
    }
    tr_model_destroy(gpt2);
}

// ---- what is left out

// The first micro-batch writes the sums of gradients, to which the others add.
static void all_of_an_empty_micro_batch_is_left_out(void **state) {
    tr_model *gpt2 = test_model_small_gpt2(0.1);
    const tr_model *models[] = {gpt2, &test_model_open};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        tr_plan_request request = test_request(models[i], 2, 3);
        tr_plan *plan = test_plan(&request);
        const tr_sequence *train = &plan->sequences[TR_SEQUENCE_TRAIN];
        bool *leave_out = find(plan);
        for (size_t s = 0; s < train->count; s++) {
            const tr_plan_step *step = &train->steps[s];
            bool launch = step->of_micro_batch && step->shape == TR_STEP_IS_LAUNCH;
            bool first = tr__step_runs(step, TR_VARIANT_BACKWARD) && step->micro == 0;
            assert_true(!launch || step->micro == 0 || leave_out[s]);
            assert_false(first && leave_out[s]);
        }
        free(leave_out);
        tr_plan_destroy(plan);
    }
    tr_model_destroy(gpt2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_reads_what_is_left_out),
        cmocka_unit_test(pieces_between_exchanges_find_what_they_read),
        cmocka_unit_test(all_of_an_empty_micro_batch_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// The checker of plans must find every way in which a plan can be spoilt.
// Labels: check slow
#include "base/memory.h"
#include "draws.h"
#include "plan/depends.h"
#include "plan/flow/passes.h"
#include "plan/flow/roles.h"
#include "plan/micro_norms.h"
#include "plan/models.h"
#include "plan/proof/check.h"
#include "plan/spoil_programs.h"
#include "plan/subjects.h"
#include "plan/units/offsets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// ---- valid plans to spoil

enum { SUBJECTS = sizeof subjects / sizeof *subjects };

static tr_model *gpt2, *sliced_gpt2;

static tr_plan *make(const subject *s) {
    const tr_model *model = s->centered ? &test_model_centered
                            : s->sliced ? sliced_gpt2
                                        : gpt2;
    tr_plan_request request = test_request(model, 2, s->g);
    request.wave = s->wave;
    request.recomputed_units = s->recomputed;
    request.recomputed_ops = s->classes;
    request.recomputed_ops_units = s->class_units;
    request.boundary_placement = s->boundaries;
    request.inference = s->inference;
    request.mesh = tr_mesh_of_data(s->ranks ? s->ranks : 1, 0);
    request.train_batch_size *= tr__data_ranks(&request);
    request.stage = s->stage;
    request.reproducible = s->reproducible;
    request.no_overlap = s->no_overlap;
    request.tensor_norms = s->norms;
    request.compute = s->compute;
    request.sums = s->sums;
    request.optimizer_placement = s->optimizer;
    request.optimizer_stays = s->stays;
    request.param_placement = s->params;
    request.grad_placement = s->gradients;
    request.update_elements = 2048; // so that some flats have several pieces
    request.update_slots = 3;
    request.measure = s->measured ? TR_MEASURE_ALWAYS : TR_MEASURE_NEVER;
    if (s->packed) {
        request.apart = TR_APART_SMALL;
        request.apart_state_count = 2;
        request.states[0].type = TR_STATE_I8;
        request.states[1].type = TR_STATE_U8;
    }
    if (s->matrices) {
        request.matrices = true;
        request.optimizer_states = 1;
        request.apart = TR_APART_NO_MATRIX;
        request.apart_state_count = 2;
    }
    request.reference_kernels = true; // with workspaces of their own
    return test_plan(&request);
}

static bool is_found(const tr_plan *plan) {
    tr_error err = {0};
    tr_status status = tr__plan_check(plan, &err);
    assert_true(status == TR_OK || status == TR_INTERNAL);
    assert_true((status == TR_OK) == (err.message[0] == 0));
    return status != TR_OK;
}

static int64_t spoilt, harmless;

// `changes`: can it change a result? What changes none may go unfound.
static void must_find_if(bool changes, const tr_plan *plan, const subject *s,
                         const char *what, int a, int b) {
    bool found = is_found(plan);
    spoilt++;
    harmless += !found;
    if (changes && !found) {
        fail_msg("%s: %s (%d, %d) is not found", s->name, what, a, b);
    }
}

static void must_find(const tr_plan *plan, const subject *s, const char *what, int a,
                      int b) {
    must_find_if(true, plan, s, what, a, b);
}

typedef void (*spoiler)(tr_plan *plan, const subject *s);

// Every so many subjects are spoilt; the checker's code is the same for each.
enum { STRIDE = TEST_DRAWS(1, 5) };
// Ways that are many: every tenth subject, and of buffers that stand for another every
// third, beginning with another one at each operand.
enum { STRIDE_OF_MANY = 10, OTHERS_APART = 3 };

static bool wants_all(void) {
    return getenv("TR_ALL_SPOILERS") != NULL;
}

// Spoils a plan of subjects; each spoiler puts right what it did.
static void spoil_every(spoiler spoil, int stride) {
    for (int i = 0; i < SUBJECTS; i += stride) {
        tr_plan *plan = make(&subjects[i]);
        assert_false(is_found(plan));
        spoil(plan, &subjects[i]);
        assert_false(is_found(plan));
        tr_plan_destroy(plan);
    }
}

static void spoil_all(spoiler spoil) {
    spoil_every(spoil, STRIDE);
}

// Ways of spoiling that are many. TR_ALL_SPOILERS=1: those of all subjects, too.
static void spoil_some(spoiler spoil) {
    spoil_every(spoil, wants_all() ? STRIDE : STRIDE_OF_MANY);
}

// ---- memory

static bool live_together(const tr_buffer *x, const tr_buffer *y) {
    bool always = x->sequence < 0 || y->sequence < 0;
    return x->bytes > 0 && y->bytes > 0 && x->space == y->space &&
           (always ||
            (x->sequence == y->sequence && x->first <= y->last && y->first <= x->last));
}

static void overlay(tr_plan *plan, const subject *s) {
    for (size_t i = 0; i < plan->buffer_count; i++) {
        tr_buffer *x = &plan->buffers[i];
        int64_t offset = x->offset;
        for (size_t k = 0; k < plan->buffer_count; k++) {
            const tr_buffer *y = &plan->buffers[k];
            if (i == k || !live_together(x, y)) {
                continue;
            }
            bool meet = !test_never_meet(plan, (int)i, (int)k);
            x->offset = y->offset;
            must_find_if(meet, plan, s, "a buffer on another", (int)i, (int)k);
            x->offset = y->offset + (y->bytes - 1) / TR_ALIGNMENT * TR_ALIGNMENT;
            must_find_if(meet, plan, s, "a buffer on another's end", (int)i, (int)k);
        }
        x->offset = offset;
    }
}

static void buffers_on_each_other_are_found(void **state) {
    (void)state;
    spoil_some(overlay);
}

static void displace(tr_plan *plan, const subject *s) {
    for (size_t i = 0; i < plan->buffer_count; i++) {
        tr_buffer *x = &plan->buffers[i];
        int64_t offset = x->offset, total = plan->arena_bytes[x->space];
        const int64_t wrong[] = {
            total, total - x->bytes / TR_ALIGNMENT * TR_ALIGNMENT + TR_ALIGNMENT,
            -TR_ALIGNMENT, offset + 4, INT64_MAX / TR_ALIGNMENT * TR_ALIGNMENT};
        for (int k = 0; k < 5 && x->bytes > 0; k++) {
            x->offset = wrong[k];
            must_find(plan, s, "a buffer out of place", (int)i, k);
        }
        x->offset = offset;
    }
    plan->arena_bytes[TR_SPACE_DEVICE] -= TR_ALIGNMENT;
    must_find(plan, s, "an arena too small", 0, 0);
    plan->arena_bytes[TR_SPACE_DEVICE] += TR_ALIGNMENT;
}

static void buffers_outside_of_the_arena_are_found(void **state) {
    (void)state;
    spoil_all(displace);
}

// Does a step touch the last byte of the buffer? Staging may be larger than what is
// left of a part at its end.
static bool is_full(const tr_plan *plan, int32_t buffer) {
    bool full = false;
    for (size_t i = 0; i < plan->operand_count; i++) {
        full = full || (plan->operands[i].buffer == buffer &&
                        plan->operands[i].end == plan->buffers[buffer].bytes);
    }
    return full;
}

static void shrink(tr_plan *plan, const subject *s) {
    for (size_t i = 0; i < plan->buffer_count; i++) {
        tr_buffer *x = &plan->buffers[i];
        bool matters = is_full(plan, (int32_t)i) || x->category != TR_LEDGER_staging;
        if (x->sequence >= 0) {
            x->bytes--;
            must_find_if(matters, plan, s, "a buffer too small", (int)i, 0);
            x->bytes++;
        }
    }
}

static void buffers_too_small_are_found(void **state) {
    (void)state;
    spoil_all(shrink);
}

// ---- steps

// Calls `spoil` on each sequence that has steps.
static void each_sequence(tr_plan *plan, const subject *s,
                          void (*spoil)(tr_plan *, const subject *, tr_sequence *)) {
    for (int kind = 0; kind < TR_SEQUENCES; kind++) {
        if (plan->sequences[kind].count > 0) {
            spoil(plan, s, &plan->sequences[kind]);
        }
    }
}

static void remove_each(tr_plan *plan, const subject *s, tr_sequence *sequence) {
    for (size_t i = 0; i < sequence->count; i++) {
        tr_plan_step step = sequence->steps[i];
        size_t after = sequence->count - i - 1;
        tr_plan_step *at = &sequence->steps[i];
        memmove(at, at + 1, after * sizeof *at);
        sequence->count--;
        must_find_if(!test_is_idle(plan, &step), plan, s, "a step left out", (int)i,
                     (int)step.label.verb);
        memmove(at + 1, at, after * sizeof *at);
        *at = step;
        sequence->count++;
    }
}

static void remove_steps(tr_plan *plan, const subject *s) {
    each_sequence(plan, s, remove_each);
}

static void steps_left_out_are_found(void **state) {
    (void)state;
    spoil_all(remove_steps);
}

// Puts a copy of the step right after it.
static void double_each(tr_plan *plan, const subject *s, tr_sequence *sequence) {
    tr_sequence whole = *sequence, longer = whole;
    longer.count++;
    longer.steps = calloc(longer.count, sizeof *longer.steps);
    assert_non_null(longer.steps);
    for (size_t i = 0; i < whole.count; i++) {
        memcpy(longer.steps, whole.steps, (i + 1) * sizeof *whole.steps);
        memcpy(longer.steps + i + 1, whole.steps + i,
               (whole.count - i) * sizeof *whole.steps);
        *sequence = longer;
        must_find(plan, s, "a step done twice", (int)i, (int)whole.steps[i].label.verb);
        *sequence = whole;
    }
    free(longer.steps);
}

static void double_steps(tr_plan *plan, const subject *s) {
    each_sequence(plan, s, double_each);
}

static void steps_done_twice_are_found(void **state) {
    (void)state;
    spoil_some(double_steps);
}

// Moves each step before one that it depends on.
static void hasten_each(tr_plan *plan, const subject *s, tr_sequence *sequence) {
    tr_sequence_kind kind = (tr_sequence_kind)(sequence - plan->sequences);
    size_t bytes = sequence->count * sizeof *sequence->steps;
    tr_plan_step *whole = malloc(bytes);
    tr_accesses accesses = {0};
    tr_error err = {0};
    assert_int_equal(tr__accesses_find(plan, kind, &accesses, &err), TR_OK);
    assert_non_null(whole);
    memcpy(whole, sequence->steps, bytes);
    for (size_t i = 0; i < sequence->count; i++) {
        for (size_t k = i + 1; k < sequence->count; k++) {
            if (!test_depends(plan, kind, &accesses, i, k)) {
                continue;
            }
            // The norm reads no data: whether they are given back before it is the
            // same.
            bool changes = whole[k].label.verb != TR_VERB_norm ||
                           whole[i].label.verb != TR_VERB_unload || i + 1 != k;
            memmove(sequence->steps + i + 1, whole + i, (k - i) * sizeof *whole);
            sequence->steps[i] = whole[k];
            must_find_if(changes, plan, s, "a step too early", (int)i, (int)k);
            memcpy(sequence->steps, whole, bytes);
        }
    }
    tr__accesses_clear(&accesses);
    free(whole);
}

static void hasten_steps(tr_plan *plan, const subject *s) {
    each_sequence(plan, s, hasten_each);
}

static void steps_too_early_are_found(void **state) {
    (void)state;
    spoil_some(hasten_steps);
}

// Step i of the sequence comes to lie at k, and then where it was again.
static void must_find_moved(tr_plan *plan, const subject *s, const char *what, size_t i,
                            size_t k) {
    tr_plan_step *steps = plan->sequences[TR_SEQUENCE_TRAIN].steps, step = steps[i];
    size_t low = i < k ? i : k, bytes = (i < k ? k - i : i - k) * sizeof step;
    memmove(&steps[i < k ? low : low + 1], &steps[i < k ? low + 1 : low], bytes);
    steps[k] = step;
    must_find(plan, s, what, (int)i, (int)k);
    memmove(&steps[i < k ? low + 1 : low], &steps[i < k ? low : low + 1], bytes);
    steps[i] = step;
}

// Gradients that are measured before all have added to them, or after others have, or
// after they are taken, are not those of one micro-batch or wave.
static void move_micro_norms(tr_plan *plan, const subject *s) {
    tr_sequence *train = &plan->sequences[TR_SEQUENCE_TRAIN];
    int micro_norms = 0, tied = 0;
    for (size_t i = 0; i + 1 < train->count; i++) {
        tr_plan_step step = train->steps[i];
        if (!test_is_micro_norm(&step)) {
            continue;
        }
        micro_norms++;
        tied += step.label.verb == TR_VERB_micro_norm_tied;
        for (size_t k = 0; k < train->count; k++) {
            const tr_plan_step *at = &train->steps[k];
            bool adds = test_adds_to_micro_norm(plan, at, &step);
            if (k < i && adds) {
                must_find_moved(plan, s, "a micro_norm too early", i, k);
            } else if (k > i && (adds || test_takes_micro_norm(plan, at, &step) ||
                                 at->label.verb == TR_VERB_norm)) {
                must_find_moved(plan, s, "a micro_norm too late", i, k);
            }
        }
    }
    assert_int_equal(micro_norms > 0, s->measured);
    assert_int_equal(tied > 0, s->micro_norms_tied);
}

static void moved_micro_norms_are_found(void **state) {
    (void)state;
    spoil_all(move_micro_norms);
}

// What no other step reads may lie in any buffer that has the room.
static bool is_free(const tr_plan *plan, const subject *s, const tr_plan_step *step,
                    size_t i) {
    tr_operand_role role = tr__step_role(plan, step, i);
    return role == TR_OPERAND_TEMP ||
           (s->inference && (role == TR_OPERAND_WAVE || role == TR_OPERAND_WAVE_PART));
}

// Parameters that were brought for another visit are the same, as long as they are
// there.
static bool is_brought(const tr_plan *plan, const tr_plan_step *step, size_t i) {
    const tr_program *program = tr__payload_program(step);
    int32_t buffer = tr__step_operand(plan, step, i)->buffer;
    return program && program->blocks[i].place == TR_PLACE_PARAM &&
           plan->buffers[buffer].sequence >= 0;
}

static void misname_operand(tr_plan *plan, const subject *s, const tr_plan_step *step,
                            int number, size_t i) {
    int32_t *name = &tr__step_operand(plan, step, i)->buffer, right = *name;
    bool empty = tr__operand_bytes(tr__step_operand(plan, step, i)) == 0;
    bool free = is_free(plan, s, step, i);
    bool brought = right >= 0 && is_brought(plan, step, i);
    int apart = wants_all() ? 1 : OTHERS_APART;
    for (int other = (number + (int)i) % apart;
         right >= 0 && !empty && other < (int)plan->buffer_count; other += apart) {
        bool own = plan->buffers[other].sequence == plan->buffers[right].sequence;
        *name = other;
        if (other != right && (!free || !own)) {
            must_find_if(!(brought && own), plan, s, "another buffer", number, (int)i);
        }
    }
    *name = (int32_t)plan->buffer_count;
    must_find(plan, s, "a buffer that is not there", number, (int)i);
    *name = right;
}

static void misname_each(tr_plan *plan, const subject *s, tr_sequence *sequence) {
    for (size_t i = 0; i < sequence->count; i++) {
        const tr_plan_step *step = &sequence->steps[i];
        for (size_t k = 0; k < step->payload.operand_count; k++) {
            misname_operand(plan, s, step, (int)i, k);
        }
    }
}

static void misname_buffers(tr_plan *plan, const subject *s) {
    each_sequence(plan, s, misname_each);
}

static void wrong_buffers_are_found(void **state) {
    (void)state;
    spoil_some(misname_buffers);
}

static void unname_buffers(tr_plan *plan, const subject *s) {
    for (int kind = 0; kind < TR_SEQUENCES; kind++) {
        tr_sequence *sequence = &plan->sequences[kind];
        for (size_t i = 0; i < sequence->count; i++) {
            const tr_plan_step *step = &sequence->steps[i];
            for (size_t k = 0; k < step->payload.operand_count; k++) {
                tr_step_operand *operand = tr__step_operand(plan, step, k);
                int32_t right = operand->buffer;
                operand->buffer = -1;
                if (tr__operand_bytes(operand) > 0 && right >= 0) {
                    must_find(plan, s, "no buffer", (int)i, (int)k);
                }
                operand->buffer = right;
            }
        }
    }
}

static void missing_buffers_are_found(void **state) {
    (void)state;
    spoil_all(unname_buffers);
}

static void flip_flags(tr_plan *plan, const subject *s) {
    tr_sequence *sequence = &plan->sequences[TR_SEQUENCE_TRAIN];
    for (size_t i = 0; i < sequence->count; i++) {
        tr_plan_step *step = &sequence->steps[i];
        for (size_t k = 0; k < step->payload.operand_count; k++) {
            tr_step_operand *operand = tr__step_operand(plan, step, k);
            tr_access_mode right = operand->mode;
            if (operand->contributes) {
                operand->mode =
                    right == TR_ACCESS_ADD ? TR_ACCESS_WRITE : TR_ACCESS_ADD;
                must_find(plan, s, "a wrong first contribution", (int)i, (int)k);
                operand->mode = right;
            }
        }
    }
}

static void wrong_flags_are_found(void **state) {
    (void)state;
    spoil_all(flip_flags);
}

static void misnumber_each(tr_plan *plan, const subject *s, tr_sequence *sequence) {
    for (size_t i = 0; i < sequence->count; i++) {
        tr_plan_step right = sequence->steps[i], *step = &sequence->steps[i];
        bool has_micro = test_is_compute(step) || test_is_ring(step);
        bool has_unit = test_is_compute(step) || step->label.verb == TR_VERB_update ||
                        tr__step_is_of_wave(step) ||
                        step->label.verb == TR_VERB_direction_norms;
        for (int by = -1; by <= 1; by += 2) {
            step->micro += by;
            if (has_micro) {
                must_find(plan, s, "another micro-batch", (int)i, by);
            }
            *step = right;
            step->unit += by;
            if (has_unit) {
                must_find(plan, s, "another unit", (int)i, by);
            }
            *step = right;
            step->segment += by;
            if (test_is_compute(step)) {
                must_find(plan, s, "another segment", (int)i, by);
            }
            *step = right;
        }
    }
}

static void misnumber_steps(tr_plan *plan, const subject *s) {
    each_sequence(plan, s, misnumber_each);
}

static void wrong_numbers_are_found(void **state) {
    (void)state;
    spoil_some(misnumber_steps);
}

// ---- what is moved beside computing

static void miscount_each(tr_plan *plan, const subject *s, tr_sequence *sequence) {
    for (size_t i = 0; i < sequence->count; i++) {
        tr_plan_step *step = &sequence->steps[i], right = *step;
        for (int by = -1024; test_is_cut(step) && by <= 1024; by += 2048) {
            step->first += by;
            must_find(plan, s, "other elements", (int)i, by);
            *step = right;
            step->count += by;
            must_find(plan, s, "more or fewer elements", (int)i, by);
            *step = right;
        }
        bool exchanges = step->shape == TR_STEP_IS_EXCHANGE;
        for (int part = 0; exchanges && part <= TR_PART_WAVE; part++) {
            step->payload.exchange.part = (tr_part)part;
            if (step->payload.exchange.part != right.payload.exchange.part) {
                must_find(plan, s, "another part", (int)i, part);
            }
        }
        *step = right;
    }
}

static void miscount_elements(tr_plan *plan, const subject *s) {
    each_sequence(plan, s, miscount_each);
}

static void wrong_elements_are_found(void **state) {
    (void)state;
    spoil_all(miscount_elements);
}

static const struct {
    tr_stream on;
    const char *what;
} moving[] = {{TR_STREAM_NVME, "no wait for NVMe"},
              {TR_STREAM_COPY, "no wait for copies"},
              {TR_STREAM_COPY_OUT, "no wait for copies out"}};

static void hurry_each(tr_plan *plan, const subject *s, tr_sequence *sequence) {
    int32_t known[TR_STREAMS] = {0};
    for (size_t i = 0; i < sequence->count; i++) {
        tr_plan_step *step = &sequence->steps[i], right = *step;
        for (int m = 0; m < 3; m++) {
            tr_stream on = moving[m].on;
            if (step->stream != on && test_needed(plan, sequence, i, on) > known[on]) {
                step->wait[on] = 0;
                must_find(plan, s, moving[m].what, (int)i, right.wait[on]);
                *step = right;
            }
            known[on] = right.wait[on] > known[on] ? right.wait[on] : known[on];
        }
    }
}

static void hurry_steps(tr_plan *plan, const subject *s) {
    each_sequence(plan, s, hurry_each);
}

static void missing_waits_are_found(void **state) {
    (void)state;
    spoil_all(hurry_steps);
}

// ---- unit programs

static void spoil_operands(tr_plan *plan, const subject *s) {
    test_spoil_operands(plan, &(test_finder){must_find, s});
}

static void operands_out_of_place_are_found(void **state) {
    (void)state;
    spoil_some(spoil_operands);
}

static void spoil_stacks(tr_plan *plan, const subject *s) {
    test_spoil_stacks(plan, &(test_finder){must_find, s});
}

static void results_on_other_operands_are_found(void **state) {
    (void)state;
    spoil_some(spoil_stacks);
}

static void spoil_instructions(tr_plan *plan, const subject *s) {
    test_spoil_instructions(plan, &(test_finder){must_find, s});
}

static void instructions_left_out_are_found(void **state) {
    (void)state;
    spoil_all(spoil_instructions);
}

static void spoil_recomputed(tr_plan *plan, const subject *s) {
    test_spoil_recomputed(plan, &(test_finder){must_find, s});
}

static void what_is_made_otherwise_is_found(void **state) {
    (void)state;
    spoil_all(spoil_recomputed);
}

static void every_missing_allocation_is_an_error(void **state) {
    tr_plan *plan = make(&subjects[2]);
    int failures = 0;
    (void)state;
    for (tr_status status = TR_MEMORY; status != TR_OK; failures++) {
        tr_error err = {0};
        tr__memory_fail_at(failures + 1);
        status = tr__plan_check(plan, &err);
        tr__memory_fail_at(0);
        assert_true(status == TR_OK || status == TR_MEMORY);
        assert_int_equal(err.status, status);
    }
    assert_true(failures > 5);
    tr_plan_destroy(plan);
}

static int set_up(void **state) {
    (void)state;
    gpt2 = test_model_small_gpt2(0.1);
    sliced_gpt2 = test_model_sliced_gpt2(0.1, 3);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    tr_model_destroy(gpt2);
    tr_model_destroy(sliced_gpt2);
    print_message("%lld spoilt plans, of which %lld do the same\n", (long long)spoilt,
                  (long long)harmless);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffers_on_each_other_are_found),
        cmocka_unit_test(buffers_outside_of_the_arena_are_found),
        cmocka_unit_test(buffers_too_small_are_found),
        cmocka_unit_test(steps_left_out_are_found),
        cmocka_unit_test(steps_done_twice_are_found),
        cmocka_unit_test(steps_too_early_are_found),
        cmocka_unit_test(moved_micro_norms_are_found),
        cmocka_unit_test(wrong_buffers_are_found),
        cmocka_unit_test(missing_buffers_are_found),
        cmocka_unit_test(wrong_flags_are_found),
        cmocka_unit_test(wrong_numbers_are_found),
        cmocka_unit_test(wrong_elements_are_found),
        cmocka_unit_test(missing_waits_are_found),
        cmocka_unit_test(operands_out_of_place_are_found),
        cmocka_unit_test(results_on_other_operands_are_found),
        cmocka_unit_test(instructions_left_out_are_found),
        cmocka_unit_test(what_is_made_otherwise_is_found),
        cmocka_unit_test(every_missing_allocation_is_an_error),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

#include "plan/sound.h"

#include "plan/flow/roles.h"

#include <string.h>

static bool writes(const tr_access *a) {
    return a->mode != TR_ACCESS_READ;
}

static bool overlap(const tr_plan *plan, const tr_access *a, const tr_access *b) {
    const tr_buffer *x = &plan->buffers[a->value], *y = &plan->buffers[b->value];
    return x->space == y->space && x->offset + a->first < y->offset + b->end &&
           y->offset + b->first < x->offset + a->end;
}

// waited: [TR_STREAMS] how many steps of each stream are known to be done.
static bool is_done(const tr_plan *plan, const tr_sequence *sequence,
                    const int32_t *number, size_t before, size_t after,
                    const int32_t *waited) {
    tr_stream stream = sequence->steps[before].stream;
    return !tr__plan_is_beside(plan, stream) ||
           stream == sequence->steps[after].stream || waited[stream] >= number[before];
}

enum { STEPS_MAX = 2048 };

// Buffers that share bytes have them one after the other.
static bool take_turns(const tr_plan *plan, const tr_accesses *accesses, size_t steps) {
    int32_t first[STEPS_MAX], last[STEPS_MAX];
    for (size_t b = 0; b < plan->buffer_count; b++) {
        first[b] = last[b] = -1;
    }
    for (size_t i = 0; i < steps; i++) {
        for (size_t k = accesses->begin[i]; k < accesses->begin[i + 1]; k++) {
            int32_t value = accesses->items[k].value;
            first[value] = first[value] < 0 ? (int32_t)i : first[value];
            last[value] = (int32_t)i;
        }
    }
    for (size_t a = 0; a < plan->buffer_count; a++) {
        for (size_t b = a + 1; b < plan->buffer_count; b++) {
            const tr_buffer *x = &plan->buffers[a], *y = &plan->buffers[b];
            bool meet = x->space == y->space && x->offset < y->offset + y->bytes &&
                        y->offset < x->offset + x->bytes && x->bytes && y->bytes;
            if (meet && first[a] >= 0 && first[b] >= 0 && first[a] <= last[b] &&
                first[b] <= last[a]) {
                return false;
            }
        }
    }
    return true;
}

static void learn(int32_t *known, const int32_t *from) {
    for (int s = 0; s < TR_STREAMS; s++) {
        known[s] = from[s] > known[s] ? from[s] : known[s];
    }
}

// Who waits for a step knows what that one has waited for, too.
static void learn_of(const tr_sequence *sequence, const int32_t *number, size_t steps,
                     tr_stream stream, int32_t awaited, int32_t (*knew)[TR_STREAMS],
                     int32_t *known) {
    for (size_t i = 0; i < steps; i++) {
        if (sequence->steps[i].stream == stream && number[i] <= awaited) {
            learn(known, knew[i]);
        }
    }
    known[stream] = awaited > known[stream] ? awaited : known[stream];
}

bool test_is_sound(const tr_plan *plan, tr_sequence_kind kind,
                   const tr_accesses *accesses) {
    const tr_sequence *sequence = &plan->sequences[kind];
    int32_t number[STEPS_MAX], issued[TR_STREAMS] = {0}, waited[TR_STREAMS] = {0};
    int32_t queues[TR_STREAMS][TR_STREAMS] = {0}; // what a queue alone has waited for
    int32_t knew[STEPS_MAX][TR_STREAMS];          // of each step
    if (sequence->count > STEPS_MAX || plan->buffer_count > STEPS_MAX) {
        return false;
    }
    for (size_t i = 0; i < sequence->count; i++) {
        const tr_plan_step *step = &sequence->steps[i];
        for (int s = 0; s < TR_STREAMS; s++) {
            bool follows = tr__plan_follows(plan, step->stream, (tr_stream)s);
            learn_of(sequence, number, i, (tr_stream)s, step->wait[s], knew,
                     follows ? queues[step->stream] : waited);
        }
        memcpy(knew[i], queues[step->stream], sizeof knew[i]);
        learn(knew[i], waited);
        for (size_t k = 0; k < accesses->begin[i]; k++) {
            for (size_t l = accesses->begin[i]; l < accesses->begin[i + 1]; l++) {
                const tr_access *a = &accesses->items[k], *b = &accesses->items[l];
                size_t before = 0;
                if (!(writes(a) || writes(b)) || !overlap(plan, a, b)) {
                    continue;
                }
                while (accesses->begin[before + 1] <= k) {
                    before++;
                }
                if (!is_done(plan, sequence, number, before, i, knew[i])) {
                    return false;
                }
            }
        }
        number[i] = ++issued[step->stream];
    }
    return take_turns(plan, accesses, sequence->count);
}

static bool meet(const tr_access *a, const tr_access *b) {
    return a->value == b->value && (writes(a) || writes(b)) && a->first < b->end &&
           b->first < a->end;
}

bool test_conflict(const tr_accesses *accesses, size_t i) {
    bool found = false;
    for (size_t k = accesses->begin[i]; k < accesses->begin[i + 1]; k++) {
        for (size_t l = accesses->begin[i + 1]; l < accesses->begin[i + 2]; l++) {
            found = found || meet(&accesses->items[k], &accesses->items[l]);
        }
    }
    return found;
}

// Integers add up to the same; so do counts of what did not fit.
static bool commute(const tr_plan *plan, const tr_access *a, const tr_access *b) {
    bool add = a->mode == TR_ACCESS_ADD && b->mode == TR_ACCESS_ADD;
    bool sums = plan->request.sums == TR_I64 &&
                plan->buffers[a->value].category == TR_LEDGER_gradients;
    return add && (sums || a->value == plan->statistics.buffer);
}

static bool is_work(const tr_plan *plan, const tr_plan_step *step,
                    const tr_access *access) {
    const tr_step_operand *work = tr__step_find(plan, step, TR_OPERAND_TEMP);
    return work && work->buffer == access->value;
}

bool test_order_matters(const tr_plan *plan, tr_sequence_kind kind,
                        const tr_accesses *accesses, size_t i) {
    const tr_plan_step *steps = plan->sequences[kind].steps;
    bool found = false;
    for (size_t k = accesses->begin[i]; k < accesses->begin[i + 1]; k++) {
        for (size_t l = accesses->begin[i + 1]; l < accesses->begin[i + 2]; l++) {
            const tr_access *a = &accesses->items[k], *b = &accesses->items[l];
            bool works = a->value == plan->staging || is_work(plan, &steps[i], a) ||
                         is_work(plan, &steps[i + 1], b);
            found = found || (meet(a, b) && !works && !commute(plan, a, b));
        }
    }
    return found;
}

static bool is_of(const tr_flat_range *range, const tr_access *a) {
    return range->buffer == a->value;
}

static bool is_kept(const tr_plan *plan, const tr_access *a) {
    bool kept = false;
    for (size_t f = 0; f < plan->flat_count && !kept; f++) {
        const tr_flat *flat = &plan->flats[f];
        kept =
            is_of(&flat->param, a) || is_of(&flat->master, a) || is_of(&flat->copy, a);
        for (int s = 0; s < tr__flat_states(plan, flat); s++) {
            kept = kept || is_of(&flat->state[s], a);
        }
    }
    for (int u = 0; u < plan->unit_count; u++) {
        kept = kept || plan->units[u].states == a->value;
    }
    return kept;
}

bool test_outlives(const tr_plan *plan, const tr_accesses *accesses, size_t i) {
    int64_t own = tr_mesh_rank(&plan->request.mesh) * plan->statistics.doubles *
                  (int64_t)sizeof(double);
    bool found = false;
    for (size_t k = accesses->begin[i]; k < accesses->begin[i + 1]; k++) {
        const tr_access *a = &accesses->items[k];
        bool asked = a->value == plan->statistics.buffer &&
                     a->mode == TR_ACCESS_WRITE &&
                     a->first <= own + TR_STATISTICS_ASKED * (int64_t)sizeof(double) &&
                     a->end > own + TR_STATISTICS_ASKED * (int64_t)sizeof(double);
        found = found || (writes(a) && is_kept(plan, a)) || asked;
    }
    return found;
}

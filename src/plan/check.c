// Proves a plan's layout from its steps. Knows nothing of how the allocator works: what
// lives is what the steps name, from the first to the last that does.
#include "base/memory.h"
#include "plan/plan.h"

// The buffers alive at one moment, sorted by offset.
typedef struct alive {
    const tr_plan *plan;
    int *buffers;
    size_t count;
} alive;

static size_t position(const alive *a, int64_t offset) {
    size_t low = 0, high = a->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (a->plan->buffers[a->buffers[middle]].offset < offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static tr_status overlap(const alive *a, int left, int right, tr_error *err) {
    const tr_buffer *x = &a->plan->buffers[left], *y = &a->plan->buffers[right];
    if (x->offset + x->bytes <= y->offset) {
        return TR_OK;
    }
    return tr_fail(err, TR_INTERNAL,
                   "plan: buffers %d [%lld, +%lld) and %d [%lld, +%lld) overlap while "
                   "both live",
                   left, (long long)x->offset, (long long)x->bytes, right,
                   (long long)y->offset, (long long)y->bytes);
}

static tr_status enter(alive *a, int buffer, tr_error *err) {
    const tr_buffer *b = &a->plan->buffers[buffer];
    int64_t total = a->plan->ledger.total[TR_SPACE_DEVICE];
    if (b->bytes == 0) {
        return TR_OK;
    }
    if (b->offset < 0 || b->bytes < 0 || b->offset > total - b->bytes) {
        return tr_fail(err, TR_INTERNAL, "plan: buffer %d lies outside of the arena",
                       buffer);
    }
    size_t at = position(a, b->offset);
    tr_status status = TR_OK;
    if (at > 0) {
        status = overlap(a, a->buffers[at - 1], buffer, err);
    }
    if (status == TR_OK && at < a->count) {
        status = overlap(a, buffer, a->buffers[at], err);
    }
    for (size_t i = a->count; i > at; i--) {
        a->buffers[i] = a->buffers[i - 1];
    }
    a->buffers[at] = buffer;
    a->count++;
    return status;
}

static void leave(alive *a, int buffer) {
    size_t at = position(a, a->plan->buffers[buffer].offset);
    if (at < a->count && a->buffers[at] == buffer) {
        a->count--;
        for (size_t i = at; i < a->count; i++) {
            a->buffers[i] = a->buffers[i + 1];
        }
    }
}

// Is this slot, at this kind of step, only read?
static bool only_reads(tr_plan_step_kind kind, int slot) {
    switch (slot) {
    case TR_SLOT_INPUT:
    case TR_SLOT_OUTPUT_GRAD:
        return true;
    case TR_SLOT_OUTPUT:
        return kind == TR_STEP_backward;
    case TR_SLOT_SAVED:
        return kind == TR_STEP_backward;
    default:
        return false;
    }
}

static tr_status check_reads(const tr_plan_step *step, size_t index, bool *written,
                             tr_error *err) {
    for (int slot = 0; slot < TR_SLOTS; slot++) {
        int buffer = step->buffer[slot];
        if (buffer >= 0 && only_reads(step->kind, slot) && !written[buffer]) {
            return tr_fail(err, TR_INTERNAL,
                           "plan: step %zu (%s, unit %d) reads buffer %d before any "
                           "step writes it",
                           index, tr__plan_step_name(step->kind), (int)step->unit,
                           buffer);
        }
    }
    for (int slot = 0; slot < TR_SLOTS; slot++) {
        if (step->buffer[slot] >= 0 && !only_reads(step->kind, slot)) {
            written[step->buffer[slot]] = true;
        }
    }
    return TR_OK;
}

static tr_status check_sequence(alive *a, const tr_sequence *sequence, size_t *last,
                                bool *written, bool *entered, tr_error *err) {
    size_t always = a->count;
    for (size_t i = 0; i < sequence->count; i++) {
        for (int slot = 0; slot < TR_SLOTS; slot++) {
            if (sequence->steps[i].buffer[slot] >= 0) {
                last[sequence->steps[i].buffer[slot]] = i;
            }
        }
    }
    for (size_t i = 0; i < sequence->count; i++) {
        const tr_plan_step *step = &sequence->steps[i];
        tr_status status = check_reads(step, i, written, err);
        for (int slot = 0; slot < TR_SLOTS && status == TR_OK; slot++) {
            int buffer = step->buffer[slot];
            if (buffer >= 0 && !entered[buffer]) {
                entered[buffer] = true;
                status = enter(a, buffer, err);
            }
        }
        for (int slot = 0; slot < TR_SLOTS && status == TR_OK; slot++) {
            if (step->buffer[slot] >= 0 && last[step->buffer[slot]] == i) {
                leave(a, step->buffer[slot]);
            }
        }
        if (status != TR_OK) {
            return status;
        }
    }
    return a->count == always ? TR_OK
                              : tr_fail(err, TR_INTERNAL, "plan: a buffer never ends");
}

tr_status tr__plan_check(const tr_plan *plan, tr_error *err) {
    size_t count = plan->buffer_count;
    alive a = {.plan = plan};
    a.buffers = tr__calloc(count + 1, sizeof *a.buffers);
    size_t *last = tr__calloc(count, sizeof *last);
    bool *written = tr__calloc(count, sizeof *written);
    bool *entered = tr__calloc(count, sizeof *entered);
    tr_status status = TR_OK;
    if (!a.buffers || !last || !written || !entered) {
        status = tr_fail(err, TR_MEMORY, "no memory to check the plan");
    }
    for (size_t i = 0; i < count && status == TR_OK; i++) {
        if (plan->buffers[i].sequence < 0) {
            status = enter(&a, (int)i, err);
        }
    }
    for (int s = 0; s < TR_SEQUENCES && status == TR_OK; s++) {
        status = check_sequence(&a, &plan->sequences[s], last, written, entered, err);
    }
    tr__free(a.buffers);
    tr__free(last);
    tr__free(written);
    tr__free(entered);
    return status;
}

// What lives is what the steps name, from the first to the last that does; and, all the
// time, what no sequence owns.
#include "base/memory.h"
#include "plan/check.h"
#include "plan/offsets.h"

// The buffers alive at one moment, sorted by offset.
typedef struct alive {
    const tr_plan *plan;
    int *buffers;
    size_t count;
    size_t *last; // [buffers] the last step of the sequence that names it
    bool *entered;
    tr_error *err;
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

static tr_status keep_apart(const alive *a, int left, int right) {
    const tr_buffer *x = &a->plan->buffers[left], *y = &a->plan->buffers[right];
    if (x->offset + x->bytes <= y->offset) {
        return TR_OK;
    }
    return tr_fail(a->err, TR_INTERNAL,
                   "plan: buffers %d [%lld, +%lld) and %d [%lld, +%lld) overlap while "
                   "both live",
                   left, (long long)x->offset, (long long)x->bytes, right,
                   (long long)y->offset, (long long)y->bytes);
}

static tr_status check_place(const alive *a, int buffer) {
    const tr_buffer *b = &a->plan->buffers[buffer];
    int64_t total = a->plan->ledger.total[TR_SPACE_DEVICE];
    if (b->offset < 0 || b->bytes < 0 || b->offset > total - b->bytes) {
        return tr_fail(a->err, TR_INTERNAL,
                       "plan: buffer %d [%lld, +%lld) lies outside of the arena of "
                       "%lld bytes",
                       buffer, (long long)b->offset, (long long)b->bytes,
                       (long long)total);
    }
    if (b->offset % TR_ALIGNMENT != 0) {
        return tr_fail(a->err, TR_INTERNAL, "plan: buffer %d at %lld is not aligned",
                       buffer, (long long)b->offset);
    }
    return TR_OK;
}

static tr_status enter(alive *a, int buffer) {
    const tr_buffer *b = &a->plan->buffers[buffer];
    tr_status status = check_place(a, buffer);
    if (b->bytes == 0 || status != TR_OK) {
        return status;
    }
    size_t at = position(a, b->offset);
    if (at > 0) {
        status = keep_apart(a, a->buffers[at - 1], buffer);
    }
    if (status == TR_OK && at < a->count) {
        status = keep_apart(a, buffer, a->buffers[at]);
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

static tr_status check_names(const alive *a, int kind) {
    const tr_sequence *sequence = &a->plan->sequences[kind];
    for (size_t i = 0; i < sequence->count; i++) {
        for (int slot = 0; slot < TR_SLOTS; slot++) {
            int buffer = sequence->steps[i].buffer[slot];
            if (buffer < -1 || buffer >= (int)a->plan->buffer_count) {
                return tr_fail(a->err, TR_INTERNAL,
                               "plan: step %zu names buffer %d, which is not there", i,
                               buffer);
            }
            if (buffer >= 0 && a->plan->buffers[buffer].sequence != kind) {
                return tr_fail(a->err, TR_INTERNAL,
                               "plan: step %zu names buffer %d, which is not its "
                               "sequence's",
                               i, buffer);
            }
            if (buffer >= 0) {
                a->last[buffer] = i;
            }
        }
    }
    return TR_OK;
}

static tr_status run_step(alive *a, const tr_plan_step *step, size_t index) {
    tr_status status = TR_OK;
    for (int slot = 0; slot < TR_SLOTS && status == TR_OK; slot++) {
        int buffer = step->buffer[slot];
        if (buffer >= 0 && !a->entered[buffer]) {
            a->entered[buffer] = true;
            status = enter(a, buffer);
        }
    }
    for (int slot = 0; slot < TR_SLOTS && status == TR_OK; slot++) {
        if (step->buffer[slot] >= 0 && a->last[step->buffer[slot]] == index) {
            leave(a, step->buffer[slot]);
        }
    }
    return status;
}

static tr_status run_all(alive *a) {
    tr_status status = TR_OK;
    for (size_t i = 0; i < a->plan->buffer_count && status == TR_OK; i++) {
        if (a->plan->buffers[i].sequence < 0) {
            status = enter(a, (int)i);
        }
    }
    for (int s = 0; s < TR_SEQUENCES && status == TR_OK; s++) {
        const tr_sequence *sequence = &a->plan->sequences[s];
        status = check_names(a, s);
        for (size_t i = 0; i < sequence->count && status == TR_OK; i++) {
            status = run_step(a, &sequence->steps[i], i);
        }
    }
    return status;
}

tr_status tr__check_memory(const tr_plan *plan, tr_error *err) {
    size_t count = plan->buffer_count;
    alive a = {.plan = plan, .err = err};
    a.buffers = tr__calloc(count + 1, sizeof *a.buffers);
    a.last = tr__calloc(count, sizeof *a.last);
    a.entered = tr__calloc(count, sizeof *a.entered);
    tr_status status = a.buffers && a.last && a.entered
                           ? run_all(&a)
                           : tr_fail(err, TR_MEMORY, "no memory to check the plan");
    tr__free(a.buffers);
    tr__free(a.last);
    tr__free(a.entered);
    return status;
}

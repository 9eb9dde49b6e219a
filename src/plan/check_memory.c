// What lives is what the steps name, from the first to the last that does; and, all the
// time, what no sequence owns.
#include "base/memory.h"
#include "plan/check_walk.h"
#include "plan/offsets.h"

// The buffers alive at one moment, sorted by offset.
typedef struct alive {
    const tr_plan *plan;
    tr_space space; // one space at a time
    int *buffers;
    size_t count;
    size_t *last; // [buffers] the last step of the sequence that needs it
    bool *entered;
    int *next; // [buffers] of a chain of those that leave together
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
    int64_t total = a->plan->arena_bytes[a->space];
    if (b->offset < 0 || b->bytes < 0 || b->offset > total - b->bytes) {
        return tr_fail(a->err, TR_INTERNAL,
                       "plan: buffer %d [%lld, +%lld) lies outside of the arena of "
                       "%lld bytes",
                       buffer, (long long)b->offset, (long long)b->bytes,
                       (long long)total);
    }
    bool file = a->space == TR_SPACE_NVME; // read and written in whole blocks
    if (b->offset % TR_ALIGNMENT != 0 ||
        (file && (b->offset | b->bytes) % TR_NVME_ALIGNMENT != 0)) {
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

// Slots name what passes; what lives always is named by bindings alone.
static tr_status check_name(const alive *a, size_t step, int buffer, int kind,
                            bool always) {
    if (buffer < 0 || buffer >= (int)a->plan->buffer_count) {
        return tr_fail(a->err, TR_INTERNAL,
                       "plan: step %zu names buffer %d, which is not there", step,
                       buffer);
    }
    int owner = a->plan->buffers[buffer].sequence;
    return owner == kind || (always && owner < 0)
               ? TR_OK
               : tr_fail(a->err, TR_INTERNAL,
                         "plan: step %zu names buffer %d, which is not its sequence's",
                         step, buffer);
}

// What communication works on lives until a step has waited for it, or to the end.
static void keep_until(const alive *a, int kind, tr_stream stream, size_t *next,
                       int32_t *number, int32_t done, size_t step) {
    const tr_sequence *sequence = &a->plan->sequences[kind];
    int32_t buffers[TR_STEP_BUFFERS_MAX];
    for (; *number < done && *next < sequence->count; (*next)++) {
        if (sequence->steps[*next].stream != stream) {
            continue;
        }
        int count = tr__check_named(a->plan, &sequence->steps[*next], buffers);
        for (int i = 0; i < count; i++) {
            a->last[buffers[i]] =
                step > a->last[buffers[i]] ? step : a->last[buffers[i]];
        }
        (*number)++;
    }
}

static tr_status check_names(const alive *a, int kind) {
    const tr_sequence *sequence = &a->plan->sequences[kind];
    int32_t buffers[TR_STEP_BUFFERS_MAX], number[TR_BESIDE] = {0};
    size_t next[TR_BESIDE] = {0};
    for (size_t i = 0; i < sequence->count; i++) {
        const tr_plan_step *step = &sequence->steps[i];
        for (int slot = 0; slot < TR_SLOTS; slot++) {
            if (step->buffer[slot] < -1) {
                return tr_fail(a->err, TR_INTERNAL,
                               "plan: step %zu names buffer %d, which is not there", i,
                               (int)step->buffer[slot]);
            }
            tr_status status = step->buffer[slot] < 0
                                   ? TR_OK
                                   : check_name(a, i, step->buffer[slot], kind, false);
            if (status != TR_OK) {
                return status;
            }
        }
        int count = tr__check_named(a->plan, step, buffers);
        for (int k = 0; k < count; k++) {
            tr_status status = check_name(a, i, buffers[k], kind, true);
            if (status != TR_OK) {
                return status;
            }
            a->last[buffers[k]] = i > a->last[buffers[k]] ? i : a->last[buffers[k]];
        }
        for (int s = 0; s < TR_BESIDE; s++) {
            tr_stream stream = tr__beside_stream(s);
            int32_t done = tr__step_wait(step, stream);
            keep_until(a, kind, stream, &next[s], &number[s], done, i);
        }
    }
    size_t end = sequence->count - 1;
    for (int s = 0; s < TR_BESIDE; s++) {
        keep_until(a, kind, tr__beside_stream(s), &next[s], &number[s], INT32_MAX, end);
    }
    return TR_OK;
}

static bool passes(const alive *a, int buffer) {
    const tr_buffer *b = &a->plan->buffers[buffer];
    return b->sequence >= 0 && b->space == a->space;
}

// Those that pass enter with the first step that names them.
static tr_status enter_named(alive *a, const tr_plan_step *step) {
    int32_t buffers[TR_STEP_BUFFERS_MAX];
    int count = tr__check_named(a->plan, step, buffers);
    tr_status status = TR_OK;
    for (int i = 0; i < count && status == TR_OK; i++) {
        if (passes(a, buffers[i]) && !a->entered[buffers[i]]) {
            a->entered[buffers[i]] = true;
            status = enter(a, buffers[i]);
        }
    }
    return status;
}

// The buffers that leave after each step, as chains: heads: [steps], a->next:
// [buffers]; -1 ends a chain.
static void chain_leaving(alive *a, int kind, int *heads) {
    for (size_t i = 0; i < a->plan->sequences[kind].count; i++) {
        heads[i] = -1;
    }
    for (size_t b = 0; b < a->plan->buffer_count; b++) {
        if (a->plan->buffers[b].sequence == kind && passes(a, (int)b)) {
            a->next[b] = heads[a->last[b]];
            heads[a->last[b]] = (int)b;
        }
    }
}

static tr_status run_sequence(alive *a, int kind) {
    const tr_sequence *sequence = &a->plan->sequences[kind];
    tr_status status = check_names(a, kind);
    int *heads = status == TR_OK ? tr__calloc(sequence->count, sizeof *heads) : NULL;
    if (status == TR_OK && !heads) {
        status = tr_fail(a->err, TR_MEMORY, "no memory to check the plan");
    }
    if (status == TR_OK) {
        chain_leaving(a, kind, heads);
    }
    for (size_t i = 0; i < sequence->count && status == TR_OK; i++) {
        status = enter_named(a, &sequence->steps[i]);
        for (int b = heads[i]; b >= 0 && status == TR_OK; b = a->next[b]) {
            leave(a, b);
        }
    }
    tr__free(heads);
    return status;
}

static tr_status run_all(alive *a) {
    tr_status status = TR_OK;
    for (size_t i = 0; i < a->plan->buffer_count && status == TR_OK; i++) {
        const tr_buffer *buffer = &a->plan->buffers[i];
        if (buffer->sequence < 0 && buffer->space == a->space) {
            status = enter(a, (int)i);
        }
    }
    for (int s = 0; s < TR_SEQUENCES && status == TR_OK; s++) {
        if (a->plan->sequences[s].count > 0) {
            status = run_sequence(a, s);
        }
    }
    return status;
}

static tr_status check_space(const tr_plan *plan, tr_space space, tr_error *err) {
    size_t count = plan->buffer_count;
    alive a = {.plan = plan, .space = space, .err = err};
    a.buffers = tr__calloc(count + 1, sizeof *a.buffers);
    a.last = tr__calloc(count, sizeof *a.last);
    a.entered = tr__calloc(count, sizeof *a.entered);
    a.next = tr__calloc(count, sizeof *a.next);
    tr_status status = a.buffers && a.last && a.entered && a.next
                           ? run_all(&a)
                           : tr_fail(err, TR_MEMORY, "no memory to check the plan");
    tr__free(a.buffers);
    tr__free(a.last);
    tr__free(a.entered);
    tr__free(a.next);
    return status;
}

tr_status tr__check_memory(const tr_plan *plan, tr_error *err) {
    tr_status status = TR_OK;
    for (int space = 0; space < TR_SPACES && status == TR_OK; space++) {
        status = check_space(plan, (tr_space)space, err);
    }
    return status;
}

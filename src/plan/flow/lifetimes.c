// From when to when each passing buffer lives: from the first step that
// accesses it, until the last one is known to be done. A step of a stream beside
// computing is known to be done before the first step that waits for it begins: what
// that step names may lie where the buffer lay. A step of the compute stream counts as
// done when the next step is issued, on a discrete device too: there, who takes its
// memory on another stream waits for it (tr__pass_reuse).
#include "base/memory.h"
#include "plan/flow/schedule.h"

#include <stdint.h>

typedef struct lifetimes {
    tr_plan *plan;
    tr_sequence_kind kind;
    int32_t *done; // [steps] the last step at which each may still go on
} lifetimes;

static void find_done(lifetimes *l, tr_stream stream) {
    const tr_sequence *sequence = &l->plan->sequences[l->kind];
    int32_t done = 0, number = 0;
    size_t next = 0; // whom nobody has waited for yet
    for (size_t i = 0; i < sequence->count; i++) {
        int32_t wait = sequence->steps[i].wait[stream];
        done = wait > done ? wait : done;
        for (; number < done && next < i; next++) {
            if (sequence->steps[next].stream == stream) {
                l->done[next] = (int32_t)i - 1;
                number++;
            }
        }
        if (sequence->steps[i].stream == stream) {
            l->done[i] = (int32_t)sequence->count - 1; // at the end, all are
        }
    }
}

static void extend(const lifetimes *l, int32_t buffer, int32_t step) {
    tr_buffer *b = buffer < 0 ? NULL : &l->plan->buffers[buffer];
    if (b && b->sequence == (int)l->kind) {
        b->first = step < b->first ? step : b->first;
        b->last = l->done[step] > b->last ? l->done[step] : b->last;
    }
}

tr_status tr__lifetimes_find(tr_plan *plan, tr_sequence_kind kind,
                             const tr_accesses *accesses, tr_error *err) {
    size_t count = plan->sequences[kind].count;
    lifetimes l = {.plan = plan, .kind = kind};
    l.done = tr__calloc(count, sizeof *l.done);
    if (!l.done) {
        return tr_fail(err, TR_MEMORY, "no memory for the plan's lifetimes");
    }
    for (size_t i = 0; i < count; i++) {
        l.done[i] = (int32_t)i;
    }
    for (int s = 0; s < TR_STREAMS; s++) {
        if (tr__stream_is_beside((tr_stream)s)) {
            find_done(&l, (tr_stream)s);
        }
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t k = accesses->begin[i]; k < accesses->begin[i + 1]; k++) {
            extend(&l, accesses->items[k].value, (int32_t)i);
        }
    }
    tr__free(l.done);
    return TR_OK;
}

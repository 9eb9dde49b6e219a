// Pass: where each buffer lies in the arena. Those that live always come first; the
// passing ones of all sequences share what follows, since one sequence works at a time.
#include "base/checked.h"
#include "base/memory.h"
#include "plan/offsets.h"
#include "plan/plan.h"

static const int64_t most = INT64_C(1) << 60; // bytes that live always

static tr_status place_always(tr_plan *plan, tr_error *err) {
    int64_t next = 0;
    for (size_t i = 0; i < plan->buffer_count; i++) {
        tr_buffer *buffer = &plan->buffers[i];
        if (buffer->sequence >= 0) {
            continue;
        }
        buffer->offset = next;
        if (buffer->bytes > most - next) {
            return tr_fail(err, TR_USAGE, "the model needs more than 2^60 bytes");
        }
        next += tr__round_up(buffer->bytes, TR_ALIGNMENT);
    }
    plan->persistent_bytes = next;
    return TR_OK;
}

static tr_status place_sequence(tr_plan *plan, int sequence, tr_interval *items,
                                int64_t *total, tr_error *err) {
    size_t count = 0;
    for (size_t i = 0; i < plan->buffer_count; i++) {
        const tr_buffer *buffer = &plan->buffers[i];
        if (buffer->sequence == sequence) {
            items[count++] =
                (tr_interval){buffer->bytes, buffer->first, buffer->last, 0};
        }
    }
    tr_status status = tr__offsets_assign(items, count, total, err);
    for (size_t i = plan->buffer_count; i-- > 0 && status == TR_OK;) {
        if (plan->buffers[i].sequence == sequence) {
            plan->buffers[i].offset = plan->persistent_bytes + items[--count].offset;
        }
    }
    return status;
}

tr_status tr__pass_offsets(tr_plan *plan, tr_error *err) {
    tr_interval *items = tr__calloc(plan->buffer_count, sizeof *items);
    tr_status status = items ? place_always(plan, err)
                             : tr_fail(err, TR_MEMORY, "no memory to lay out the plan");
    int64_t passing = 0;
    for (int s = 0; s < TR_SEQUENCES && status == TR_OK; s++) {
        int64_t total = 0;
        status = place_sequence(plan, s, items, &total, err);
        passing = tr__max_i64(passing, total);
    }
    plan->ledger.total[TR_SPACE_DEVICE] = plan->persistent_bytes + passing;
    tr__free(items);
    return status;
}

// Pass: the arena's bytes by category, at the fullest moment of all sequences.
#include "base/checked.h"
#include "base/memory.h"
#include "plan/flow/passes.h"
#include "plan/flow/plan.h"

// Bytes of the passing buffers of a sequence that live at `step`.
static int64_t live_at(const tr_plan *plan, tr_space space, int sequence, int32_t step,
                       int64_t *category) {
    int64_t sum = 0;
    for (size_t i = 0; i < plan->buffer_count; i++) {
        const tr_buffer *buffer = &plan->buffers[i];
        if (buffer->space == space && buffer->sequence == sequence &&
            buffer->first <= step && step <= buffer->last) {
            sum += buffer->bytes;
            category[buffer->category] += buffer->bytes;
        }
    }
    return sum;
}

// The step of a sequence at which most bytes live, and how many.
static tr_status fullest(const tr_plan *plan, tr_space space, int sequence,
                         int32_t *step, int64_t *bytes, tr_error *err) {
    size_t count = plan->sequences[sequence].count;
    int64_t *change = tr__calloc(count + 1, sizeof *change);
    int64_t live = 0;
    if (!change) {
        return tr_fail(err, TR_MEMORY, "no memory for the ledger");
    }
    for (size_t i = 0; i < plan->buffer_count; i++) {
        const tr_buffer *buffer = &plan->buffers[i];
        if (buffer->space == space && buffer->sequence == sequence) {
            change[buffer->first] += buffer->bytes;
            change[buffer->last + 1] -= buffer->bytes;
        }
    }
    *bytes = 0;
    *step = 0;
    for (size_t i = 0; i < count; i++) {
        live += change[i];
        if (live > *bytes) {
            *bytes = live;
            *step = (int32_t)i;
        }
    }
    tr__free(change);
    return TR_OK;
}

tr_status tr__plan_fullest(const tr_plan *plan, tr_space space, tr_sequence_kind *kind,
                           int32_t *step, tr_error *err) {
    int64_t most = -1;
    for (int s = 0; s < TR_SEQUENCES; s++) {
        int64_t live = 0;
        int32_t at = 0;
        tr_status status = fullest(plan, space, s, &at, &live, err);
        if (status != TR_OK) {
            return status;
        }
        if (live > most) {
            most = live;
            *kind = (tr_sequence_kind)s;
            *step = at;
        }
    }
    return TR_OK;
}

static tr_status add_up(tr_plan *plan, tr_space space, tr_error *err) {
    int64_t *bytes = plan->ledger.bytes[space];
    int64_t used = 0;
    tr_sequence_kind kind = TR_SEQUENCE_TRAIN;
    int32_t step = 0;
    tr_status status = tr__plan_fullest(plan, space, &kind, &step, err);
    if (status != TR_OK) {
        return status;
    }
    live_at(plan, space, -1, 0, bytes);
    live_at(plan, space, kind, step, bytes);
    for (int c = 0; c < TR_LEDGER_COUNT; c++) {
        used += bytes[c];
    }
    bytes[TR_LEDGER_unused] = plan->arena_bytes[space] - used;
    plan->ledger.total[space] = plan->arena_bytes[space];
    return TR_OK;
}

tr_status tr__pass_ledger(tr_plan *plan, tr_error *err) {
    tr_status status = TR_OK;
    for (int space = 0; space < TR_SPACES && status == TR_OK; space++) {
        status = add_up(plan, (tr_space)space, err);
    }
    // Data sets that are held in memory lie beside the arena.
    plan->ledger.bytes[TR_SPACE_HOST][TR_LEDGER_data] += plan->request.host_data_bytes;
    plan->ledger.total[TR_SPACE_HOST] += plan->request.host_data_bytes;
    return status;
}

// Pass: where each buffer lies in the arena. Those that live always come first; the
// passing ones of all sequences share what follows, since one sequence works at a time.
#include "base/checked.h"
#include "base/memory.h"
#include "plan/flow/passes.h"
#include "plan/flow/plan.h"
#include "plan/flow/residency.h"
#include "plan/units/offsets.h"

static const int64_t most = INT64_C(1) << 60; // bytes that live always

// What NVMe reads and writes, in memory and in the file, lies at whole blocks.
static int64_t alignment_of(const tr_plan *plan, tr_space space) {
    bool blocks = space != TR_SPACE_DEVICE && tr__plan_uses_nvme(plan);
    return blocks ? TR_NVME_ALIGNMENT : TR_ALIGNMENT;
}

static tr_status place_always(tr_plan *plan, tr_space space, tr_error *err) {
    int64_t next = 0;
    for (size_t i = 0; i < plan->buffer_count; i++) {
        tr_buffer *buffer = &plan->buffers[i];
        if (buffer->sequence >= 0 || buffer->space != space) {
            continue;
        }
        buffer->offset = next;
        if (buffer->bytes > most - next) {
            return tr_fail(err, TR_USAGE, "the model needs more than 2^60 bytes");
        }
        next += tr__round_up(buffer->bytes, alignment_of(plan, space));
    }
    plan->persistent_bytes[space] = next;
    return TR_OK;
}

static bool is_passing(const tr_buffer *buffer, tr_space space, int sequence) {
    return buffer->space == space && buffer->sequence == sequence;
}

static tr_status place_sequence(tr_plan *plan, tr_space space, int sequence,
                                tr_interval *items, int64_t *total, tr_error *err) {
    size_t count = 0;
    for (size_t i = 0; i < plan->buffer_count; i++) {
        const tr_buffer *buffer = &plan->buffers[i];
        if (is_passing(buffer, space, sequence)) {
            int64_t room = tr__round_up(buffer->bytes, alignment_of(plan, space));
            items[count++] = (tr_interval){room, buffer->first, buffer->last, 0};
        }
    }
    tr_status status = tr__offsets_assign(items, count, total, err);
    for (size_t i = plan->buffer_count; i-- > 0 && status == TR_OK;) {
        if (is_passing(&plan->buffers[i], space, sequence)) {
            plan->buffers[i].offset =
                plan->persistent_bytes[space] + items[--count].offset;
        }
    }
    return status;
}

// Memory ends with its last buffer, which need not be whole blocks.
static int64_t end_of_memory(const tr_plan *plan, tr_space space) {
    int64_t end = plan->persistent_bytes[space];
    for (size_t i = 0; i < plan->buffer_count; i++) {
        const tr_buffer *buffer = &plan->buffers[i];
        int64_t room = tr__round_up(buffer->bytes, TR_ALIGNMENT);
        if (buffer->space == space && buffer->sequence >= 0) {
            end = tr__max_i64(end, buffer->offset + room);
        }
    }
    return end;
}

static tr_status place_space(tr_plan *plan, tr_space space, tr_interval *items,
                             tr_error *err) {
    int64_t passing = 0;
    tr_status status = place_always(plan, space, err);
    for (int s = 0; s < TR_SEQUENCES && status == TR_OK; s++) {
        int64_t total = 0;
        status = place_sequence(plan, space, s, items, &total, err);
        passing = tr__max_i64(passing, total);
    }
    plan->arena_bytes[space] = space == TR_SPACE_NVME
                                   ? plan->persistent_bytes[space] + passing
                                   : end_of_memory(plan, space);
    return status;
}

tr_status tr__pass_offsets(tr_plan *plan, tr_error *err) {
    tr_interval *items = tr__calloc(plan->buffer_count, sizeof *items);
    tr_status status =
        items ? TR_OK : tr_fail(err, TR_MEMORY, "no memory to lay out the plan");
    for (int space = 0; space < TR_SPACES && status == TR_OK; space++) {
        status = place_space(plan, (tr_space)space, items, err);
    }
    tr__free(items);
    return status;
}

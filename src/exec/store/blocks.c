// Whole blocks of a part of a flat buffer, between the file and memory.
#include "exec/store/pieces.h"
#include "plan/flow/residency.h"

// Where element `element` of a flat buffer's part is in the file, in bytes.
static int64_t stored_at(const tr_plan *plan, const tr_flat *flat, tr_part part,
                         int64_t element) {
    const tr_flat_range *range = &flat->part[part];
    return plan->buffers[range->buffer].offset +
           tr__nvme_bytes(plan, flat, part, element - range->first);
}

tr_status tr__move_blocks(const tr_executor *ex, const tr_blocks *b, void *memory,
                          tr_direction way, tr_error *err) {
    tr_copy_engine *copy_engine = ex->copy_engine[TR_STREAM_NVME];
    tr_carry order = {.kind = way == TR_TO_HOST ? TR_CARRY_READ : TR_CARRY_WRITE,
                      .from = way == TR_TO_HOST ? NULL : memory,
                      .to = way == TR_TO_HOST ? memory : NULL,
                      .bytes = tr__nvme_bytes(ex->plan, b->flat, b->part, b->count),
                      .offset = stored_at(ex->plan, b->flat, b->part, b->first)};
    return tr__copy_engine_wait(copy_engine, tr__copy_engine_start(copy_engine, &order),
                                err);
}

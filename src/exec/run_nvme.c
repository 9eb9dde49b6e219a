// Steps that move parts of flat buffers between NVMe and staging.
#include "exec/walk.h"

#include <assert.h>

static_assert(TR_NVME_ALIGNMENT == (int)TR_CARRY_ALIGN, "plans cut as carriers carry");

int64_t tr__stored_at(const tr_plan *plan, const tr_flat *flat, tr_part part,
                      int64_t element) {
    const tr_flat_range *range = tr__flat_range(flat, part);
    return plan->buffers[range->buffer].offset +
           tr__nvme_bytes(plan, part, element - range->first);
}

tr_status tr__run_nvme_read(tr_work *work, const tr_plan_step *step) {
    const tr_executor *ex = work->ex;
    const tr_flat *flat = &ex->plan->flats[step->unit];
    tr_carry order = {.kind = TR_CARRY_READ,
                      .to = tr__memory(ex, step->buffer[TR_SLOT_OUTPUT]),
                      .bytes = tr__nvme_bytes(ex->plan, step->part, step->count),
                      .offset = tr__stored_at(ex->plan, flat, step->part, step->first)};
    tr__carrier_start(ex->carrier[TR_STREAM_NVME], &order);
    return TR_OK; // a fault comes up where somebody waits
}

tr_status tr__run_nvme_write(tr_work *work, const tr_plan_step *step) {
    const tr_executor *ex = work->ex;
    const tr_flat *flat = &ex->plan->flats[step->unit];
    tr_carry order = {.kind = TR_CARRY_WRITE,
                      .from = tr__memory(ex, step->buffer[TR_SLOT_INPUT]),
                      .bytes = tr__nvme_bytes(ex->plan, step->part, step->count),
                      .offset = tr__stored_at(ex->plan, flat, step->part, step->first)};
    tr__carrier_start(ex->carrier[TR_STREAM_NVME], &order);
    return TR_OK;
}

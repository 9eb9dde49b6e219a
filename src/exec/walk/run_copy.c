// Steps that move bytes by themselves, beside computing: between spaces, and between
// the file and memory.
#include "exec/walk.h"
#include "plan/flow/residency.h"

#include <assert.h>

static_assert(TR_NVME_ALIGNMENT == (int)TR_CARRY_ALIGN,
              "plans cut as copy_engines carry");

tr_status tr__run_copy(tr_work *work, const tr_plan_step *step) {
    const tr_executor *ex = work->ex;
    tr_device_queue *queue = ex->queue[step->stream];
    const tr_step_operand *from = tr__step_operand(ex->plan, step, TR_COPY_FROM);
    const tr_step_operand *to = tr__step_operand(ex->plan, step, TR_COPY_TO);
    if (queue) {
        ex->backend->queues->copy(queue, tr__operand_address(ex, from),
                                  tr__operand_address(ex, to), tr__operand_bytes(to));
        ex->backend->queues->mark(queue);
    } else {
        tr_carry order = {.kind = TR_CARRY_COPY,
                          .from = tr__operand_reached(ex, from),
                          .to = tr__operand_reached(ex, to),
                          .bytes = tr__operand_bytes(to)};
        tr__copy_engine_start(ex->copy_engine[step->stream], &order);
    }
    return TR_OK; // a fault comes up where somebody waits
}

tr_status tr__run_file(tr_work *work, const tr_plan_step *step) {
    const tr_executor *ex = work->ex;
    const tr_step_operand *stored = tr__step_operand(ex->plan, step, TR_FILE_STORED);
    void *memory =
        tr__operand_reached(ex, tr__step_operand(ex->plan, step, TR_FILE_MEMORY));
    bool reads = stored->mode == TR_ACCESS_READ;
    tr_carry order = {.kind = reads ? TR_CARRY_READ : TR_CARRY_WRITE,
                      .from = reads ? NULL : memory,
                      .to = reads ? memory : NULL,
                      .bytes = tr__operand_bytes(stored),
                      .offset =
                          ex->plan->buffers[stored->buffer].offset + stored->first};
    tr__copy_engine_start(ex->copy_engine[TR_STREAM_NVME], &order);
    return TR_OK;
}

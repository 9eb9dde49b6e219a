// Steps that move bytes by themselves, beside computing: between spaces, and between
// the file and memory.
#include "exec/walk.h"
#include "plan/residency.h"

#include <assert.h>

static_assert(TR_NVME_ALIGNMENT == (int)TR_CARRY_ALIGN,
              "plans cut as copy_engines carry");

tr_status tr__run_copy(tr_work *work, const tr_plan_step *step) {
    const tr_executor *ex = work->ex;
    tr_device_queue *queue = ex->queue[TR_STREAM_COPY];
    tr_copy copy;
    bool moves = tr__step_copy(ex->plan, step, &copy);
    if (moves && queue) {
        ex->backend->queues->copy(queue, tr__region_address(ex, &copy.from),
                                  tr__region_address(ex, &copy.to),
                                  copy.to.end - copy.to.first);
        ex->backend->queues->mark(queue);
    } else if (moves) {
        tr_carry order = {.kind = TR_CARRY_COPY,
                          .from = tr__at_region(ex, &copy.from),
                          .to = tr__at_region(ex, &copy.to),
                          .bytes = copy.to.end - copy.to.first};
        tr__copy_engine_start(ex->copy_engine[TR_STREAM_COPY], &order);
    }
    return TR_OK; // a fault comes up where somebody waits
}

tr_status tr__run_file(tr_work *work, const tr_plan_step *step) {
    const tr_executor *ex = work->ex;
    tr_file_move move;
    if (tr__step_file(ex->plan, step, &move)) {
        void *memory = tr__at_region(ex, &move.memory);
        const tr_buffer *file = &ex->plan->buffers[move.stored.buffer];
        tr_carry order = {.kind = move.reads ? TR_CARRY_READ : TR_CARRY_WRITE,
                          .from = move.reads ? NULL : memory,
                          .to = move.reads ? memory : NULL,
                          .bytes = move.stored.end - move.stored.first,
                          .offset = file->offset + move.stored.first};
        tr__copy_engine_start(ex->copy_engine[TR_STREAM_NVME], &order);
    }
    return TR_OK;
}

// Steps that launch kernels: by the walk itself, or on a stream beside it.
#include "exec/walk.h"

static tr_status launch(const tr_executor *ex, tr_device_queue *queue,
                        const tr_launch_task *task, tr_error *err) {
    const tr_program *program = task->step->payload.program;
    if (program) {
        return tr__launch_program(ex, queue, task, program, err);
    }
    tr__launch_ops(ex, queue, &task->run, task->step);
    return TR_OK;
}

// What units make and pass on; such a buffer is filled by one step.
static bool is_of_units(const tr_buffer *buffer) {
    return buffer->category == TR_LEDGER_activations ||
           buffer->category == TR_LEDGER_boundary ||
           buffer->category == TR_LEDGER_gradients;
}

// Passing buffers that the step is the first to have: nothing in them means anything.
// (Of others, streams may fill parts side by side.)
static void poison(const tr_executor *ex, tr_device_queue *queue,
                   const tr_launch_task *task) {
    const tr_sequence *sequence = &ex->plan->sequences[task->sequence];
    int32_t index = (int32_t)(task->step - sequence->steps);
    for (size_t i = 0; i < ex->plan->buffer_count; i++) {
        const tr_buffer *b = &ex->plan->buffers[i];
        bool first = b->sequence == (int)task->sequence && b->first == index;
        if (first && is_of_units(b)) {
            ex->backend->poison(queue, tr__memory(ex, (int)i), (size_t)b->bytes);
        }
    }
}

tr_status tr__launch(const tr_executor *ex, tr_device_queue *queue,
                     const tr_launch_task *task, tr_error *err) {
    if (ex->backend->poison) {
        poison(ex, queue, task);
    }
    return launch(ex, queue, task, err);
}

tr_status tr__run_launch(tr_work *work, const tr_plan_step *step) {
    tr_executor *ex = work->ex;
    tr_launch_task task = {.step = step,
                           .sequence = work->sequence,
                           .run = work->run,
                           .micro = ex->micros[step->micro]};
    tr_device_queue *queue = ex->queue[step->stream];
    if (ex->launcher[step->stream]) { // a fault comes up where somebody waits
        tr__launcher_start(ex->launcher[step->stream], &task);
        return TR_OK;
    }
    tr_status status = tr__launch(ex, queue, &task, work->err);
    if (queue) {
        ex->backend->queues->mark(queue);
    }
    return status;
}

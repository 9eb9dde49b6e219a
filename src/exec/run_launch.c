// Steps that launch kernels: by the walk itself, or on a stream beside it.
#include "exec/walk.h"

tr_status tr__launch(const tr_executor *ex, const tr_launch_task *task, tr_error *err) {
    const tr_program *program = tr__step_program(ex->plan, task->step, task->sequence);
    if (program) {
        return tr__launch_program(ex, task, program, err);
    }
    tr__launch_flat(ex, &task->run, task->step);
    return TR_OK;
}

tr_status tr__run_launch(tr_work *work, const tr_plan_step *step) {
    tr_executor *ex = work->ex;
    tr_launch_task task = {.step = step,
                           .sequence = work->sequence,
                           .run = work->run,
                           .micro = ex->micros[step->micro]};
    if (!ex->launcher[step->stream]) {
        return tr__launch(ex, &task, work->err);
    }
    tr__launcher_start(ex->launcher[step->stream], &task);
    return TR_OK; // a fault comes up where somebody waits
}

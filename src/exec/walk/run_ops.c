// Steps that launch ops by themselves, and not a unit's program: gradients accumulated,
// their norms, the update.
#include "exec/walk.h"

static void launch_one(const tr_executor *ex, tr_device_queue *queue,
                       const tr_op_launch *of, tr_launch *launch) {
    const tr_prepared_op *op = &ex->plan->prepared[of->op];
    const tr_step_operand *operand = &ex->plan->operands[of->operand];
    launch->accumulate = 0;
    for (int i = 0; i < op->desc.in_count; i++) {
        launch->in[i] = tr__operand_address(ex, operand++);
    }
    for (int i = 0; i < op->desc.out_count; i++, operand++) {
        launch->out[i] = tr__operand_address(ex, operand);
        launch->accumulate |= (uint32_t)(operand->mode == TR_ACCESS_ADD) << i;
    }
    tr__launch_kernel(
        ex, queue,
        &(tr_device_work){.kernel = op->kernel, .desc = &op->desc, .launch = launch});
}

void tr__launch_ops(const tr_executor *ex, tr_device_queue *queue,
                    const tr_run_context *run, const tr_plan_step *step) {
    const tr_payload *payload = &step->payload;
    const tr_step_operand *work =
        payload->works ? tr__step_operand(ex->plan, step, 0) : NULL;
    for (size_t i = 0; i < payload->op_count; i++) {
        tr_launch launch = {.run = run,
                            .workspace = work ? tr__operand_address(ex, work) : NULL};
        launch_one(ex, queue, &ex->plan->launches[payload->op + i], &launch);
    }
}

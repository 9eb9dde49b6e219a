// Pass: is there a kernel for every launch on flat buffers, and does it reach them?
// (Those of units are found while they are compiled.)
#include "backend/backend.h"
#include "plan/flow/passes.h"

static bool touches_device(const tr_plan *plan, const tr_plan_step *step) {
    bool touches = false;
    for (size_t i = 0; i < step->payload.operand_count; i++) {
        const tr_step_operand *operand = tr__step_operand(plan, step, i);
        touches = touches || (operand->buffer >= 0 &&
                              plan->buffers[operand->buffer].space == TR_SPACE_DEVICE);
    }
    return touches;
}

static tr_status check_kernel(const tr_prepared_op *op, tr_error *err) {
    const tr_op_desc *desc = &op->desc;
    bool host = desc->target.backend == TR_BACKEND_HOST;
    return op->kernel
               ? TR_OK
               : tr_fail(err, TR_USAGE, "the %s backend has no kernel for %s of %s%s",
                         tr__backend(desc->target.backend)->name, desc->op->name,
                         tr_dtype_name(desc->in_count > 0 ? desc->in[0].dtype
                                                          : desc->out[0].dtype),
                         host ? "" : ": set \"device\" to \"cpu\"");
}

static tr_status check_reach(const tr_plan *plan, const tr_plan_step *step,
                             tr_error *err) {
    if (step->stream != TR_STREAM_HOST || step->shape != TR_STEP_IS_LAUNCH ||
        step->payload.op_count == 0 || !touches_device(plan, step)) {
        return TR_OK;
    }
    const tr_op_launch *first = &plan->launches[step->payload.op];
    return tr_fail(
        err, TR_USAGE,
        "with the %s backend the host cannot yet do %s on the memory of the "
        "device, which offload asks for here: leave the offload keys out, or "
        "set \"device\" to \"cpu\"",
        tr__backend(plan->request.backend)->name,
        plan->prepared[first->op].desc.op->name);
}

static tr_status check_all_reach(const tr_plan *plan, tr_error *err) {
    tr_status status = TR_OK;
    for (int kind = 0; kind < TR_SEQUENCES; kind++) {
        const tr_sequence *sequence = &plan->sequences[kind];
        for (size_t i = 0; i < sequence->count && status == TR_OK; i++) {
            status = check_reach(plan, &sequence->steps[i], err);
        }
    }
    return status;
}

// A kernel of the host reaches a device's memory by the backend's own way alone.
tr_status tr__plan_check_reach(const tr_plan *plan, tr_error *err) {
    const tr_backend *backend = tr__backend(plan->request.backend);
    return !backend->discrete || backend->reach ? TR_OK : check_all_reach(plan, err);
}

tr_status tr__pass_kernels(tr_plan *plan, tr_error *err) {
    tr_status status = TR_OK;
    for (size_t i = 0; i < plan->prepared_count && status == TR_OK; i++) {
        status = check_kernel(&plan->prepared[i], err);
    }
    return status == TR_OK && !plan->request.elsewhere ? tr__plan_check_reach(plan, err)
                                                       : status;
}

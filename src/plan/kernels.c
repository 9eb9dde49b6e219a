// Pass: is there a kernel for every launch on flat buffers, and does it reach them?
// (Those of units are found while they are compiled.)
#include "backend/backend.h"
#include "plan/flat_launch.h"
#include "plan/passes.h"

static bool is_on_device(const tr_plan *plan, tr_location at) {
    return at.buffer >= 0 && plan->buffers[at.buffer].space == TR_SPACE_DEVICE;
}

static bool touches_device(const tr_plan *plan, const tr_flat_launch *launch) {
    bool touches = is_on_device(plan, launch->workspace);
    for (int i = 0; i < launch->desc.in_count; i++) {
        touches = touches || is_on_device(plan, launch->in[i]);
    }
    for (int i = 0; i < launch->desc.out_count; i++) {
        touches = touches || is_on_device(plan, launch->out[i]);
    }
    return touches;
}

static tr_status check_kernel(const tr_plan *plan, const tr_plan_step *step,
                              const tr_flat_launch *launch, tr_error *err) {
    const tr_op_desc *desc = &launch->desc;
    bool host = desc->target.backend == TR_BACKEND_HOST;
    (void)plan;
    (void)step;
    return launch->kernel
               ? TR_OK
               : tr_fail(err, TR_USAGE, "the %s backend has no kernel for %s of %s%s",
                         tr__backend(desc->target.backend)->name, desc->op->name,
                         tr_dtype_name(desc->in_count > 0 ? desc->in[0].dtype
                                                          : desc->out[0].dtype),
                         host ? "" : ": set \"device\" to \"cpu\"");
}

static tr_status check_reach(const tr_plan *plan, const tr_plan_step *step,
                             const tr_flat_launch *launch, tr_error *err) {
    return step->stream == TR_STREAM_HOST && touches_device(plan, launch)
               ? tr_fail(err, TR_USAGE,
                         "with the %s backend the host cannot yet do %s on the memory "
                         "of the device, which offload asks for here: leave the "
                         "offload keys out, or set \"device\" to \"cpu\"",
                         tr__backend(plan->request.backend)->name,
                         launch->desc.op->name)
               : TR_OK;
}

typedef tr_status check_launch(const tr_plan *plan, const tr_plan_step *step,
                               const tr_flat_launch *launch, tr_error *err);

static tr_status check_all(const tr_plan *plan, check_launch *check, tr_error *err) {
    tr_status status = TR_OK;
    for (int kind = 0; kind < TR_SEQUENCES; kind++) {
        const tr_sequence *sequence = &plan->sequences[kind];
        for (size_t i = 0; i < sequence->count; i++) {
            const tr_plan_step *step = &sequence->steps[i];
            tr_flat_launch launch;
            size_t next = 0;
            while (status == TR_OK &&
                   tr__flat_launch_next(plan, step, &next, &launch)) {
                status = check(plan, step, &launch, err);
            }
        }
    }
    return status;
}

// A kernel of the host reaches a device's memory by the backend's own way alone.
tr_status tr__plan_check_reach(const tr_plan *plan, tr_error *err) {
    const tr_backend *backend = tr__backend(plan->request.backend);
    return !backend->discrete || backend->reach ? TR_OK
                                                : check_all(plan, check_reach, err);
}

tr_status tr__pass_kernels(tr_plan *plan, tr_error *err) {
    tr_status status = check_all(plan, check_kernel, err);
    return status == TR_OK && !plan->request.elsewhere ? tr__plan_check_reach(plan, err)
                                                       : status;
}

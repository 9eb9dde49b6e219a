// Pass: is there a kernel for every launch on flat buffers? (Those of units are found
// while they are compiled.)
#include "backend/backend.h"
#include "plan/flat_launch.h"
#include "plan/passes.h"

static tr_status check_step(const tr_plan *plan, const tr_plan_step *step,
                            tr_error *err) {
    tr_flat_launch launch;
    size_t next = 0;
    while (tr__flat_launch_next(plan, step, &next, &launch)) {
        const tr_op_desc *desc = &launch.desc;
        if (!launch.kernel) {
            return tr_fail(err, TR_USAGE, "the %s backend has no kernel for %s of %s",
                           tr__backend(desc->target.backend)->name, desc->op->name,
                           tr_dtype_name(desc->in_count > 0 ? desc->in[0].dtype
                                                            : desc->out[0].dtype));
        }
    }
    return TR_OK;
}

tr_status tr__pass_kernels(tr_plan *plan, tr_error *err) {
    tr_status status = TR_OK;
    for (int kind = 0; kind < TR_SEQUENCES; kind++) {
        const tr_sequence *sequence = &plan->sequences[kind];
        for (size_t i = 0; i < sequence->count && status == TR_OK; i++) {
            status = check_step(plan, &sequence->steps[i], err);
        }
    }
    return status;
}

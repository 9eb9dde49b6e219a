// Pass: the inputs of recomputed units wait in another space between their forward and
// their recomputation (DeepSpeed's cpu_checkpointing).
#include "plan/flow/passes.h"
#include "plan/passes/away.h"

static bool leaves(const tr_plan *plan, const tr_plan_step *forward,
                   const tr_program_block *block) {
    return block->place == TR_PLACE_INPUT && plan->units[forward->unit].recomputed;
}

tr_status tr__pass_boundary(tr_plan *plan, tr_error *err) {
    const tr_away inputs = {"input", plan->request.boundary_placement, leaves};
    bool away = inputs.space != TR_SPACE_DEVICE && !plan->request.inference;
    return away ? tr__put_away(plan, &inputs, err) : TR_OK;
}

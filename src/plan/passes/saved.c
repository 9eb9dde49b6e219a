// Pass: what forwards save for backwards waits in another space between the two
// (offload of activations). What recomputed units save is made where it is needed, so
// it stays.
#include "plan/flow/passes.h"
#include "plan/passes/away.h"

static bool leaves(const tr_plan *plan, const tr_plan_step *forward,
                   const tr_program_block *block) {
    return block->place == TR_PLACE_SAVED && !plan->units[forward->unit].recomputed;
}

tr_status tr__pass_saved(tr_plan *plan, tr_error *err) {
    const tr_away activations = {"activations", plan->request.saved_placement, leaves};
    bool away = activations.space != TR_SPACE_DEVICE && !plan->request.inference;
    return away ? tr__put_away(plan, &activations, err) : TR_OK;
}

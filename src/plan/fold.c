// Pass: sums of another type than the f32 that a backward makes. Each micro-batch's
// gradient is made by itself, in a temporary, and added to them: in reproducible mode
// in fixed point of 64 bits (ops/accumulate), since integers add up to the same in any
// order; or rounded to the 16 bits that the run asks for. Where several segments make
// gradients of one flat buffer, each adds its own, and zeros for those of the others.
#include "plan/editor.h"

static void add_folds(tr_editor *editor, const tr_plan_step *backward) {
    const tr_plan_unit *unit = &editor->plan->units[backward->unit];
    uint32_t flats = tr__program_flats(&unit->program->backward[backward->segment],
                                       TR_PLACE_PARAM_GRAD);
    for (int k = 0; k < unit->program->flat_count; k++) {
        if (flats >> k & 1) {
            tr__edit_add(editor, (tr_plan_step){.kind = TR_STEP_fold,
                                                .unit = unit->flats[k],
                                                .micro = backward->micro});
        }
    }
}

tr_status tr__pass_fold(tr_plan *plan, tr_error *err) {
    if (!tr__plan_folds(plan) || plan->request.inference) {
        return TR_OK;
    }
    tr_editor editor = tr__edit_begin(plan, TR_SEQUENCE_TRAIN, err);
    for (size_t i = 0; i < editor.old->count; i++) {
        tr__edit_add(&editor, editor.old->steps[i]);
        if (editor.old->steps[i].kind == TR_STEP_backward) {
            add_folds(&editor, &editor.old->steps[i]);
        }
    }
    return tr__edit_end(&editor);
}

// Pass: sums of another type than the f32 that a backward makes. Each micro-batch's
// gradient is made by itself, in a temporary, and added to them: in reproducible mode
// in fixed point of 64 bits (ops/fixed), since integers add up to the same in any
// order; or rounded to the 16 bits that the run asks for. Where several segments make
// gradients of one flat buffer, each adds its own, and zeros for those of the others.
#include "base/checked.h"
#include "base/memory.h"
#include "plan/editor.h"

typedef struct folder {
    tr_plan *plan;
    tr_editor editor;
    int64_t *written; // [flats] 1 + the last scope that has written the sums
} folder;

// Sums are written by the first step of their scope.
static bool begins(folder *f, int flat, const tr_plan_step *backward) {
    int64_t wave = backward->micro / f->plan->request.wave;
    int64_t scope = 1 + tr__gradient_scope(f->plan, flat, backward->unit, wave);
    bool first = f->written[flat] != scope;
    f->written[flat] = scope;
    return first;
}

static void add_folds(folder *f, const tr_plan_step *backward) {
    const tr_plan_unit *unit = &f->plan->units[backward->unit];
    uint32_t flats = tr__program_flats(&unit->program->backward[backward->segment],
                                       TR_PLACE_PARAM_GRAD);
    for (int k = 0; k < unit->program->flat_count; k++) {
        if (flats >> k & 1) {
            tr_plan_step fold = {.kind = TR_STEP_fold,
                                 .unit = unit->flats[k],
                                 .micro = backward->micro,
                                 .fresh = begins(f, unit->flats[k], backward)};
            tr__edit_add(&f->editor, fold);
        }
    }
}

static void edit(folder *f) {
    const tr_sequence *old = f->editor.old;
    for (size_t i = 0; i < old->count; i++) {
        tr__edit_add(&f->editor, old->steps[i]);
        if (old->steps[i].kind == TR_STEP_backward) {
            add_folds(f, &old->steps[i]);
        }
    }
}

tr_status tr__pass_fold(tr_plan *plan, tr_error *err) {
    if (!tr__plan_folds(plan) || plan->request.inference) {
        return TR_OK;
    }
    folder f = {.plan = plan, .editor = tr__edit_begin(plan, TR_SEQUENCE_TRAIN, err)};
    f.written = tr__calloc(plan->flat_count, sizeof *f.written);
    if (!f.written) {
        return tr_fail(err, TR_MEMORY, "no memory to fold gradients");
    }
    edit(&f);
    tr__free(f.written);
    return tr__edit_end(&f.editor);
}

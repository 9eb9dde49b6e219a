// Pass: sums of another type than the f32 that a backward makes. Each micro-batch's
// gradient is made by itself, in a temporary, and added to them: in reproducible mode
// in fixed point of 64 bits (ops/fixed), since integers add up to the same in any
// order; or rounded to the 16 bits that the run asks for. Where several segments make
// gradients of one flat buffer, each adds its own, and zeros for those of the others.
#include "base/checked.h"
#include "base/memory.h"
#include "plan/plan.h"

typedef struct folder {
    tr_plan *plan;
    tr_sequence edited;
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

static tr_status add_folds(folder *f, const tr_plan_step *backward, tr_error *err) {
    const tr_plan_unit *unit = &f->plan->units[backward->unit];
    uint32_t flats = tr__program_flats(&unit->program->backward[backward->segment],
                                       TR_PLACE_PARAM_GRAD);
    tr_status status = TR_OK;
    for (int k = 0; k < unit->program->flat_count && status == TR_OK; k++) {
        if (flats >> k & 1) {
            tr_plan_step fold = {.kind = TR_STEP_fold,
                                 .unit = unit->flats[k],
                                 .micro = backward->micro,
                                 .fresh = begins(f, unit->flats[k], backward)};
            status = tr__sequence_add(&f->edited, fold, err);
        }
    }
    return status;
}

static tr_status edit(folder *f, tr_error *err) {
    const tr_sequence *old = &f->plan->sequences[TR_SEQUENCE_TRAIN];
    size_t update_begin = 0;
    tr_status status = TR_OK;
    for (size_t i = 0; i < old->count && status == TR_OK; i++) {
        update_begin = i == f->plan->update_begin ? f->edited.count : update_begin;
        status = tr__sequence_add(&f->edited, old->steps[i], err);
        if (status == TR_OK && old->steps[i].kind == TR_STEP_backward) {
            status = add_folds(f, &old->steps[i], err);
        }
    }
    f->plan->update_begin = update_begin;
    return status;
}

tr_status tr__pass_fold(tr_plan *plan, tr_error *err) {
    folder f = {.plan = plan};
    if (!tr__plan_folds(plan) || plan->request.inference) {
        return TR_OK;
    }
    f.written = tr__calloc(plan->flat_count, sizeof *f.written);
    tr_status status = f.written
                           ? edit(&f, err)
                           : tr_fail(err, TR_MEMORY, "no memory to fold gradients");
    tr__free(f.written);
    if (status != TR_OK) {
        tr__free(f.edited.steps);
        return status;
    }
    tr__free(plan->sequences[TR_SEQUENCE_TRAIN].steps);
    plan->sequences[TR_SEQUENCE_TRAIN] = f.edited;
    return TR_OK;
}

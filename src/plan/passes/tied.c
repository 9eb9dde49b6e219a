// Pass: gradients of which several ranks have a part each: of tied tensors whose users
// are on two stages, of parameters that ranks of the tensor axis use on their own
// tokens, and of heads of keys that several of these have. Each has the sum over its
// own users and micro-batches, and before the norm all sum theirs, where they lie; so
// all update the parameters alike.
#include "plan/flow/maker.h"
#include "plan/flow/passes.h"
#include "plan/flow/work.h"

// This data rank's part of them, or, at stage 0, all.
static tr_region sums_of(const tr_plan *plan, const tr_flat *flat) {
    bool shards = tr__plan_stage(plan) > 0;
    return tr__region_of_flat(&flat->sums, shards ? flat->first : 0,
                              shards ? flat->own : flat->count, tr__sum_bytes(plan));
}

static void put_sum(tr_editor *editor, int f) {
    const tr_plan *plan = editor->plan;
    const tr_flat *flat = &plan->flats[f];
    tr_exchange exchange = {.part = TR_PART_GRAD,
                            .type = tr__exchange_type(plan->request.sums),
                            .group = flat->axes.summed};
    if (tr__on_two_stages(&flat->axes)) {
        exchange.from = (int32_t)flat->axes.owner[TR_AXIS_PIPELINE];
        exchange.to = (int32_t)flat->axes.other_stage;
    }
    tr__make_sum(editor,
                 (tr_plan_step){.subject = TR_OF_FLAT,
                                .unit = f,
                                .stream = TR_STREAM_COMM,
                                .guard = TR_GUARD_ALWAYS},
                 exchange, sums_of(plan, flat));
}

static bool is_summed(const tr_plan *plan, const tr_flat *flat) {
    bool shards = tr__plan_stage(plan) > 0;
    return flat->axes.summed != 0 && !flat->frozen &&
           (shards ? flat->own : flat->count) > 0;
}

tr_status tr__pass_tied(tr_plan *plan, tr_error *err) {
    bool some = false;
    for (size_t f = 0; f < plan->flat_count; f++) {
        some = some || is_summed(plan, &plan->flats[f]);
    }
    if (plan->request.inference || !some) {
        return TR_OK;
    }
    tr_editor editor = tr__edit_begin(plan, TR_SEQUENCE_TRAIN, err);
    for (size_t i = 0; i < editor.old->count && editor.status == TR_OK; i++) {
        const tr_plan_step *step = &editor.old->steps[i];
        bool norm = step->mark == TR_MARK_NORM;
        for (size_t f = 0; norm && f < plan->flat_count; f++) {
            if (is_summed(plan, &plan->flats[f])) {
                put_sum(&editor, (int)f);
            }
        }
        tr__edit_add(&editor, *step);
    }
    return tr__edit_end(&editor);
}

// Pass: gradients of which several ranks have a part each: of tied tensors whose users
// are on several stages, of parameters that ranks of the tensor axis use on their own
// tokens, and of heads of keys that several of these have. Each has the sum over its
// own users and micro-batches, and before the norm all sum theirs, where they lie; so
// all update the parameters alike.
//
// Stages do so in a chain (chain.h). What the last of them has goes to the one before
// it, which adds it to its own and sends it on. The first two sum by halves, and what
// they have then goes back up. So the order of additions follows from the stages alone.
#include "plan/flow/maker.h"
#include "plan/flow/passes.h"
#include "plan/flow/work.h"
#include "plan/passes/chain.h"

// This data rank's part of them, or, at stage 0, all.
static tr_region sums_of(const tr_plan *plan, const tr_flat *flat) {
    bool shards = tr__plan_stage(plan) > 0;
    return tr__region_of_flat(&flat->sums, shards ? flat->first : 0,
                              shards ? flat->own : flat->count, tr__sum_bytes(plan));
}

static void put_stages(const tr_chain *chain) {
    int64_t hops = tr__chain_hops(chain->flat);
    for (int64_t hop = hops; hop > 1; hop--) {
        tr__put_hop(chain, hop, true, tr__make_reduced);
    }
    tr__put_hop(chain, 1, false, tr__make_sum);
    for (int64_t hop = 2; hop <= hops; hop++) {
        tr__put_hop(chain, hop, true, tr__make_gathered);
    }
}

static void put_sum(tr_editor *editor, int f) {
    const tr_plan *plan = editor->plan;
    const tr_flat *flat = &plan->flats[f];
    const tr_exchange exchange = {.part = TR_PART_GRAD,
                                  .type = tr__exchange_type(plan->request.sums),
                                  .group = flat->axes.summed};
    const tr_plan_step step = {.subject = TR_OF_FLAT,
                               .unit = f,
                               .stream = TR_STREAM_COMM,
                               .guard = TR_GUARD_ALWAYS};
    tr_region all = sums_of(plan, flat);
    if (tr__chain_hops(flat) > 0) {
        put_stages(&(tr_chain){editor, flat, step, exchange, all});
    } else {
        tr__make_sum(editor, step, exchange, all);
    }
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

// What the ranks of a group must do alike, as one number.
#include "base/hash.h"
#include "plan/flow/algorithm.h"

static uint64_t add(uint64_t hash, int64_t number) {
    return tr__hash_more(hash, &number, sizeof number);
}

// Stages name what they hand on to each other by different units.
static int64_t subject_of(const tr_plan_step *step) {
    return step->payload.exchange.part == TR_PART_BOUNDARY ? -1 - step->micro
                                                           : step->unit;
}

uint64_t tr__exchange_hash(const tr_plan_step *step) {
    if (step->shape != TR_STEP_IS_EXCHANGE) {
        return 0;
    }
    const tr_exchange *e = &step->payload.exchange;
    const int64_t numbers[] = {
        e->kind,     e->type,       e->count,       e->shard, e->part, subject_of(step),
        step->guard, step->segment, step->backward, e->from,  e->to};
    return tr__hash_more(e->group, numbers, sizeof numbers);
}

// Of gradients that other ranks sum than those of the data axis, each data rank has
// another part, or none.
static bool is_of_data_rank(const tr_exchange *e) {
    return e->group != TR_ON_DATA && e->part == TR_PART_GRAD;
}

// Ranks that exchange do so by one algorithm, on as many nodes.
static uint64_t hash_of(const tr_plan *plan, const tr_plan_step *step) {
    uint64_t hash = tr__exchange_hash(step);
    tr_transfer transfer;
    if (hash == 0 || !tr__step_transfer(plan, step, &transfer)) {
        return 0;
    }
    return add(add(hash, transfer.algorithm), transfer.near);
}

static void add_step(const tr_plan *plan, const tr_plan_step *step,
                     tr_plan_digest *digest) {
    const tr_exchange *e = &step->payload.exchange;
    uint64_t hash = hash_of(plan, step);
    if (hash != 0 && !tr__exchange_is_pair(e)) {
        uint64_t *group = &digest->of_group[e->group];
        *group = tr__hash_more(*group, &hash, sizeof hash);
    }
    if (hash != 0 && !is_of_data_rank(e)) {
        digest->all = tr__hash_more(digest->all, &hash, sizeof hash);
    }
}

void tr__plan_exchanges(const tr_plan *plan, tr_plan_digest *digest) {
    uint64_t begin = add(0, plan->request.sums);
    begin = add(begin, plan->statistics.doubles);
    begin = add(begin, plan->request.hierarchical ? plan->request.node_ranks : 0);
    *digest = (tr_plan_digest){.all = begin};
    for (tr_axes group = 0; group < TR_AXES_SETS; group++) {
        digest->of_group[group] = begin;
    }
    for (int s = 0; s < TR_SEQUENCES; s++) {
        const tr_sequence *sequence = &plan->sequences[s];
        for (tr_axes group = 0; group < TR_AXES_SETS; group++) {
            digest->of_group[group] = add(digest->of_group[group], s);
        }
        digest->all = add(digest->all, s);
        for (size_t i = 0; i < sequence->count; i++) {
            add_step(plan, &sequence->steps[i], digest);
        }
    }
}

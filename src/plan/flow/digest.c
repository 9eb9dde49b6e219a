// What the ranks of a group must do alike, as one number.
#include "base/hash.h"
#include "plan/flow/work.h"

static uint64_t add(uint64_t hash, int64_t number) {
    return tr__hash_more(hash, &number, sizeof number);
}

uint64_t tr__exchange_hash(const tr_plan_step *step) {
    if (step->shape != TR_STEP_IS_EXCHANGE) {
        return 0;
    }
    const tr_exchange *e = &step->payload.exchange;
    const int64_t numbers[] = {e->kind,     e->type,       e->count,
                               e->shard,    e->part,       step->unit,
                               step->guard, step->segment, step->backward};
    return tr__hash_more(e->group, numbers, sizeof numbers);
}

static void add_step(const tr_plan_step *step, tr_plan_digest *digest) {
    uint64_t hash = tr__exchange_hash(step);
    if (hash != 0) {
        uint64_t *group = &digest->of_group[step->payload.exchange.group & TR_ON_ALL];
        *group = tr__hash_more(*group, &hash, sizeof hash);
        digest->all = tr__hash_more(digest->all, &hash, sizeof hash);
    }
}

void tr__plan_exchanges(const tr_plan *plan, tr_plan_digest *digest) {
    uint64_t begin = add(0, plan->request.sums);
    begin = add(begin, plan->statistics.doubles);
    begin = add(begin, plan->request.hierarchical ? plan->request.node_ranks : 0);
    *digest = (tr_plan_digest){.all = add(begin, plan->norms.parts)};
    for (tr_axes group = 0; group <= TR_ON_ALL; group++) {
        digest->of_group[group] = begin;
    }
    for (int s = 0; s < TR_SEQUENCES; s++) {
        const tr_sequence *sequence = &plan->sequences[s];
        for (tr_axes group = 0; group <= TR_ON_ALL; group++) {
            digest->of_group[group] = add(digest->of_group[group], s);
        }
        digest->all = add(digest->all, s);
        for (size_t i = 0; i < sequence->count; i++) {
            add_step(&sequence->steps[i], digest);
        }
    }
}

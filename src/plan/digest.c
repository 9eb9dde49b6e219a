// What all ranks must do alike, as one number.
#include "base/hash.h"
#include "plan/moves.h"

static uint64_t add(uint64_t hash, int64_t number) {
    return tr__hash_more(hash, &number, sizeof number);
}

static uint64_t add_step(uint64_t hash, const tr_plan *plan, const tr_plan_step *step) {
    tr_exchange e;
    if (tr__step_exchange(plan, step, &e)) {
        const int64_t numbers[] = {e.kind,        e.type,        e.count,
                                   e.shard,       step->part,    step->unit,
                                   step->segment, step->backward};
        hash = tr__hash_more(hash, numbers, sizeof numbers);
    }
    return hash;
}

uint64_t tr__plan_exchanges(const tr_plan *plan) {
    uint64_t hash = add(0, plan->request.sums);
    hash = add(hash, plan->record.doubles);
    hash = add(hash, plan->norms.parts);
    for (int s = 0; s < TR_SEQUENCES; s++) {
        const tr_sequence *sequence = &plan->sequences[s];
        hash = add(hash, s);
        for (size_t i = 0; i < sequence->count; i++) {
            hash = add_step(hash, plan, &sequence->steps[i]);
        }
    }
    return hash;
}

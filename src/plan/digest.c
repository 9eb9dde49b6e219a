// What all ranks must do alike, as one number.
#include "base/hash.h"
#include "plan/plan.h"
#include "plan/wave.h"

static uint64_t add(uint64_t hash, int64_t number) {
    return tr__hash_more(hash, &number, sizeof number);
}

static uint64_t add_combine(uint64_t hash, const tr_plan *plan,
                            const tr_plan_step *step) {
    tr_wave_tensor tensor;
    size_t next = 0;
    while (tr__combine_next(plan, step, &next, &tensor)) {
        hash = add(hash, tensor.own ? 0 : tensor.bytes);
    }
    return hash;
}

static uint64_t add_step(uint64_t hash, const tr_plan *plan, const tr_plan_step *step) {
    hash = add(hash, step->kind);
    hash = add(hash, step->part);
    hash = add(hash, step->unit);
    if (step->kind == TR_STEP_combine) {
        return add_combine(hash, plan, step);
    }
    hash = add(hash, plan->flats[step->unit].count);
    return add(hash, plan->flats[step->unit].shard);
}

uint64_t tr__plan_exchanges(const tr_plan *plan) {
    uint64_t hash = add(0, plan->request.sums);
    hash = add(hash, plan->record.doubles);
    hash = add(hash, plan->norms.parts);
    for (int s = 0; s < TR_SEQUENCES; s++) {
        const tr_sequence *sequence = &plan->sequences[s];
        hash = add(hash, s);
        for (size_t i = 0; i < sequence->count; i++) {
            const tr_plan_step *step = &sequence->steps[i];
            if (step->stream == TR_STREAM_COMM || step->kind == TR_STEP_combine) {
                hash = add_step(hash, plan, step);
            }
        }
    }
    return hash;
}

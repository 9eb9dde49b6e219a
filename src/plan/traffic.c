// Pass: the record of a step, what is measured, and how many bytes a rank moves in it.
#include "base/checked.h"
#include "plan/work.h"

static void count_transfers(tr_plan *plan, const tr_plan_step *step) {
    tr_transfer transfers[TR_TRANSFERS_AT_ONCE];
    size_t next = 0;
    int count;
    while ((count = tr__step_transfers(plan, step, &next, transfers)) > 0) {
        for (int i = 0; i < count; i++) {
            int64_t sent = tr__transfer_sent(plan, &transfers[i]);
            bool gather = transfers[i].kind == TR_COMM_GATHER;
            *(gather ? &plan->traffic.gather : &plan->traffic.reduce) += sent;
        }
    }
}

static void count_step(tr_plan *plan, const tr_plan_step *step) {
    count_transfers(plan, step);
    tr_reach reach = tr__step_reach(plan, step);
    plan->traffic.device_host += tr__step_copied(plan, step);
    plan->traffic.reached += reach.read + reach.written;
    plan->traffic.nvme += tr__step_stored(plan, step);
}

// What every rank has of it, so that all have the same layout.
static void lay_record(tr_plan *plan) {
    int64_t blocks = 0;
    for (size_t f = 0; f < plan->flat_count; f++) {
        int64_t most = tr__min_i64(plan->flats[f].shard, plan->flats[f].count);
        blocks += tr__ceil_div(most, TR_SHARD_ELEMENTS);
    }
    plan->record.sums = TR_RECORD_FLAGS;
    plan->record.partials =
        plan->record.sums + plan->request.accumulation_steps * TR_SUMS;
    plan->record.doubles = plan->record.partials + blocks;
}

static void lay_norms(tr_plan *plan) {
    int64_t parts = 0;
    for (size_t f = 0; f < plan->flat_count; f++) {
        tr_flat *flat = &plan->flats[f];
        int64_t most = tr__min_i64(tr__update_shard(plan, flat), flat->count);
        flat->parts = parts;
        parts += tr__ceil_div(most, TR_SHARD_ELEMENTS);
        for (size_t i = 0; i < plan->param_count; i++) {
            parts += plan->params[i].flat == (int)f;
        }
    }
    plan->norms.parts = parts;
}

tr_status tr__pass_traffic(tr_plan *plan, tr_error *err) {
    const tr_sequence *train = &plan->sequences[TR_SEQUENCE_TRAIN];
    (void)err;
    if (!plan->request.inference) {
        lay_record(plan);
    }
    if (plan->request.tensor_norms) {
        lay_norms(plan);
    }
    // What may be done in one of two places is counted in the second.
    for (size_t i = 0; i < train->count; i++) {
        if (train->steps[i].guard != TR_GUARD_DEFERRED) {
            count_step(plan, &train->steps[i]);
        }
    }
    return TR_OK;
}

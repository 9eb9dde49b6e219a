// Pass: the statistics of a step, what is measured, and how many bytes a rank moves in
// a step.
#include "base/checked.h"
#include "base/memory.h"
#include "ops/optimizer_measure.h"
#include "plan/passes.h"
#include "plan/work.h"

static void count_transfer(tr_plan *plan, const tr_plan_step *step) {
    tr_transfer transfer;
    if (tr__step_transfer(plan, step, &transfer)) {
        bool gather = transfer.kind == TR_COMM_GATHER;
        *(gather ? &plan->traffic.gather : &plan->traffic.reduce) +=
            tr__transfer_sent(&transfer);
    }
}

static void count_step(tr_plan *plan, const tr_plan_step *step) {
    count_transfer(plan, step);
    tr_reach reach = tr__step_reach(plan, step);
    plan->traffic.device_host += tr__step_copied(plan, step);
    plan->traffic.reached += reach.read + reach.written;
    plan->traffic.nvme += tr__step_stored(plan, step);
}

// What every rank has of it, so that all have the same layout.
static void lay_statistics(tr_plan *plan) {
    int64_t blocks = 0;
    for (size_t f = 0; f < plan->flat_count; f++) {
        int64_t most = tr__min_i64(plan->flats[f].shard, plan->flats[f].count);
        plan->flats[f].squares = blocks;
        blocks += plan->flats[f].frozen ? 0 : tr__ceil_div(most, TR_SHARD_ELEMENTS);
    }
    plan->statistics.sums = TR_STATISTICS_FLAGS;
    plan->statistics.partials =
        plan->statistics.sums + plan->request.accumulation_steps * TR_SUMS;
    plan->statistics.doubles = plan->statistics.partials + blocks;
}

// The parts of a parameter are one run, but where its blocks go on on another rank.
static bool add_runs(tr_plan *plan, const tr_plan_param *param, size_t *capacity) {
    tr_norms_layout *norms = &plan->norms;
    int64_t first = param->offset / TR_SHARD_ELEMENTS;
    int64_t blocks = tr__measure_parts(param->offset, param->count);
    for (int64_t b = first; b < first + blocks; b++) {
        int64_t part = tr__norms_part(plan, param, b);
        tr_parts_run *last =
            norms->run_count ? &norms->runs[norms->run_count - 1] : NULL;
        if (last && b > first && part == last->first + last->count) {
            last->count++;
            continue;
        }
        if (!tr__grow((void **)&norms->runs, capacity, (size_t)norms->run_count + 1,
                      sizeof *norms->runs)) {
            return false;
        }
        norms->runs[norms->run_count++] = (tr_parts_run){part, 1, param->tensor};
    }
    return true;
}

static tr_status lay_norms(tr_plan *plan, tr_error *err) {
    size_t capacity = 0;
    bool there = true;
    for (size_t f = 0; f < plan->flat_count; f++) {
        plan->flats[f].parts = plan->norms.parts;
        plan->norms.parts += tr__norms_parts(plan, &plan->flats[f]);
    }
    for (size_t i = 0; i < plan->param_count && there; i++) {
        bool frozen = plan->flats[plan->params[i].flat].frozen;
        there = frozen || add_runs(plan, &plan->params[i], &capacity);
    }
    return there ? TR_OK
                 : tr_fail(err, TR_MEMORY, "no memory for the norms of tensors");
}

tr_status tr__pass_traffic(tr_plan *plan, tr_error *err) {
    const tr_sequence *train = &plan->sequences[TR_SEQUENCE_TRAIN];
    tr_status status = TR_OK;
    if (!plan->request.inference) {
        lay_statistics(plan);
    }
    if (plan->request.tensor_norms) {
        status = lay_norms(plan, err);
    }
    // What may be done in one of two places is counted in the second.
    for (size_t i = 0; i < train->count; i++) {
        if (train->steps[i].guard != TR_GUARD_DEFERRED) {
            count_step(plan, &train->steps[i]);
        }
    }
    return status;
}

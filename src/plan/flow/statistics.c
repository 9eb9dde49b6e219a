// Pass: where the statistics of a step lie, and the norms of tensors in what ranks
// measure.
#include "plan/flow/statistics.h"

#include "base/checked.h"
#include "base/memory.h"
#include "ops/optimizers/optimizer_measure.h"
#include "plan/flow/passes.h"

int64_t tr__norms_ranks(const tr_plan *plan) {
    return tr__plan_stage(plan) > 0 ? tr__data_ranks(&plan->request) : 1;
}

tr_space tr__norms_space(const tr_plan *plan) {
    bool here = plan->request.optimizer_placement == TR_SPACE_DEVICE;
    return here ? TR_SPACE_DEVICE : tr__plan_shared_space(plan);
}

int64_t tr__norms_parts(const tr_plan *plan, const tr_flat *flat) {
    if (flat->frozen) {
        return 0;
    }
    int64_t most = tr__min_i64(tr__update_shard(plan, flat), flat->all);
    return tr__ceil_div(most, TR_SHARD_ELEMENTS) + flat->param_count;
}

int64_t tr__norms_part(const tr_plan *plan, const tr_plan_param *param, int64_t block) {
    const tr_flat *flat = &plan->flats[param->flat];
    int64_t shard = tr__update_shard(plan, flat);
    int64_t rank = block * TR_SHARD_ELEMENTS / shard;
    int64_t within = block - rank * shard / TR_SHARD_ELEMENTS;
    return rank * plan->norms.parts + flat->parts + within + param->place;
}

// ---- layouts

// What every rank has of it, so that all have the same layout.
static void lay_statistics(tr_plan *plan) {
    int64_t blocks = 0;
    for (size_t f = 0; f < plan->flat_count; f++) {
        int64_t most = tr__min_i64(plan->flats[f].shard, plan->flats[f].all);
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

tr_status tr__pass_statistics(tr_plan *plan, tr_error *err) {
    if (!plan->request.inference) {
        lay_statistics(plan);
    }
    return plan->request.tensor_norms ? lay_norms(plan, err) : TR_OK;
}

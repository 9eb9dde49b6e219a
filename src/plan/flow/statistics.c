// Pass: where the statistics of a step lie, and what is measured for the norms of
// tensors.
#include "plan/flow/statistics.h"

#include "base/checked.h"
#include "base/memory.h"
#include "ops/optimizers/optimizer_measure.h"
#include "plan/flow/passes.h"

tr_axes tr__norms_group(const tr_plan *plan) {
    const tr_mesh *mesh = &plan->request.mesh;
    bool shards = tr__plan_stage(plan) > 0 && mesh->size[TR_AXIS_DATA] > 1;
    return (shards ? TR_ON_DATA : 0) |
           (mesh->size[TR_AXIS_TENSOR] > 1 ? TR_ON_TENSOR : 0);
}

void tr__norms_range(const tr_plan *plan, const tr_flat *flat, int64_t *first,
                     int64_t *end) {
    bool shards = tr__plan_stage(plan) > 0;
    *first = shards ? flat->first : 0;
    *end = shards ? flat->first + flat->own : flat->count;
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

// ---- layouts

// Every rank has as much, so that all have the same layout.
static tr_status lay_statistics(tr_plan *plan, tr_error *err) {
    tr_statistics_layout *layout = &plan->statistics;
    layout->runs = tr__calloc(plan->flat_count, sizeof *layout->runs);
    if (!layout->runs) {
        return tr_fail(err, TR_MEMORY, "no memory for a step's statistics");
    }
    for (size_t f = 0; f < plan->flat_count; f++) {
        tr_flat *flat = &plan->flats[f];
        int64_t most = tr__min_i64(flat->shard, flat->all);
        bool owns = tr__owns(&flat->axes, &plan->request.mesh) && !flat->frozen;
        flat->squares = layout->blocks;
        layout->blocks += flat->frozen ? 0 : tr__ceil_div(most, TR_SHARD_ELEMENTS);
        layout->runs[f] = (tr_parts_run){
            flat->squares, owns ? tr__ceil_div(flat->own, TR_SHARD_ELEMENTS) : 0,
            TR_NORM_UNMEASURED};
    }
    layout->sums = TR_STATISTICS_FLAGS;
    layout->norm = layout->sums + plan->request.accumulation_steps * TR_SUMS;
    layout->doubles = layout->norm + TR_NORM_SUMS * TR_EXACT_WORDS;
    return TR_OK;
}

void tr__statistics_measured(tr_plan *plan) {
    for (size_t f = 0; f < plan->flat_count; f++) {
        const tr_flat *flat = &plan->flats[f];
        plan->statistics.runs[f].total = !flat->measured ? TR_NORM_UNMEASURED
                                         : flat->tied    ? TR_NORM_TIED
                                                         : TR_NORM_UNTIED;
    }
}

// What lies on several ranks alike goes in once. The parts of a parameter follow each
// other.
static void add_run(tr_plan *plan, const tr_plan_param *param) {
    const tr_flat *flat = &plan->flats[param->flat];
    int64_t first, end, begin;
    tr__norms_range(plan, flat, &begin, &end);
    first = tr__max_i64(begin, param->offset);
    end = tr__min_i64(end, param->offset + param->count);
    if (!flat->frozen && tr__owns_of_stage(&flat->axes, &plan->request.mesh) &&
        first < end) {
        int64_t block = first / TR_SHARD_ELEMENTS - begin / TR_SHARD_ELEMENTS;
        plan->norms.runs[plan->norms.run_count++] =
            (tr_parts_run){flat->parts + block + param->place,
                           tr__measure_parts(first, end - first), param->tensor};
    }
}

static tr_status lay_norms(tr_plan *plan, tr_error *err) {
    plan->norms.runs = tr__calloc(plan->param_count, sizeof *plan->norms.runs);
    if (!plan->norms.runs) {
        return tr_fail(err, TR_MEMORY, "no memory for the norms of tensors");
    }
    for (size_t f = 0; f < plan->flat_count; f++) {
        plan->flats[f].parts = plan->norms.parts;
        plan->norms.parts += tr__norms_parts(plan, &plan->flats[f]);
    }
    for (size_t i = 0; i < plan->param_count; i++) {
        add_run(plan, &plan->params[i]);
    }
    return TR_OK;
}

tr_status tr__pass_statistics(tr_plan *plan, tr_error *err) {
    tr_status status = plan->request.inference ? TR_OK : lay_statistics(plan, err);
    return status == TR_OK && plan->request.tensor_norms ? lay_norms(plan, err)
                                                         : status;
}

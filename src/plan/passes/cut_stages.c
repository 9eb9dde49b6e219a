// Pass: which units each chunk of the model has that a stage of the pipeline runs, and
// how long a micro-batch takes in it. Chunks, and so stages, take about equal time, by
// the arithmetic of their units' forwards and backwards: the plan knows no machine.
#include "base/checked.h"
#include "base/memory.h"
#include "plan/flow/passes.h"
#include "plan/schedules/schedule.h"

static double flops_of(const tr_unit_program *unit, tr_variant variant, bool weights) {
    double flops = 0;
    for (int i = 0; i < tr__unit_pieces(unit, variant); i++) {
        const tr_program *piece = tr__unit_piece(unit, variant, i);
        flops += piece->weights == weights ? piece->cost.flops : 0;
    }
    return flops;
}

// Kernels whose cost nobody knows make all units alike.
double tr__unit_cost(const tr_unit_program *unit, tr_variant variant) {
    return 1 + flops_of(unit, variant, false) + flops_of(unit, variant, true);
}

// The costs [TR_TURN_KINDS][units] of the units' programs, by the turns that run them.
// A forward is there once, whatever it keeps; and again in the backward where it is
// recomputed.
static void take_costs(const tr_plan *plan, double *cost) {
    double *back = cost + TR_TURN_BACKWARD * plan->unit_count;
    double *later = cost + TR_TURN_WEIGHTS * plan->unit_count;
    for (int u = 0; u < plan->unit_count; u++) {
        const tr_unit_program *unit = plan->units[u].program;
        bool again = u < plan->request.recomputed_units;
        later[u] = flops_of(unit, TR_VARIANT_BACKWARD, true);
        cost[u] = tr__unit_cost(unit, TR_VARIANT_FORWARD);
        back[u] =
            tr__unit_cost(unit, TR_VARIANT_BACKWARD) - later[u] + (again ? cost[u] : 0);
    }
    int last = plan->unit_count - 1; // which turns each micro-batch around at once
    cost[last] += back[last];
    back[last] = 0;
}

// Ranks that share a tensor in unequal parts have unequal costs, and all stages must
// cut alike: those of the first rank of the tensor axis count.
static tr_status cost_units(const tr_plan *plan, double *cost, tr_error *err) {
    const tr_mesh *mesh = &plan->request.mesh;
    if (mesh->size[TR_AXIS_PIPELINE] == 1 || mesh->at[TR_AXIS_TENSOR] == 0 ||
        plan->request.tensor_ranks_alike) {
        take_costs(plan, cost);
        return TR_OK;
    }
    tr_plan first = *plan;
    first.units = NULL;
    first.request.mesh.at[TR_AXIS_TENSOR] = 0;
    tr_status status = tr__pass_compile(&first, err);
    if (status == TR_OK) {
        take_costs(&first, cost);
    }
    tr__plan_destroy_programs(&first);
    tr__free(first.units);
    return status;
}

// Every part of the model has a unit at least.
static tr_status check_chunks(const tr_plan *plan, tr_error *err) {
    const tr_plan_request *r = &plan->request;
    int64_t stages = r->mesh.size[TR_AXIS_PIPELINE],
            each = tr__max_i64(r->virtual_stages, 1);
    const tr_pipeline_schedule *schedule = tr__pipeline_schedule(r->pipeline_order);
    if (!schedule) {
        return tr_fail(err, TR_USAGE, "the request names no schedule of a pipeline");
    }
    if (stages > 1 &&
        (each < schedule->least || (schedule->most > 0 && each > schedule->most))) {
        return tr_fail(err, TR_USAGE,
                       "pipeline.schedule \"%s\" goes with %s%lld virtual stages, and "
                       "pipeline.virtual_stages is %lld",
                       tr__pipeline_names[r->pipeline_order],
                       schedule->most > 0 ? "" : "at least ",
                       (long long)schedule->least, (long long)each);
    }
    if (stages > r->model->unit_count) {
        return tr_fail(err, TR_USAGE,
                       "pipeline.stages is %lld, and the model has %d units: use as "
                       "many stages at most",
                       (long long)stages, r->model->unit_count);
    }
    return stages * each > r->model->unit_count
               ? tr_fail(err, TR_USAGE,
                         "pipeline.virtual_stages is %lld on each of %lld stages, and "
                         "the model has %d units: set it to %lld at most",
                         (long long)each, (long long)stages, r->model->unit_count,
                         (long long)(r->model->unit_count / stages))
               : TR_OK;
}

static void fill_chunks(tr_plan *plan, const double *cost) {
    int chunks = tr__chunk_count(&plan->chunks);
    for (int c = 0; c < chunks; c++) {
        for (int u = plan->chunk_first[c]; u < plan->chunk_first[c + 1]; u++) {
            plan->units[u].chunk = c;
        }
    }
    tr__turns_take(cost, plan->unit_count, plan->chunk_first, chunks,
                   plan->chunk_takes);
}

tr_status tr__pass_cut_stages(tr_plan *plan, tr_error *err) {
    tr_status allowed = check_chunks(plan, err);
    if (allowed != TR_OK) {
        return allowed;
    }
    plan->chunks = tr__pipeline_chunks(&plan->request);
    int chunks = tr__chunk_count(&plan->chunks), units = plan->unit_count;
    double *cost = tr__calloc((TR_TURN_KINDS + 1) * (size_t)units, sizeof *cost);
    double *all = cost + TR_TURN_KINDS * (size_t)units;
    plan->chunk_first = tr__calloc((size_t)chunks + 1, sizeof *plan->chunk_first);
    plan->chunk_takes =
        tr__calloc(TR_TURN_KINDS * (size_t)chunks, sizeof *plan->chunk_takes);
    tr_status status = cost && plan->chunk_first && plan->chunk_takes
                           ? TR_OK
                           : tr_fail(err, TR_MEMORY, "no memory to cut a pipeline");
    status = status == TR_OK ? cost_units(plan, cost, err) : status;
    for (int u = 0; u < units && status == TR_OK; u++) {
        all[u] = cost[u] + cost[TR_TURN_BACKWARD * units + u] +
                 cost[TR_TURN_WEIGHTS * units + u];
    }
    if (status == TR_OK) {
        status = tr__cut_units(all, units, chunks, plan->chunk_first, err);
    }
    if (status == TR_OK) {
        fill_chunks(plan, cost);
    }
    tr__free(cost);
    return status;
}

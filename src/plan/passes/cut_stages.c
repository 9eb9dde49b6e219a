// Pass: which units each stage of a pipeline runs. Stages take about equal time, by the
// arithmetic of their units' forwards and backwards: the plan knows no machine.
#include "base/memory.h"
#include "plan/flow/passes.h"
#include "plan/flow/stages.h"

// A forward is there once, whatever it keeps.
static const tr_variant counted[] = {TR_VARIANT_FORWARD, TR_VARIANT_BACKWARD};

static double cost_of(const tr_unit_program *unit) {
    double flops = 1; // kernels whose cost nobody knows make all units alike
    for (size_t v = 0; v < sizeof counted / sizeof *counted; v++) {
        for (int i = 0; i < tr__unit_pieces(unit, counted[v]); i++) {
            flops += tr__unit_piece(unit, counted[v], i)->cost.flops;
        }
    }
    return flops;
}

// The costs [unit_count] of the units' programs.
static void take_costs(const tr_plan *plan, double *cost) {
    for (int u = 0; u < plan->unit_count; u++) {
        cost[u] = cost_of(plan->units[u].program);
    }
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

tr_status tr__pass_cut_stages(tr_plan *plan, tr_error *err) {
    const tr_mesh *mesh = &plan->request.mesh;
    int stages = (int)mesh->size[TR_AXIS_PIPELINE],
        stage = (int)mesh->at[TR_AXIS_PIPELINE];
    double *cost = tr__calloc((size_t)plan->unit_count, sizeof *cost);
    plan->stage_first = tr__calloc((size_t)stages + 1, sizeof *plan->stage_first);
    tr_status status = cost && plan->stage_first
                           ? TR_OK
                           : tr_fail(err, TR_MEMORY, "no memory to cut a pipeline");
    status = status == TR_OK ? cost_units(plan, cost, err) : status;
    if (status == TR_OK) {
        status = tr__cut_stages(cost, plan->unit_count, stages, plan->stage_first, err);
    }
    if (status == TR_OK) {
        plan->runs =
            (tr_unit_range){plan->stage_first[stage], plan->stage_first[stage + 1]};
    }
    tr__free(cost);
    return status;
}

// What others ask of a plan.
#include "plan/flow/plan.h"

#include "backend/backend.h"
#include "base/checked.h"
#include "base/memory.h"

int tr__plan_buffer(tr_plan *plan, tr_buffer buffer, tr_error *err) {
    if (!tr__grow((void **)&plan->buffers, &plan->buffer_capacity,
                  plan->buffer_count + 1, sizeof *plan->buffers)) {
        tr_fail(err, TR_MEMORY, "no memory for the plan's buffers");
        return -1;
    }
    plan->buffers[plan->buffer_count] = buffer;
    return (int)plan->buffer_count++;
}

tr_status tr__plan_operand(tr_plan *plan, tr_step_operand operand, tr_error *err) {
    if (!tr__grow((void **)&plan->operands, &plan->operand_capacity,
                  plan->operand_count + 1, sizeof *plan->operands)) {
        return tr_fail(err, TR_MEMORY, "no memory for the plan's operands");
    }
    plan->operands[plan->operand_count++] = operand;
    return TR_OK;
}

tr_space tr__plan_shared_space(const tr_plan *plan) {
    return plan->request.discrete ? TR_SPACE_HOST : TR_SPACE_DEVICE;
}

int64_t tr__plan_rounds(const tr_plan *plan) {
    return plan->request.passes > 1 ? 3 : 1;
}

int64_t tr__plan_stage_of(const tr_plan *plan, int unit) {
    return tr__chunk_stage(&plan->chunks, plan->units[unit].chunk);
}

int64_t tr__plan_last_stage(const tr_plan *plan) {
    return tr__plan_stage_of(plan, plan->unit_count - 1);
}

bool tr__plan_runs(const tr_plan *plan, int unit) {
    return unit >= 0 && unit < plan->unit_count &&
           tr__plan_stage_of(plan, unit) == plan->request.mesh.at[TR_AXIS_PIPELINE];
}

int tr__plan_next(const tr_plan *plan, int unit) {
    while (unit < plan->unit_count && !tr__plan_runs(plan, unit)) {
        unit++;
    }
    return unit;
}

bool tr__plan_unit_receives(const tr_plan *plan, int unit) {
    return unit > 0 &&
           tr__plan_stage_of(plan, unit - 1) != tr__plan_stage_of(plan, unit);
}

bool tr__plan_unit_sends(const tr_plan *plan, int unit) {
    return unit + 1 < plan->unit_count && tr__plan_unit_receives(plan, unit + 1);
}

int tr__plan_lowest(const tr_plan *plan) {
    int unit = tr__plan_next(plan, 0);
    while (unit < plan->unit_count &&
           !tr__unit_has_backward(plan->units[unit].program)) {
        unit = tr__plan_next(plan, unit + 1);
    }
    return unit < plan->unit_count ? unit : -1;
}

int64_t tr__data_ranks(const tr_plan_request *request) {
    return request->mesh.size[TR_AXIS_DATA];
}

int64_t tr__data_rank(const tr_plan_request *request) {
    return request->mesh.at[TR_AXIS_DATA];
}

bool tr__has_stages(const tr_plan_request *request) {
    return request->mesh.size[TR_AXIS_PIPELINE] > 1;
}

int64_t tr__plan_nodes(const tr_plan *plan) {
    const tr_plan_request *r = &plan->request;
    return r->node_ranks > 0 ? tr__ceil_div(tr_mesh_ranks(&r->mesh), r->node_ranks) : 1;
}

tr_comm_room tr__plan_room(const tr_plan *plan) {
    const tr_plan_request *r = &plan->request;
    return (tr_comm_room){
        .ranks = tr_mesh_ranks(&r->mesh),
        .node_ranks = r->node_ranks,
        .by_nodes = r->hierarchical && tr__mesh_has_nodes(&r->mesh, r->node_ranks),
        .pipeline = tr__has_stages(r),
        .tensor = !r->peers && r->mesh.size[TR_AXIS_TENSOR] > 1,
        .chunks = r->reduced_at_once,
        .ferries = !r->peers && tr__backend_is_apart(tr__backend(r->backend))};
}

bool tr__plan_exchanges_inside(const tr_plan *plan) {
    bool some = false;
    for (int u = 0; u < plan->unit_count; u++) {
        some = some ||
               (plan->units[u].program && tr__unit_exchanges(plan->units[u].program));
    }
    return some;
}

int64_t tr__plan_micros(const tr_plan *plan, tr_sequence_kind kind) {
    return kind == TR_SEQUENCE_TRAIN      ? plan->request.accumulation_steps
           : kind == TR_SEQUENCE_EVALUATE ? plan->evaluated
                                          : 1;
}

int tr__plan_stage(const tr_plan *plan) {
    return tr__data_ranks(&plan->request) > 1 ? plan->request.stage : 0;
}

const tr_ledger *tr_plan_ledger(const tr_plan *plan) {
    return plan ? &plan->ledger : NULL;
}

double tr_plan_flops(const tr_plan *plan) {
    return plan ? plan->flops : 0;
}

// Those of all owners, whose parts need not be equal.
static int64_t elements_of(const tr_plan *plan, const tr_plan_param *param) {
    const tr_flat *flat = &plan->flats[param->flat];
    int64_t whole = tr_shape_count(param->stored_shape);
    int64_t own = param->quantized ? whole : param->count;
    return flat->split ? whole
                       : own * tr__mesh_members(&plan->request.mesh, flat->axes.split);
}

int64_t tr_plan_parameters(const tr_plan *plan) {
    int64_t count = 0;
    for (size_t i = 0; plan && i < plan->param_count; i++) {
        count += elements_of(plan, &plan->params[i]);
    }
    return count;
}

int64_t tr_plan_trained(const tr_plan *plan) {
    int64_t count = 0;
    for (size_t i = 0; plan && i < plan->param_count; i++) {
        const tr_plan_param *param = &plan->params[i];
        count += plan->flats[param->flat].frozen ? 0 : elements_of(plan, param);
    }
    return count;
}

#include "plan/work.h"

#include "backend/backend.h"

enum { F32 = sizeof(float) };

// ---- memory

// As it is launched: an op that may be asked to add, but writes here, reads less.
static double launch_bytes(const tr_plan *plan, const tr_op_launch *launch) {
    const tr_prepared_op *op = &plan->prepared[launch->op];
    tr_op_desc desc = op->desc;
    tr_cost cost = {0};
    for (int i = 0; i < desc.out_count; i++) {
        const tr_step_operand *out =
            &plan->operands[launch->operand + (size_t)(desc.in_count + i)];
        desc.accumulate &= ~((uint32_t)(out->mode == TR_ACCESS_WRITE) << i);
    }
    if (op->kernel) { // else the plan is refused (kernels.c)
        op->kernel->cost(&desc, &cost);
    }
    return cost.bytes;
}

double tr__step_bytes(const tr_plan *plan, const tr_plan_step *step) {
    double bytes = 0;
    if (step->shape != TR_STEP_IS_LAUNCH ||
        (step->kind == TR_STEP_clear && step->part == TR_PART_GRAD)) {
        return 0; // gaps between parameters are too small to count
    }
    for (size_t i = 0; i < step->payload.op_count; i++) {
        bytes += launch_bytes(plan, &plan->launches[step->payload.op + i]);
    }
    return bytes;
}

int64_t tr__step_copied(const tr_plan *plan, const tr_plan_step *step) {
    return step->shape == TR_STEP_IS_COPY
               ? tr__operand_bytes(tr__step_operand(plan, step, TR_COPY_TO))
               : 0;
}

// In 16 bits the masters are on the device, and what they are rounded to is written.
tr_reach tr__step_reach(const tr_plan *plan, const tr_plan_step *step) {
    const tr_plan_request *r = &plan->request;
    bool updates = step->kind == TR_STEP_update, half = tr__plan_is_half(plan);
    if (step->kind == TR_STEP_add && (r->discrete || step->stream == TR_STREAM_COMM)) {
        return (tr_reach){0, 0}; // all is where it is added
    }
    if (step->kind == TR_STEP_add) {
        int64_t count = plan->flats[step->unit].grad.count;
        return (tr_reach){0, count * tr__sum_bytes(plan)};
    }
    bool reads = !half && (updates || step->kind == TR_STEP_direction_norms);
    if (r->param_placement == TR_SPACE_DEVICE || !(reads || updates) ||
        plan->flats[step->unit].offloaded) {
        return (tr_reach){0, 0};
    }
    return (tr_reach){reads ? step->count * F32 : 0,
                      updates ? step->count * tr__param_bytes(plan) : 0};
}

int64_t tr__step_stored(const tr_plan *plan, const tr_plan_step *step) {
    return step->shape == TR_STEP_IS_FILE
               ? tr__operand_bytes(tr__step_operand(plan, step, TR_FILE_MEMORY))
               : 0;
}

// ---- messages

static bool is_on_device(const tr_plan *plan, const tr_step_operand *operand) {
    return operand->buffer >= 0 &&
           plan->buffers[operand->buffer].space == TR_SPACE_DEVICE;
}

bool tr__exchange_is_away(const tr_plan *plan, const tr_plan_step *step) {
    return !plan->request.peers &&
           tr__backend_is_apart(tr__backend(plan->request.backend)) &&
           (is_on_device(plan, tr__step_operand(plan, step, TR_EXCHANGE_SEND)) ||
            is_on_device(plan, tr__step_operand(plan, step, TR_EXCHANGE_RECEIVE)));
}

bool tr__step_transfer(const tr_plan *plan, const tr_plan_step *step,
                       tr_transfer *out) {
    const tr_exchange *e = &step->payload.exchange;
    const tr_mesh *mesh = &plan->request.mesh;
    if (step->shape != TR_STEP_IS_EXCHANGE) {
        return false;
    }
    *out = (tr_transfer){.kind = e->kind,
                         .count = e->count,
                         .shard = e->shard,
                         .bytes = (int64_t)tr__comm_type_bytes(e->type),
                         .away = tr__exchange_is_away(plan, step),
                         .members = tr__mesh_members(mesh, e->group),
                         .member = tr__mesh_member(mesh, e->group),
                         .stride = tr__mesh_stride(mesh, e->group)};
    return true;
}

int64_t tr__transfer_sent(const tr_transfer *t) {
    int64_t first = 0, own = 0;
    tr__comm_part(t->count, t->shard, (int)t->member, &first, &own);
    int64_t elements =
        t->kind == TR_COMM_GATHER ? (t->members - 1) * own : t->count - own;
    return elements * t->bytes;
}

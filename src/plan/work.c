#include "plan/work.h"

#include "base/checked.h"
#include "plan/flat_launch.h"
#include "plan/moves.h"

enum { F32 = sizeof(float) };

// ---- memory

double tr__step_bytes(const tr_plan *plan, const tr_plan_step *step) {
    tr_flat_launch launch;
    double bytes = 0;
    size_t next = 0;
    if (step->kind == TR_STEP_clear && step->part == TR_PART_GRAD) {
        return 0; // gaps between parameters are too small to count
    }
    while (tr__flat_launch_next(plan, step, &next, &launch)) {
        tr_cost cost = {0};
        if (launch.kernel) { // else the plan is refused (kernels.c)
            launch.kernel->cost(&launch.desc, &cost);
        }
        bytes += cost.bytes;
    }
    return bytes;
}

int64_t tr__step_copied(const tr_plan *plan, const tr_plan_step *step) {
    tr_copy copy;
    return tr__step_copy(plan, step, &copy) ? copy.to.end - copy.to.first : 0;
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
    tr_file_move move;
    return tr__step_file(plan, step, &move) ? move.memory.end - move.memory.first : 0;
}

// ---- messages

bool tr__step_transfer(const tr_plan *plan, const tr_plan_step *step,
                       tr_transfer *out) {
    tr_exchange e;
    bool exchanges = tr__step_exchange(plan, step, &e);
    if (exchanges) {
        const tr_mesh *mesh = &plan->request.mesh;
        *out = (tr_transfer){.kind = e.kind,
                             .count = e.count,
                             .shard = e.shard,
                             .bytes = (int64_t)tr__comm_type_bytes(e.type),
                             .away = tr__exchange_is_away(plan, &e),
                             .members = tr__mesh_members(mesh, e.group),
                             .member = tr__mesh_member(mesh, e.group),
                             .stride = tr__mesh_stride(mesh, e.group)};
    }
    return exchanges;
}

int64_t tr__transfer_sent(const tr_transfer *t) {
    int64_t first = 0, own = 0;
    tr__comm_part(t->count, t->shard, (int)t->member, &first, &own);
    int64_t elements =
        t->kind == TR_COMM_GATHER ? (t->members - 1) * own : t->count - own;
    return elements * t->bytes;
}

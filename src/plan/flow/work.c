#include "plan/flow/algorithm.h"

#include "backend/backend.h"
#include "base/checked.h"
#include "ops/flat/zero/zero.h"

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
    bool gap = desc.op == &tr__op_zero && desc.out[0].dtype == TR_F32;
    if (gap) { // between parameters: too small to count
        return 0;
    }
    if (op->kernel) { // else the plan is refused (kernels.c)
        op->kernel->cost(&desc, &cost);
    }
    return cost.bytes;
}

double tr__step_bytes(const tr_plan *plan, const tr_plan_step *step) {
    double bytes = 0;
    bool launches = step->shape == TR_STEP_IS_LAUNCH;
    for (size_t i = 0; launches && i < step->payload.op_count; i++) {
        bytes += launch_bytes(plan, &plan->launches[step->payload.op + i]);
    }
    return bytes;
}

int64_t tr__step_copied(const tr_plan *plan, const tr_plan_step *step) {
    return step->shape == TR_STEP_IS_COPY
               ? tr__operand_bytes(tr__step_operand(plan, step, TR_COPY_TO))
               : 0;
}

// Statistics and norms are too few to count.
static bool is_of_flat(const tr_buffer *buffer) {
    return buffer->category == TR_LEDGER_parameters ||
           buffer->category == TR_LEDGER_gradients ||
           buffer->category == TR_LEDGER_optimizer ||
           buffer->category == TR_LEDGER_staging;
}

tr_reach tr__step_reach(const tr_plan *plan, const tr_plan_step *step) {
    bool host = step->stream == TR_STREAM_HOST,
         ops = step->shape == TR_STEP_IS_LAUNCH && step->payload.op_count > 0;
    tr_space here = host ? TR_SPACE_HOST : TR_SPACE_DEVICE;
    tr_reach reach = {0, 0};
    for (size_t i = 0; ops && i < step->payload.operand_count; i++) {
        const tr_step_operand *at = tr__step_operand(plan, step, i);
        const tr_buffer *buffer = at->buffer < 0 ? NULL : &plan->buffers[at->buffer];
        if (!buffer || buffer->space == here || !is_of_flat(buffer)) {
            continue;
        }
        bool reads = at->mode != TR_ACCESS_WRITE, writes = at->mode != TR_ACCESS_READ;
        reach.read += (host ? writes : reads) ? tr__operand_bytes(at) : 0;
        reach.written += (host ? reads : writes) ? tr__operand_bytes(at) : 0;
    }
    return reach;
}

int64_t tr__step_stored(const tr_plan *plan, const tr_plan_step *step) {
    return step->shape == TR_STEP_IS_FILE
               ? tr__operand_bytes(tr__step_operand(plan, step, TR_FILE_MEMORY))
               : 0;
}

// ---- messages

tr_comm_type tr__exchange_type(tr_dtype dtype) {
    switch (dtype) {
    case TR_I64:
        return TR_COMM_I64;
    case TR_BF16:
        return TR_COMM_BF16;
    case TR_F16:
        return TR_COMM_F16;
    default:
        return TR_COMM_F32;
    }
}

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

bool tr__exchange_is_pair(const tr_exchange *exchange) {
    return exchange->from != exchange->to;
}

int64_t tr__exchange_members(const tr_plan *plan, const tr_exchange *e) {
    return tr__exchange_is_pair(e) ? 2
                                   : tr__mesh_members(&plan->request.mesh, e->group);
}

int64_t tr__exchange_member(const tr_plan *plan, const tr_exchange *e) {
    int64_t member = tr__mesh_member(&plan->request.mesh, e->group);
    return tr__exchange_is_pair(e) ? member == e->to : member;
}

// How far two members that follow each other are apart.
static int64_t stride_of(const tr_plan *plan, const tr_exchange *e) {
    const tr_mesh *mesh = &plan->request.mesh;
    int64_t apart = tr__mesh_rank_of(mesh, e->group, e->to) -
                    tr__mesh_rank_of(mesh, e->group, e->from);
    return !tr__exchange_is_pair(e) ? tr__mesh_stride(mesh, e->group)
           : apart < 0              ? -apart
                                    : apart;
}

// A sum of integers has the same bits in every order; others keep, in a reproducible
// run, the one that a run on any nodes has.
static bool rounds(const tr_exchange *e) {
    return e->kind == TR_COMM_REDUCE && e->type != TR_COMM_I64;
}

// Members that could exchange on their node first (tr_comm_op.near); 1: none.
static int64_t near_of(const tr_plan_request *r, const tr_exchange *e) {
    if (!r->hierarchical || tr__exchange_is_pair(e) || (r->reproducible && rounds(e))) {
        return 1;
    }
    int64_t near = tr__mesh_near(&r->mesh, e->group, r->node_ranks);
    return near < tr__mesh_members(&r->mesh, e->group) ? near : 1;
}

bool tr__step_transfer(const tr_plan *plan, const tr_plan_step *step,
                       tr_transfer *out) {
    const tr_exchange *e = &step->payload.exchange;
    const tr_mesh *mesh = &plan->request.mesh;
    if (step->shape != TR_STEP_IS_EXCHANGE) {
        return false;
    }
    *out = (tr_transfer){
        .kind = e->kind,
        .count = e->count,
        .shard = e->shard,
        .bytes = (int64_t)tr__comm_type_bytes(e->type),
        .away = tr__exchange_is_away(plan, step),
        .pair = tr__exchange_is_pair(e),
        .members = tr__exchange_members(plan, e),
        .member = tr__exchange_member(plan, e),
        .stride = stride_of(plan, e),
        .first = tr__mesh_rank_of(mesh, e->group, tr__min_i64(e->from, e->to)),
        .near = 1,
        .algorithm = TR_EXCHANGE_DIRECT,
        .node_ranks = plan->request.node_ranks};
    if (!tr__plan_has_queue(plan, step->stream)) {
        tr__algorithm_choose(&plan->request, rounds(e), near_of(&plan->request, e),
                             out);
    }
    return true;
}

// Elements of the parts of members [from, to).
static int64_t parts_of(const tr_transfer *t, int64_t from, int64_t to) {
    return tr__min_i64(t->count, to * t->shard) -
           tr__min_i64(t->count, from * t->shard);
}

static int64_t own_part(const tr_transfer *t) {
    return parts_of(t, t->member, t->member + 1);
}

// And of those in this member's place on their nodes.
static int64_t parts_in_place(const tr_transfer *t) {
    int64_t elements = 0;
    for (int64_t m = t->member % t->near; m < t->members; m += t->near) {
        elements += parts_of(t, m, m + 1);
    }
    return elements;
}

static bool is_in_rounds(const tr_transfer *t) {
    return t->algorithm == TR_EXCHANGE_RING || t->algorithm == TR_EXCHANGE_TREE;
}

// On its node, a member with near ones hands on what all of its place have.
int64_t tr__transfer_sent(const tr_transfer *t) {
    if (is_in_rounds(t)) {
        return tr__algorithm_sent(t);
    }
    int64_t elements = t->kind == TR_COMM_GATHER
                           ? (t->members / t->near - 1) * own_part(t) +
                                 (t->near - 1) * parts_in_place(t)
                           : t->count - own_part(t);
    return elements * t->bytes;
}

int64_t tr__transfer_between(const tr_transfer *t) {
    int64_t node = t->node_ranks, elements = 0;
    if (node == 0) {
        return 0;
    }
    if (is_in_rounds(t)) {
        return tr__algorithm_between(t);
    }
    if (t->near > 1) {
        elements = t->kind == TR_COMM_GATHER ? (t->members / t->near - 1) * own_part(t)
                                             : parts_in_place(t) - own_part(t);
        return elements * t->bytes;
    }
    int64_t begin = (t->first + t->member * t->stride) / node * node;
    int64_t from = tr__ceil_div(tr__max_i64(0, begin - t->first), t->stride);
    int64_t to = tr__ceil_div(begin + node - t->first, t->stride);
    to = tr__min_i64(to, t->members);
    elements = t->kind == TR_COMM_GATHER ? (t->members - (to - from)) * own_part(t)
                                         : t->count - parts_of(t, from, to);
    return elements * t->bytes;
}

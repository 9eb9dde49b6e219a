// Steps that the ranks of a group take together: by messages; or, in a queue of the
// device, by themselves.
#include "exec/walk.h"
#include "plan/flow/algorithm.h"

// A fault of a message comes up where somebody waits. In the data stream the walk does.
static tr_status start(const tr_work *work, const tr_plan_step *step,
                       const tr_comm_op *op) {
    const tr_executor *ex = work->ex;
    if (ex->queue[step->stream]) {
        return tr__peers_exchange(ex, step, op, work->err);
    }
    int64_t ticket = tr__comm_start(ex->comm, op);
    return step->stream == TR_STREAM_DATA
               ? tr__comm_wait(ex->comm, op->channel, ticket, work->err)
               : TR_OK;
}

// NULL: this rank's part of what is received.
static void *sent_from(const tr_executor *ex, const tr_plan_step *step) {
    return step->payload.exchange.in_place
               ? NULL
               : tr__operand_reached(
                     ex, tr__step_operand(ex->plan, step, TR_EXCHANGE_SEND));
}

tr_status tr__run_exchange(tr_work *work, const tr_plan_step *step) {
    const tr_executor *ex = work->ex;
    const tr_exchange *e = &step->payload.exchange;
    const tr_step_operand *recv = tr__step_operand(ex->plan, step, TR_EXCHANGE_RECEIVE);
    tr_transfer transfer = {0};
    tr__step_transfer(ex->plan, step, &transfer);
    tr_comm_op op = {.kind = e->kind,
                     .type = e->type,
                     .count = e->count,
                     .shard = e->shard,
                     .send = sent_from(ex, step),
                     .recv = tr__operand_reached(ex, recv),
                     .add = recv->mode == TR_ACCESS_ADD,
                     .channel = tr__stream_channel(step->stream),
                     .away = transfer.away,
                     .near = (int)transfer.near,
                     .algorithm = tr__algorithm_of_op(transfer.algorithm)};
    const tr_mesh *mesh = &ex->plan->request.mesh;
    tr_status status = TR_OK;
    if (tr__exchange_is_pair(e)) {
        op.group = tr__mesh_pair(mesh, e->group, e->from, e->to);
    } else {
        status = tr__mesh_group(mesh, e->group, &op.group, work->err);
    }
    return status == TR_OK ? start(work, step, &op) : status;
}

// ---- to memory that messages do not reach

static void ferry_copy(void *user, const void *from, void *to, int64_t bytes) {
    const tr_executor *ex = user;
    ex->backend->queues->copy(ex->ferry, from, to, bytes);
}

static int64_t ferry_mark(void *user) {
    const tr_executor *ex = user;
    return ex->backend->queues->mark(ex->ferry);
}

static tr_status ferry_look(void *user, int64_t ticket, bool *done, tr_error *err) {
    const tr_executor *ex = user;
    return ex->backend->queues->look(ex->ferry, ticket, done, err);
}

tr_status tr__exchange_ferry(tr_executor *ex, tr_error *err) {
    const tr_comm_ferry ferry = {ferry_copy, ferry_mark, ferry_look, ex};
    tr_status status = ex->backend->queues->create(1, &ex->ferry, err);
    if (status == TR_OK) {
        tr__comm_ferry(ex->comm, &ferry);
    }
    return status;
}

// Groups of ranks whose devices exchange by themselves (backend/peers.h).
#include "backend/peers.h"
#include "base/clock.h"
#include "base/memory.h"
#include "comm/alone.h"
#include "exec/walk.h"

// The axes of all groups in which a plan's ranks exchange what is on their devices.
static void find_groups(const tr_plan *plan, bool used[TR_AXES_SETS]) {
    for (int kind = 0; kind < TR_SEQUENCES; kind++) {
        const tr_sequence *sequence = &plan->sequences[kind];
        for (size_t i = 0; i < sequence->count; i++) {
            const tr_plan_step *step = &sequence->steps[i];
            if (step->shape == TR_STEP_IS_EXCHANGE && step->stream == TR_STREAM_COMM) {
                used[step->payload.exchange.group] = true;
            }
        }
    }
}

// Until all members have come, and the queue has what was put in; or never will.
static tr_status await_ready(const tr_executor *ex, tr_peers *peers, tr_error *err) {
    static const double most = 1e-3; // seconds
    double nap = 1e-5;
    bool ready = false;
    for (;;) {
        tr_status status = ex->backend->peers->look(peers, &ready, err);
        if (status == TR_OK && tr__comm_is_broken(ex->comm)) {
            return tr__comm_wait(ex->comm, TR_COMM_RANKS,
                                 tr__comm_newest(ex->comm, TR_COMM_RANKS), err);
        }
        if (status != TR_OK || ready) {
            return status;
        }
        tr__sleep(nap);
        nap = nap < most ? 2 * nap : most;
    }
}

typedef struct invitation {
    char bytes[TR_PEERS_INVITATION];
} invitation;

// Every rank tells what it has written; the first of a group has written for it.
static tr_status join(tr_executor *ex, tr_axes axes, invitation *all, tr_error *err) {
    const tr_peer_table *table = ex->backend->peers;
    const tr_mesh *mesh = &ex->plan->request.mesh;
    int members = (int)tr__mesh_members(mesh, axes);
    int member = (int)tr__mesh_member(mesh, axes);
    invitation own = {{0}};
    tr_error mine = {0};
    tr_status status = member == 0 ? table->invite(own.bytes, &mine) : TR_OK;
    status = tr__agree(ex->comm, status, &mine, err);
    if (status == TR_OK) {
        status = tr__comm_all_gather(ex->comm, &own, sizeof own, all, err);
    }
    if (status != TR_OK) {
        return status;
    }
    int64_t first = tr__mesh_rank_of(mesh, axes, 0);
    status = table->join(all[first].bytes, members, member, &ex->peers[axes], &mine);
    if (status == TR_OK) {
        status = await_ready(ex, ex->peers[axes], &mine);
    }
    return tr__agree(ex->comm, status, &mine, err);
}

static tr_status join_all(tr_executor *ex, tr_error *err) {
    bool used[TR_AXES_SETS] = {false};
    tr_error mine = {0};
    invitation *all = tr__calloc((size_t)tr_comm_ranks(ex->comm), sizeof *all);
    tr_status status =
        all ? TR_OK : tr_fail(&mine, TR_MEMORY, "no memory for the ranks' GPUs");
    status = tr__agree(ex->comm, status, &mine, err);
    find_groups(ex->plan, used);
    for (tr_axes axes = 1; axes < TR_AXES_SETS && status == TR_OK; axes++) {
        status = used[axes] ? join(ex, axes, all, err) : TR_OK;
    }
    tr__free(all);
    return status;
}

// ---- by the communication thread, beside the walk

static tr_status look_at_all(void *user, tr_error *err) {
    const tr_executor *ex = user;
    tr_status status = TR_OK;
    bool ready;
    for (tr_axes axes = 1; axes < TR_AXES_SETS && status == TR_OK; axes++) {
        if (ex->peers[axes]) {
            status = ex->backend->peers->look(ex->peers[axes], &ready, err);
        }
    }
    return status;
}

static void give_up_all(void *user) {
    const tr_executor *ex = user;
    for (tr_axes axes = 1; axes < TR_AXES_SETS; axes++) {
        if (ex->peers[axes]) {
            ex->backend->peers->give_up(ex->peers[axes]);
        }
    }
}

// ---- together

tr_status tr__executor_join(tr_executor *executor, tr_error *err) {
    const tr_comm_beside beside = {look_at_all, give_up_all, executor};
    if (!executor->comm || !executor->plan->request.peers) {
        return TR_OK;
    }
    tr_status status = join_all(executor, err);
    if (status == TR_OK) {
        tr__comm_beside(executor->comm, &beside);
    }
    return status;
}

void tr__peers_leave(tr_executor *ex) {
    if (!ex->comm || !ex->plan->request.peers) {
        return;
    }
    tr__comm_beside(ex->comm, NULL);
    if (tr__comm_is_broken(ex->comm)) {
        give_up_all(ex);
    }
    for (tr_axes axes = 1; axes < TR_AXES_SETS; axes++) {
        if (ex->peers[axes]) {
            ex->backend->peers->leave(ex->peers[axes]);
        }
    }
}

// The walk goes on when the queue has the exchange, done or not.
tr_status tr__peers_exchange(const tr_executor *ex, tr_axes axes, const tr_comm_op *op,
                             tr_error *err) {
    tr_device_queue *queue = ex->queue[TR_STREAM_COMM];
    tr_peers *peers = ex->peers[axes];
    if (!peers || op->add) {
        return tr_fail(err, TR_INTERNAL, "an exchange that no devices make");
    }
    ex->backend->peers->exchange(peers, queue, op);
    tr__comm_count_made(ex->comm, op);
    tr_status status = await_ready(ex, peers, err);
    if (status == TR_OK) {
        ex->backend->queues->mark(queue);
    }
    return status;
}

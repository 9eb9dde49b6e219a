// Groups of ranks whose devices exchange by themselves (backend/peers.h).
#include "backend/peers.h"
#include "base/clock.h"
#include "base/memory.h"
#include "comm/alone.h"
#include "exec/walk.h"

// The groups in which ranks exchange what is on their devices.
typedef struct groups {
    bool used[TR_STREAMS][TR_AXES_SETS]; // by axes
} groups;

static void find_own(const tr_plan *plan, groups *own) {
    for (int kind = 0; kind < TR_SEQUENCES; kind++) {
        const tr_sequence *sequence = &plan->sequences[kind];
        for (size_t i = 0; i < sequence->count; i++) {
            const tr_plan_step *step = &sequence->steps[i];
            if (step->shape == TR_STEP_IS_EXCHANGE &&
                tr__plan_by_devices(plan, step->stream)) {
                own->used[step->stream][step->payload.exchange.group] = true;
            }
        }
    }
}

// Those of any rank: stages of a pipeline have other exchanges, and all ranks join
// together. all: [ranks].
static tr_status find_groups(const tr_executor *ex, groups *all, groups *found,
                             tr_error *err) {
    groups own = {0};
    *found = (groups){0};
    find_own(ex->plan, &own);
    tr_status status = tr__comm_all_gather(ex->comm, &own, sizeof own, all, err);
    for (int r = 0; r < tr_comm_ranks(ex->comm) && status == TR_OK; r++) {
        for (int s = 0; s < TR_STREAMS; s++) {
            for (tr_axes axes = 1; axes < TR_AXES_SETS; axes++) {
                found->used[s][axes] = found->used[s][axes] || all[r].used[s][axes];
            }
        }
    }
    return status;
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
static tr_status join(tr_executor *ex, tr_axes axes, invitation *all, tr_peers **out,
                      tr_error *err) {
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
    status = table->join(all[first].bytes, members, member, out, &mine);
    if (status == TR_OK) {
        status = await_ready(ex, *out, &mine);
    }
    return tr__agree(ex->comm, status, &mine, err);
}

static tr_status join_all(tr_executor *ex, tr_error *err) {
    groups found;
    tr_error mine = {0};
    size_t ranks = (size_t)tr_comm_ranks(ex->comm);
    invitation *all = tr__calloc(ranks, sizeof *all);
    groups *used = tr__calloc(ranks, sizeof *used);
    tr_status status = all && used
                           ? TR_OK
                           : tr_fail(&mine, TR_MEMORY, "no memory for the ranks' GPUs");
    status = tr__agree(ex->comm, status, &mine, err);
    if (status == TR_OK) {
        status = find_groups(ex, used, &found, err);
    }
    for (int s = 0; s < TR_STREAMS; s++) {
        for (tr_axes axes = 1; axes < TR_AXES_SETS && status == TR_OK; axes++) {
            status = found.used[s][axes] ? join(ex, axes, all, &ex->peers[s][axes], err)
                                         : TR_OK;
        }
    }
    tr__free(all);
    tr__free(used);
    return status;
}

// The next group behind the one at `*at`, which is -1 before the first; NULL: none.
static tr_peers *next_of(const tr_executor *ex, int *at) {
    while (++*at < TR_STREAMS * TR_AXES_SETS) {
        tr_peers *peers = ex->peers[*at / TR_AXES_SETS][*at % TR_AXES_SETS];
        if (peers) {
            return peers;
        }
    }
    return NULL;
}

// ---- by the communication thread, beside the walk

static tr_status look_at_all(void *user, tr_error *err) {
    const tr_executor *ex = user;
    tr_status status = TR_OK;
    bool ready;
    tr_peers *peers;
    for (int at = -1; status == TR_OK && (peers = next_of(ex, &at)) != NULL;) {
        status = ex->backend->peers->look(peers, &ready, err);
    }
    return status;
}

static void give_up_all(void *user) {
    const tr_executor *ex = user;
    tr_peers *peers;
    for (int at = -1; (peers = next_of(ex, &at)) != NULL;) {
        ex->backend->peers->give_up(peers);
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
    tr_peers *peers;
    for (int at = -1; (peers = next_of(ex, &at)) != NULL;) {
        ex->backend->peers->leave(peers);
    }
}

// The walk goes on when the queue has the exchange, done or not.
tr_status tr__peers_exchange(const tr_executor *ex, const tr_plan_step *step,
                             const tr_comm_op *op, tr_error *err) {
    tr_device_queue *queue = ex->queue[step->stream];
    tr_peers *peers = ex->peers[step->stream][step->payload.exchange.group];
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

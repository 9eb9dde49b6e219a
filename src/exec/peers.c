// Groups of ranks whose devices exchange by themselves (backend/peers.h).
#include "backend/peers.h"
#include "base/clock.h"
#include "base/memory.h"
#include "comm/alone.h"
#include "exec/walk.h"

#include <string.h>

// The axes of all groups in which a plan's ranks exchange what is on their devices.
static void find_groups(const tr_plan *plan, bool used[TR_ON_ALL + 1]) {
    for (int kind = 0; kind < TR_SEQUENCES; kind++) {
        const tr_sequence *sequence = &plan->sequences[kind];
        for (size_t i = 0; i < sequence->count; i++) {
            tr_exchange e;
            if (tr__step_exchange(plan, &sequence->steps[i], &e) &&
                tr__exchange_is_away(plan, &e)) {
                used[e.group] = true;
            }
        }
    }
}

// Until all members have come, or one never will.
static tr_status await_members(tr_executor *ex, tr_peers *peers, tr_error *err) {
    static const double nap = 1e-3; // seconds
    bool all = false;
    tr_status status = TR_OK;
    while (status == TR_OK && !all) {
        status = ex->backend->peers->joined(peers, &all, err);
        if (status == TR_OK && tr__comm_is_broken(ex->comm)) {
            status = tr__comm_wait(ex->comm, tr__comm_newest(ex->comm), err);
        }
        tr__sleep(nap);
    }
    return status;
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
        status = await_members(ex, ex->peers[axes], &mine);
    }
    return tr__agree(ex->comm, status, &mine, err);
}

static tr_status join_all(tr_executor *ex, tr_error *err) {
    bool used[TR_ON_ALL + 1] = {false};
    tr_error mine = {0};
    invitation *all = tr__calloc((size_t)tr_comm_ranks(ex->comm), sizeof *all);
    tr_status status =
        all ? TR_OK : tr_fail(&mine, TR_MEMORY, "no memory for the ranks' GPUs");
    status = tr__agree(ex->comm, status, &mine, err);
    find_groups(ex->plan, used);
    for (tr_axes axes = 1; axes <= TR_ON_ALL && status == TR_OK; axes++) {
        status = used[axes] ? join(ex, axes, all, err) : TR_OK;
    }
    tr__free(all);
    return status;
}

tr_status tr__executor_join(tr_executor *executor, tr_error *err) {
    return executor->comm && executor->plan->request.peers ? join_all(executor, err)
                                                           : TR_OK;
}

void tr__peers_leave(tr_executor *ex) {
    for (tr_axes axes = 0; axes <= TR_ON_ALL; axes++) {
        if (ex->peers[axes]) {
            ex->backend->peers->leave(ex->peers[axes], tr__comm_is_broken(ex->comm));
        }
    }
}

// An exchange names its group by its ranks.
static tr_peers *peers_of(const tr_executor *ex, const tr_comm_group *ranks) {
    for (tr_axes axes = 1; axes <= TR_ON_ALL; axes++) {
        tr_comm_group group;
        if (ex->peers[axes] &&
            tr__mesh_group(&ex->plan->request.mesh, axes, &group, NULL) == TR_OK &&
            memcmp(&group, ranks, sizeof group) == 0) {
            return ex->peers[axes];
        }
    }
    return NULL;
}

// Sums are not added to anything by a device's exchange: messages carry those that are.
bool tr__peers_exchange(tr_executor *ex, const tr_comm_op *op) {
    tr_peers *peers = op->add ? NULL : peers_of(ex, &op->group);
    if (peers) {
        ex->backend->peers->exchange(peers, ex->ferry, op);
    }
    return peers != NULL;
}

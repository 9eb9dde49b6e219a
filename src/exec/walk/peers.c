// Groups of ranks whose devices exchange by themselves (backend/peers.h).
#include "backend/peers.h"
#include "base/clock.h"
#include "base/memory.h"
#include "comm/alone.h"
#include "exec/walk.h"
#include "plan/flow/work.h"

#include <stdlib.h>

static int compare_numbers(int64_t a, int64_t b) {
    return (a > b) - (a < b);
}

// All ranks that are in some of the same groups join these in the same order.
static int compare(const tr_peer_key *a, const tr_peer_key *b) {
    const int64_t by[][2] = {
        {a->stream, b->stream}, {a->axes, b->axes}, {a->from, b->from}, {a->to, b->to}};
    int order = 0;
    for (size_t i = 0; i < sizeof by / sizeof *by && order == 0; i++) {
        order = compare_numbers(by[i][0], by[i][1]);
    }
    return order;
}

static int compare_groups(const void *a, const void *b) {
    return compare(&((const tr_peer_group *)a)->key, &((const tr_peer_group *)b)->key);
}

// A queue never waits for what another one has begun in the same group.
static tr_peer_key key_of(const tr_plan_step *step) {
    const tr_exchange *e = &step->payload.exchange;
    bool receives = step->stream == TR_STREAM_RECEIVE;
    return (tr_peer_key){.stream = receives ? TR_STREAM_SEND : step->stream,
                         .axes = e->group,
                         .from = e->from,
                         .to = e->to};
}

static tr_peer_group *find_group(const tr_executor *ex, const tr_peer_key *key) {
    int i = 0;
    while (i < ex->peer_count && compare(&ex->peers[i].key, key) != 0) {
        i++;
    }
    return i < ex->peer_count ? &ex->peers[i] : NULL;
}

// Of an exchange of the plan's.
static bool add_group(tr_executor *ex, const tr_plan_step *step) {
    const tr_exchange *e = &step->payload.exchange;
    const tr_mesh *mesh = &ex->plan->request.mesh;
    tr_peer_key key = key_of(step);
    bool pair = tr__exchange_is_pair(e);
    if (find_group(ex, &key)) {
        return true;
    }
    if (!tr__grow((void **)&ex->peers, &ex->peer_room, (size_t)ex->peer_count + 1,
                  sizeof *ex->peers)) {
        return false;
    }
    ex->peers[ex->peer_count++] =
        (tr_peer_group){.key = key,
                        .first = tr__mesh_rank_of(mesh, e->group, pair ? e->from : 0),
                        .members = (int)tr__exchange_members(ex->plan, e),
                        .member = (int)tr__exchange_member(ex->plan, e)};
    return true;
}

// All in which a plan's ranks exchange what is on their devices.
static bool find_groups(tr_executor *ex) {
    bool good = true;
    for (int kind = 0; kind < TR_SEQUENCES; kind++) {
        const tr_sequence *sequence = &ex->plan->sequences[kind];
        for (size_t i = 0; i < sequence->count && good; i++) {
            const tr_plan_step *step = &sequence->steps[i];
            if (step->shape == TR_STEP_IS_EXCHANGE && ex->queue[step->stream]) {
                good = add_group(ex, step);
            }
        }
    }
    if (ex->peer_count > 1) {
        qsort(ex->peers, (size_t)ex->peer_count, sizeof *ex->peers, compare_groups);
    }
    return good;
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

// The first rank of a group has written it.
typedef struct invitation {
    bool written;
    tr_peer_key to;
    char bytes[TR_PEERS_INVITATION];
} invitation;

typedef struct invitations {
    int64_t most;          // of a rank
    invitation *own, *all; // [most], [ranks][most]
} invitations;

static tr_status write_own(const tr_executor *ex, invitations *of, tr_error *err) {
    tr_status status = TR_OK;
    for (int i = 0; i < ex->peer_count && status == TR_OK; i++) {
        const tr_peer_group *group = &ex->peers[i];
        if (group->member == 0) {
            of->own[i].written = true;
            of->own[i].to = group->key;
            status = ex->backend->peers->invite(of->own[i].bytes, err);
        }
    }
    return status;
}

// Every rank tells what it has written.
static tr_status invite(const tr_executor *ex, invitations *of, tr_error *err) {
    tr_error mine = {0};
    size_t most = (size_t)of->most + 1;
    of->own = tr__calloc(most, sizeof *of->own);
    of->all = tr__calloc(most * (size_t)tr_comm_ranks(ex->comm), sizeof *of->all);
    tr_status status = of->own && of->all
                           ? write_own(ex, of, &mine)
                           : tr_fail(&mine, TR_MEMORY, "no memory for the ranks' GPUs");
    status = tr__agree(ex->comm, status, &mine, err);
    return status == TR_OK
               ? tr__comm_all_gather(ex->comm, of->own,
                                     (size_t)of->most * sizeof *of->own, of->all, err)
               : status;
}

static tr_status join(const tr_executor *ex, tr_peer_group *group,
                      const invitations *of, tr_error *err) {
    const invitation *all = of->all + group->first * of->most;
    int64_t i = 0;
    while (i < of->most && !(all[i].written && compare(&all[i].to, &group->key) == 0)) {
        i++;
    }
    if (i == of->most) {
        return tr_fail(err, TR_INTERNAL, "nobody invites to a group of GPUs");
    }
    tr_status status = ex->backend->peers->join(all[i].bytes, group->members,
                                                group->member, &group->peers, err);
    return status == TR_OK ? await_ready(ex, group->peers, err) : status;
}

static tr_status join_all(tr_executor *ex, tr_error *err) {
    invitations of = {0};
    tr_error mine = {0};
    tr_status status = find_groups(ex)
                           ? TR_OK
                           : tr_fail(&mine, TR_MEMORY, "no memory for the ranks' GPUs");
    status = tr__agree(ex->comm, status, &mine, err);
    status = status == TR_OK ? tr_comm_most(ex->comm, ex->peer_count, &of.most, err)
                             : status;
    status = status == TR_OK ? invite(ex, &of, err) : status;
    if (status == TR_OK) {
        for (int i = 0; i < ex->peer_count && status == TR_OK; i++) {
            status = join(ex, &ex->peers[i], &of, &mine);
        }
        status = tr__agree(ex->comm, status, &mine, err);
    }
    tr__free(of.own);
    tr__free(of.all);
    return status;
}

// ---- by the communication thread, beside the walk

static tr_status look_at_all(void *user, tr_error *err) {
    const tr_executor *ex = user;
    tr_status status = TR_OK;
    bool ready;
    for (int i = 0; i < ex->peer_count && status == TR_OK; i++) {
        status = ex->backend->peers->look(ex->peers[i].peers, &ready, err);
    }
    return status;
}

static void give_up_all(void *user) {
    const tr_executor *ex = user;
    for (int i = 0; i < ex->peer_count; i++) {
        if (ex->peers[i].peers) {
            ex->backend->peers->give_up(ex->peers[i].peers);
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
    for (int i = 0; i < ex->peer_count; i++) {
        ex->backend->peers->leave(ex->peers[i].peers);
    }
    tr__free(ex->peers);
}

// The walk goes on when the queue has the exchange, done or not.
tr_status tr__peers_exchange(const tr_executor *ex, const tr_plan_step *step,
                             const tr_comm_op *op, tr_error *err) {
    tr_device_queue *queue = ex->queue[step->stream];
    tr_peer_key key = key_of(step);
    const tr_peer_group *group = find_group(ex, &key);
    if (!group || op->add) {
        return tr_fail(err, TR_INTERNAL, "an exchange that no devices make");
    }
    ex->backend->peers->exchange(group->peers, queue, op);
    tr__comm_count_made(ex->comm, op);
    tr_status status = await_ready(ex, group->peers, err);
    if (status == TR_OK) {
        ex->backend->queues->mark(queue);
    }
    return status;
}

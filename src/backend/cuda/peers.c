// Exchanges among the devices of several ranks, by NCCL. Members' parts may be of
// several sizes, so each is an operation of its own, with its member as the root; NCCL
// fuses them.
#include "backend/cuda/backend.h"
#include "backend/cuda/driver.h"
#include "base/memory.h"

// What NCCL takes for its channels and connections: estimated, until it is measured.
#define BESIDE ((int64_t)1 << 29)

struct tr_peers {
    void *peers; // the driver's
    int members, member;
    tr_cuda_exchange parts[]; // [members], of the exchange that is put in
};

static const char *missing(void) {
    const tr_cuda_driver *driver = tr__cuda_driver();
    const char *why = driver->missing();
    return why ? why : driver->peers_missing();
}

static tr_status fail(const char *what, int error, tr_error *err) {
    return tr_fail(err, TR_COMM,
                   "NCCL cannot %s: %s; NCCL_DEBUG=WARN in the environment has it say "
                   "more, and \"execution\": {\"exchange\": \"host\"} does without it",
                   what, tr__cuda_driver()->error_text(error));
}

static tr_status invite(void *invitation, tr_error *err) {
    int error = tr__cuda_driver()->peers_invite(invitation);
    return error == 0 ? TR_OK : fail("begin a group of GPUs", error, err);
}

static tr_status join(const void *invitation, int members, int member, tr_peers **out,
                      tr_error *err) {
    tr_peers *p = tr__calloc(1, sizeof *p + (size_t)members * sizeof *p->parts);
    *out = NULL;
    if (!p) {
        return tr_fail(err, TR_MEMORY, "no memory for a group of GPUs");
    }
    p->members = members;
    p->member = member;
    int error = tr__cuda_driver()->peers_join(invitation, members, member, &p->peers);
    if (error != 0) {
        tr__free(p);
        return fail("connect the ranks' GPUs", error, err);
    }
    *out = p;
    return TR_OK;
}

static tr_status joined(tr_peers *p, bool *all, tr_error *err) {
    bool busy = false;
    int error = tr__cuda_driver()->peers_state(p->peers, &busy);
    *all = !busy;
    return error == 0 ? TR_OK : fail("connect the ranks' GPUs", error, err);
}

// The part of one member: who has it or gets it, and where.
static tr_cuda_exchange part_of(const tr_peers *p, const tr_comm_op *op, int member) {
    int64_t size = (int64_t)tr__comm_type_bytes(op->type), first, count;
    tr__comm_part(op->count, op->shard, member, &first, &count);
    tr_cuda_exchange part = {.reduces = op->kind == TR_COMM_REDUCE,
                             .type = op->type,
                             .root = member,
                             .count = (size_t)count};
    bool own = member == p->member;
    char *place = (char *)op->recv + first * size;
    if (part.reduces) {
        part.from = (const char *)op->send + first * size;
        part.to = own ? op->recv : NULL;
    } else {
        part.from = !own ? NULL : op->send ? op->send : place;
        part.to = place;
    }
    return part;
}

static void exchange(tr_peers *p, tr_device_queue *queue, const tr_comm_op *op) {
    int count = 0;
    for (int m = 0; m < p->members; m++) {
        tr_cuda_exchange part = part_of(p, op, m);
        if (part.count > 0) {
            p->parts[count++] = part;
        }
    }
    int error = tr__cuda_driver()->peers_exchange(p->parts, count, p->peers,
                                                  tr__cuda_stream(queue));
    tr__cuda_queue_note(queue, "an exchange", error);
    tr__cuda_queue_exchange(queue, p->peers);
}

static void leave(tr_peers *p, bool broken) {
    if (p) {
        tr__cuda_driver()->peers_leave(p->peers, broken);
        tr__free(p);
    }
}

const tr_peer_table tr__cuda_peers = {
    .name = "NCCL",
    .beside = BESIDE,
    .missing = missing,
    .invite = invite,
    .join = join,
    .joined = joined,
    .exchange = exchange,
    .leave = leave,
};

// Exchanges among the devices of several ranks, by NCCL. Members' parts may be of
// several sizes, so each is an operation of its own, with its member as the root; NCCL
// fuses them. Messages between two members are sends and receives.
#include "backend/cuda/backend.h"
#include "backend/cuda/driver.h"
#include "base/memory.h"

#include <pthread.h>

// What NCCL takes for its channels and connections: estimated, until it is measured.
#define BESIDE ((int64_t)1 << 29)

struct tr_peers {
    pthread_mutex_t lock;
    void *peers;        // the driver's. NULL: they are given up
    const char *begins; // what they have begun, for messages
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
    pthread_mutex_init(&p->lock, NULL);
    p->begins = "connect the ranks' GPUs";
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

static tr_status look(tr_peers *p, bool *ready, tr_error *err) {
    bool busy = false;
    pthread_mutex_lock(&p->lock);
    const char *begins = p->begins;
    int error = p->peers ? tr__cuda_driver()->peers_state(p->peers, &busy) : 0;
    pthread_mutex_unlock(&p->lock);
    *ready = !busy;
    return error == 0 ? TR_OK : fail(begins, error, err);
}

// The part of one member: who has it or gets it, and where.
static tr_cuda_exchange part_of(const tr_peers *p, const tr_comm_op *op, int member) {
    int64_t size = (int64_t)tr__comm_type_bytes(op->type), first, count;
    tr__comm_part(op->count, op->shard, member, &first, &count);
    tr_cuda_exchange part = {.kind = op->kind == TR_COMM_REDUCE ? TR_CUDA_REDUCE
                                                                : TR_CUDA_BROADCAST,
                             .type = op->type,
                             .root = member,
                             .count = (size_t)count};
    bool own = member == p->member;
    char *place = (char *)op->recv + first * size;
    if (part.kind == TR_CUDA_REDUCE) {
        part.from = (const char *)op->send + first * size;
        part.to = own ? op->recv : NULL;
    } else {
        part.from = !own ? NULL : op->send ? op->send : place;
        part.to = place;
    }
    return part;
}

// All of it is one member's, which sends it to the other.
static tr_cuda_exchange message_of(const tr_peers *p, const tr_comm_op *op) {
    bool sends = op->channel == TR_COMM_SEND;
    return (tr_cuda_exchange){.kind = sends ? TR_CUDA_SEND : TR_CUDA_RECEIVE,
                              .type = op->type,
                              .root = 1 - p->member,
                              .count = (size_t)op->count,
                              .from = sends ? op->send : NULL,
                              .to = sends ? NULL : op->recv};
}

static void put_in(tr_peers *p, tr_device_queue *queue, const tr_comm_op *op) {
    bool message = op->channel == TR_COMM_SEND || op->channel == TR_COMM_RECEIVE;
    int count = 0, parts = message ? 1 : p->members;
    for (int m = 0; m < parts; m++) {
        tr_cuda_exchange part = message ? message_of(p, op) : part_of(p, op, m);
        if (part.count > 0) {
            p->parts[count++] = part;
        }
    }
    int error = tr__cuda_driver()->peers_exchange(p->parts, count, p->peers,
                                                  tr__cuda_stream(queue));
    tr__cuda_queue_note(queue, "an exchange", error);
}

static void exchange(tr_peers *p, tr_device_queue *queue, const tr_comm_op *op) {
    pthread_mutex_lock(&p->lock);
    if (p->peers) {
        p->begins = "exchange what the ranks' GPUs have";
        put_in(p, queue, op);
    }
    pthread_mutex_unlock(&p->lock);
}

// The driver's are gone.
static void part(tr_peers *p, bool broken) {
    pthread_mutex_lock(&p->lock);
    if (p->peers) {
        tr__cuda_driver()->peers_leave(p->peers, broken);
        p->peers = NULL;
    }
    pthread_mutex_unlock(&p->lock);
}

static void give_up(tr_peers *p) {
    part(p, true);
}

static void leave(tr_peers *p) {
    if (p) {
        part(p, false);
        pthread_mutex_destroy(&p->lock);
        tr__free(p);
    }
}

const tr_peer_table tr__cuda_peers = {
    .name = "NCCL",
    .beside = BESIDE,
    .missing = missing,
    .invite = invite,
    .join = join,
    .look = look,
    .exchange = exchange,
    .give_up = give_up,
    .leave = leave,
};

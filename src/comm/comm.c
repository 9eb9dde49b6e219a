// What all transports share: parts, small calls, notices, totals.
#include "comm/transport.h"

#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/parallel.h"

#include <string.h>

// ---- beginning and end

tr_status tr__comm_prepare(tr_comm *comm, const tr_transport *transport, int rank,
                           int ranks, tr_error *err) {
    comm->words = tr__calloc((size_t)ranks, sizeof *comm->words);
    if (!comm->words) {
        return tr_fail(err, TR_MEMORY, "no memory for the ranks");
    }
    comm->transport = transport;
    comm->rank = rank;
    comm->ranks = ranks;
    comm->threads = comm->local = 1;
    return TR_OK;
}

void tr__comm_release(tr_comm *comm) {
    tr__free(comm->words);
    tr__free(comm);
}

void tr_comm_close(tr_comm *comm) {
    if (comm) {
        comm->transport->close(comm);
    }
}

void tr_comm_end(tr_comm *comm, int exit_status) {
    if (comm) {
        comm->transport->end(comm, exit_status);
    }
}

void tr_comm_abandon(tr_comm *comm, const tr_error *error) {
    tr_error led = {0};
    tr_fail(&led, error->status, "rank %d: %s", comm->rank, error->message);
    comm->transport->abandon(comm, &led);
}

// ---- facts

int tr_comm_rank(const tr_comm *comm) {
    return comm ? comm->rank : 0;
}

int tr_comm_ranks(const tr_comm *comm) {
    return comm ? comm->ranks : 1;
}

int tr_comm_threads(const tr_comm *comm) {
    return comm ? comm->threads : tr__parallel_threads();
}

int tr__comm_local_ranks(const tr_comm *comm) {
    return comm->local;
}

int tr__comm_local_rank(const tr_comm *comm) {
    return comm->local_rank;
}

bool tr__comm_is_broken(const tr_comm *comm) {
    return comm->transport->is_broken(comm);
}

int tr__comm_node_ranks(const tr_comm *comm) {
    return comm->node_ranks;
}

tr_comm_totals tr__comm_totals(const tr_comm *comm) {
    return (tr_comm_totals){.gather_bytes = atomic_load(&comm->gather_bytes),
                            .reduce_bytes = atomic_load(&comm->reduce_bytes),
                            .between_bytes = atomic_load(&comm->between_bytes),
                            .wait_seconds = comm->waited,
                            .record_bytes = atomic_load(&comm->record_bytes)};
}

// ---- operations

size_t tr__comm_type_bytes(tr_comm_type type) {
    switch (type) {
    case TR_COMM_I64:
        return 8;
    case TR_COMM_F32:
        return 4;
    case TR_COMM_BF16:
    case TR_COMM_F16:
        return 2;
    default:
        return 1;
    }
}

void tr__comm_part(int64_t count, int64_t shard, int member, int64_t *first,
                   int64_t *part) {
    *first = tr__min_i64(count, member * shard);
    *part = tr__min_i64(shard, count - *first);
}

void tr__task_part(const tr_task *task, int member, int64_t *first, int64_t *part) {
    if (task->root < 0) {
        tr__comm_part(task->op.count, task->op.shard, member, first, part);
        *first = task->pitch > 0 ? member * task->pitch : *first;
        return;
    }
    *first = 0;
    *part = member == task->root ? task->op.count : 0;
}

bool tr__comm_tree_fits(int64_t count, int64_t element_bytes) {
    return count <= TR_COMM_TREE_BYTES / element_bytes;
}

bool tr__task_is_possible(const tr_task *task) {
    const tr_comm_op *op = &task->op;
    return op->kind == TR_COMM_GATHER || op->algorithm != TR_COMM_TREE ||
           tr__comm_tree_fits(op->count, (int64_t)tr__comm_type_bytes(op->type));
}

int64_t tr__comm_slot_bytes(int64_t ranks) {
    return tr__max_i64(TR_COMM_SLOT, (ranks + 1) * TR_COMM_SLICE_LEAST * 8);
}

// With many nodes, a chunk of each.
int64_t tr__comm_sums_bytes(const tr_comm_room *room) {
    int64_t nodes = room->node_ranks > 0 ? room->ranks / room->node_ranks : 1;
    return room->by_nodes ? tr__max_i64(TR_COMM_SLOT, nodes * TR_COMM_CHUNK) : 0;
}

static int64_t slots_bytes(const tr_comm_room *room) {
    return room->ferries ? TR_COMM_SLOTS * tr__comm_slot_bytes(room->ranks) : 0;
}

// Does the channel add up, and so need room for chunks and for sums of nodes?
static bool reduces(tr_comm_channel channel) {
    return channel == TR_COMM_RANKS || channel == TR_COMM_TENSOR;
}

int64_t tr__comm_chunks_bytes(const tr_comm_room *room, tr_comm_channel channel) {
    int64_t window = (int64_t)TR_COMM_WINDOW * TR_COMM_CHUNK;
    return reduces(channel) ? tr__max_i64(window, room->chunks) : 0;
}

int64_t tr__comm_chunks(const tr_comm *comm) {
    return comm->transport->chunks;
}

static int64_t nodes_bytes(const tr_comm_room *room, tr_comm_channel channel) {
    return reduces(channel) ? tr__comm_sums_bytes(room) : 0;
}

// Chunks, sums of nodes, slots.
static int64_t channel_bytes(const tr_comm_room *room, tr_comm_channel channel) {
    bool there = channel == TR_COMM_RANKS    ? room->ranks > 1
                 : channel == TR_COMM_TENSOR ? room->tensor
                                             : room->pipeline;
    return there ? tr__comm_chunks_bytes(room, channel) + nodes_bytes(room, channel) +
                       slots_bytes(room)
                 : 0;
}

// One channel's after the other.
int64_t tr__comm_staging_bytes(const tr_comm_room *room) {
    int64_t bytes = 0;
    for (int c = 0; c < TR_COMM_CHANNELS; c++) {
        bytes += channel_bytes(room, (tr_comm_channel)c);
    }
    return bytes;
}

void tr__comm_channel_staging(const tr_comm_room *room, tr_comm_channel channel,
                              int64_t *first, int64_t *end) {
    *first = 0;
    for (int c = 0; c < (int)channel; c++) {
        *first += channel_bytes(room, (tr_comm_channel)c);
    }
    *end = *first + channel_bytes(room, channel);
}

static tr_comm_place place_of(const tr_comm_room *room, tr_comm_channel channel,
                              char *memory) {
    tr_comm_place place = {NULL, NULL, NULL};
    int64_t first, end;
    tr__comm_channel_staging(room, channel, &first, &end);
    if (!memory || first == end) {
        return place;
    }
    char *sums = memory + first + tr__comm_chunks_bytes(room, channel);
    int64_t bytes = nodes_bytes(room, channel);
    place.chunks = reduces(channel) ? memory + first : NULL;
    place.sums = bytes > 0 ? sums : NULL;
    place.slots = room->ferries ? sums + bytes : NULL;
    return place;
}

void tr__comm_staging(tr_comm *comm, const tr_comm_room *room, void *memory) {
    comm->room = *room;
    for (int c = 0; c < TR_COMM_CHANNELS; c++) {
        comm->places[c] = place_of(room, (tr_comm_channel)c, memory);
    }
}

void tr__comm_count_sent(tr_comm *comm, const tr_task *task, int to, int64_t bytes) {
    int64_t node = comm->room.node_ranks;
    atomic_fetch_add(task->record                      ? &comm->record_bytes
                     : task->op.kind == TR_COMM_GATHER ? &comm->gather_bytes
                                                       : &comm->reduce_bytes,
                     bytes);
    if (!task->record && node > 0 && to / node != comm->rank / node) {
        atomic_fetch_add(&comm->between_bytes, bytes);
    }
}

void tr__comm_ferry(tr_comm *comm, const tr_comm_ferry *ferry) {
    comm->ferry = ferry ? *ferry : (tr_comm_ferry){0};
}

int64_t tr__comm_start(tr_comm *comm, const tr_comm_op *op) {
    return comm->transport->start(comm, &(tr_task){.op = *op, .root = -1});
}

int64_t tr__comm_skip(tr_comm *comm, tr_comm_channel channel) {
    const tr_comm_op nothing = {.kind = TR_COMM_GATHER,
                                .type = TR_COMM_BYTE,
                                .group = {comm->rank, 1, 1},
                                .channel = channel};
    return tr__comm_start(comm, &nothing);
}

tr_status tr__comm_wait(tr_comm *comm, tr_comm_channel channel, int64_t ticket,
                        tr_error *err) {
    double begin = tr__seconds();
    tr_status status = comm->transport->wait(comm, channel, ticket, err);
    comm->waited += tr__seconds() - begin;
    return status;
}

int64_t tr__comm_newest(const tr_comm *comm, tr_comm_channel channel) {
    return comm->newest[channel];
}

void tr__comm_beside(tr_comm *comm, const tr_comm_beside *beside) {
    static const tr_comm_beside nothing;
    if (comm->transport->beside) {
        comm->transport->beside(comm, beside ? beside : &nothing);
    }
}

bool tr__comm_looks_beside(const tr_comm *comm) {
    return comm->transport->beside != NULL;
}

// Of a group that all its members are in at equal distances.
void tr__comm_count_made(tr_comm *comm, const tr_comm_op *op) {
    const tr_comm_group *group = &op->group;
    int members = group->count > 0 ? group->count : comm->ranks;
    int member =
        group->count > 0 ? (comm->rank - group->first) / group->stride : comm->rank;
    int64_t size = (int64_t)tr__comm_type_bytes(op->type), first, own;
    tr__comm_part(op->count, op->shard, member, &first, &own);
    if (op->kind == TR_COMM_GATHER) {
        atomic_fetch_add(&comm->gather_bytes, (members - 1) * own * size);
    } else {
        atomic_fetch_add(&comm->reduce_bytes, (op->count - own) * size);
    }
}

void tr__comm_watch(tr_comm *comm, tr_comm_channel channel, tr_task_span *spans,
                    int64_t count) {
    comm->transport->watch(comm, channel, spans, count);
}

// ---- small calls

static tr_status do_at_once(tr_comm *comm, tr_comm_op op, int root, tr_error *err) {
    int64_t ticket = comm->transport->start(
        comm, &(tr_task){.op = op, .root = root, .record = true});
    return comm->transport->wait(comm, op.channel, ticket, err);
}

tr_status tr__comm_all_gather(tr_comm *comm, const void *own, size_t bytes, void *all,
                              tr_error *err) {
    tr_comm_op op = {.kind = TR_COMM_GATHER,
                     .type = TR_COMM_BYTE,
                     .count = (int64_t)bytes * comm->ranks,
                     .shard = (int64_t)bytes,
                     .send = own,
                     .recv = all};
    return do_at_once(comm, op, -1, err);
}

tr_status tr__comm_barrier(tr_comm *comm, tr_error *err) {
    tr_word word = {0};
    return tr__comm_all_gather(comm, &word, sizeof word, comm->words, err);
}

tr_status tr__comm_broadcast(tr_comm *comm, int root, void *data, size_t bytes,
                             tr_error *err) {
    tr_comm_op op = {.kind = TR_COMM_GATHER,
                     .type = TR_COMM_BYTE,
                     .count = (int64_t)bytes,
                     .shard = (int64_t)bytes,
                     .recv = data};
    return do_at_once(comm, op, root, err);
}

// ---- notices

void tr__comm_note(tr_comm *comm, int64_t epochs) {
    int64_t known = atomic_load(&comm->noticed);
    while (known < epochs &&
           !atomic_compare_exchange_weak(&comm->noticed, &known, epochs)) {
    }
}

void tr__comm_notice(tr_comm *comm) {
    if (!tr__comm_noticed(comm)) {
        tr__comm_note(comm, comm->notice_epoch + 1);
        comm->transport->notice(comm);
    }
}

bool tr__comm_noticed(const tr_comm *comm) {
    return atomic_load(&comm->noticed) > comm->notice_epoch;
}

// What is noticed after the barrier belongs to the next epoch, whichever rank it
// reaches first; what comes late from before it, to none.
tr_status tr__comm_notice_clear(tr_comm *comm, tr_error *err) {
    tr_status status = tr__comm_barrier(comm, err);
    comm->notice_epoch++;
    return status;
}

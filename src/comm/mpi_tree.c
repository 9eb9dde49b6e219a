// Reductions along a tree (rounds.h), of little data: a member keeps its sums so far of
// all parts in one half of the room for chunks, and what comes in a round in the other.
// In each round it sends the sums of parts that are not its own, about half of those
// that it still has.
#include "comm/add.h"
#include "comm/mpi_move.h"

#include "base/checked.h"

#include <string.h>

static char *sums_of(const tr_mpi_mover *m) {
    return tr__mover_chunk(m, 0);
}

static void begin(const tr_mpi_mover *m) {
    tr__tree_begin(&m->stage.task.op, m->stage.group.count, m->stage.member,
                   sums_of(m));
}

static int64_t byte_at(const tr_mpi_mover *m, int number) {
    const tr_comm_op *op = &m->stage.task.op;
    return tr__tree_at(op, m->stage.group.count, m->stage.member, number) *
           (int64_t)tr__comm_type_bytes(op->type);
}

// The sums that a round sends, or those that it adds to: bytes [*first, *end).
static void range_of(const tr_mpi_mover *m, const tr_lane *lane, const tr_round *round,
                     int64_t *first, int64_t *end) {
    int from = lane == &m->out ? -round->by : 0;
    *first = byte_at(m, from);
    *end = byte_at(m, from + round->parts);
}

// Sums are sent when all is in them; a round's messages come when those of the round
// before have been added.
static bool may_begin(const tr_mpi_mover *m, const tr_lane *lane) {
    bool free = lane->done == lane->posted ||
                lane->pieces[lane->done % TR_LANE].round == lane->round;
    return lane == &m->in
               ? free
               : lane->round == 0 || tr__mover_has(m, lane->round - 1, INT64_MAX);
}

static bool next(const tr_mpi_mover *m, tr_lane *lane, tr_mpi_piece *piece) {
    int members = m->stage.group.count;
    for (; lane->round < tr__rounds(TR_COMM_TREE, members); lane->round++) {
        tr_round round = tr__round(&m->stage.task.op, members, lane->round);
        int64_t first, end;
        range_of(m, lane, &round, &first, &end);
        if (first + lane->offset == end) {
            lane->offset = 0;
            continue;
        }
        if (!may_begin(m, lane)) {
            return false;
        }
        char *memory =
            sums_of(m) + (lane == &m->out ? first : TR_COMM_TREE_BYTES) + lane->offset;
        int64_t bytes = tr__min_i64(TR_COMM_CHUNK, end - first - lane->offset);
        *piece = (tr_mpi_piece){.memory = memory,
                                .offset = lane->offset,
                                .bytes = (int)bytes,
                                .round = lane->round,
                                .peer = tr__mover_peer(m, lane, &round)};
        lane->offset += bytes;
        return true;
    }
    lane->over = true;
    return false;
}

static void arrived(const tr_mpi_mover *m, const tr_mpi_piece *piece) {
    const tr_comm_op *op = &m->stage.task.op;
    int64_t elements = piece->bytes / (int64_t)tr__comm_type_bytes(op->type);
    char *sum = sums_of(m) + piece->offset, *to = (char *)op->recv + piece->offset;
    tr__add(op->type, sum, piece->memory, elements);
    if (piece->round < tr__rounds(TR_COMM_TREE, m->stage.group.count) - 1) {
        return;
    }
    if (op->add) {
        tr__add(op->type, to, sum, elements);
    } else {
        memcpy(to, sum, (size_t)piece->bytes);
    }
}

const tr_mpi_pattern tr__mpi_tree_sum = {
    .begin = begin, .next = next, .arrived = arrived};

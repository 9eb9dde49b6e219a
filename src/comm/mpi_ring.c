// Reductions around a ring. The sum of a part begins with what the member after its
// owner has, and goes from member to member, each of which adds what it has, until it
// comes to the owner. A part goes in slices of a chunk, and two of them are under way
// beside each other, so that one is on its way while another one is added up.
//
// Pieces have one order, which is the same in both directions: of two slices, first
// those of round 0, then those of round 1, and so on; then of the next two slices. A
// piece waits for those of lower numbers alone, so that members never wait in a circle.
#include "comm/add.h"
#include "comm/mpi_move.h"

#include "base/checked.h"

enum { SLICES = TR_COMM_WINDOW / 2 }; // beside each other

// Piece `number`: its round, and its slice of a part.
typedef struct place {
    int round;
    int64_t slice;
} place;

static int rounds_of(const tr_mpi_mover *m) {
    return tr__rounds(TR_COMM_RING, m->stage.group.count);
}

static place place_of(const tr_mpi_mover *m, int64_t number) {
    int64_t wave = (int64_t)SLICES * rounds_of(m), rest = number % wave;
    return (place){(int)(rest / SLICES), number / wave * SLICES + rest % SLICES};
}

static int64_t element(const tr_mpi_mover *m) {
    return (int64_t)tr__comm_type_bytes(m->stage.task.op.type);
}

static int64_t slice_of(const tr_mpi_mover *m) {
    return TR_COMM_CHUNK / element(m);
}

static int64_t pieces_of(const tr_mpi_mover *m) {
    const tr_comm_op *op = &m->stage.task.op;
    int64_t slices = tr__ceil_div(tr__min_i64(op->shard, op->count), slice_of(m));
    return tr__ceil_div(slices, SLICES) * SLICES * rounds_of(m);
}

// What comes waits in its chunk until it has been sent on; the last is added at once.
static bool chunk_is_free(const tr_mpi_mover *m, int64_t number) {
    int64_t before = number - TR_COMM_WINDOW;
    if (before < 0 || place_of(m, before).round == rounds_of(m) - 1) {
        return m->in.done > before;
    }
    return m->out.done > before + SLICES;
}

static bool may_begin(const tr_mpi_mover *m, const tr_lane *lane, int round) {
    return lane == &m->in ? chunk_is_free(m, lane->posted)
                          : round == 0 || m->in.done > lane->posted - SLICES;
}

// Elements of the part that a round sends: where it begins, and those of a slice.
static int64_t slice_at(const tr_mpi_mover *m, int sender, place at, int64_t *first) {
    int members = m->stage.group.count;
    int64_t count;
    tr_round round = tr__round(&m->stage.task.op, members, at.round);
    tr__round_run(&m->stage.task, members, &round, sender, 0, first, &count);
    *first += at.slice * slice_of(m);
    return tr__max_i64(0, tr__min_i64(slice_of(m), count - at.slice * slice_of(m)));
}

static bool next(const tr_mpi_mover *m, tr_lane *lane, tr_mpi_piece *piece) {
    const tr_comm_op *op = &m->stage.task.op;
    lane->over = lane->posted == pieces_of(m);
    place at = place_of(m, lane->posted);
    if (lane->over || !may_begin(m, lane, at.round)) {
        return false;
    }
    tr_round round = tr__round(op, m->stage.group.count, at.round);
    int64_t first, count = slice_at(m, tr__mover_sender(m, lane, &round), at, &first);
    int64_t chunk = lane == &m->in ? lane->posted : lane->posted - SLICES;
    bool begins = lane == &m->out && at.round == 0;
    *piece = (tr_mpi_piece){.memory = begins ? (char *)(uintptr_t)op->send +
                                                   first * element(m)
                                             : tr__mover_chunk(m, chunk),
                            .offset = at.slice * slice_of(m) * element(m),
                            .bytes = (int)(count * element(m)),
                            .round = at.round,
                            .peer = tr__mover_peer(m, lane, &round)};
    return true;
}

static void arrived(const tr_mpi_mover *m, const tr_mpi_piece *piece) {
    const tr_comm_op *op = &m->stage.task.op;
    int64_t elements = piece->bytes / element(m), first;
    place at = {piece->round, piece->offset / element(m) / slice_of(m)};
    slice_at(m, tr__stage_member(&m->stage, m->stage.member - 1), at, &first);
    const char *own = (const char *)op->send + first * element(m);
    if (piece->bytes > 0 && piece->round == rounds_of(m) - 1) {
        tr__add_first(op->type, (char *)op->recv + piece->offset, own, piece->memory,
                      op->add, elements);
    } else if (piece->bytes > 0) {
        tr__add(op->type, piece->memory, own, elements);
    }
}

const tr_mpi_pattern tr__mpi_ring_sum = {.next = next, .arrived = arrived};

#include "comm/mpi_move.h"

#include "comm/add.h"
#include "comm/mpi_check.h"

#include "base/checked.h"

#include <string.h>

// Both ranks of a message have it in one channel, but for messages of stages, which one
// sends and the other receives.
static const int tag_of[TR_COMM_CHANNELS] = {[TR_COMM_RANKS] = 1,
                                             [TR_COMM_SEND] = 2,
                                             [TR_COMM_RECEIVE] = 2,
                                             [TR_COMM_TENSOR] = 3};

// ---- which message is next

// The member that a step sends to or receives from.
static int peer_of(const tr_mpi_mover *m, const tr_lane *lane, int step) {
    int members = m->stage.group.count;
    return (m->stage.member + (lane == &m->out ? step : members - step)) % members;
}

// The part of the task that goes over `lane` in `step`, in bytes.
static void part_of(const tr_mpi_mover *m, const tr_lane *lane, int step,
                    int64_t *first, int64_t *bytes) {
    const tr_stage *stage = &m->stage;
    bool gather = stage->task.op.kind == TR_COMM_GATHER;
    bool own = gather == (lane == &m->out);
    int64_t size = (int64_t)tr__comm_type_bytes(stage->task.op.type);
    tr__task_part(&stage->task, own ? stage->member : peer_of(m, lane, step), first,
                  bytes);
    *first *= size;
    *bytes *= size;
}

// Where in the caller's memory the part is that begins at byte `first` of the whole.
static char *place_of(const tr_mpi_mover *m, const tr_lane *lane, int64_t first) {
    const tr_comm_op *op = &m->stage.task.op;
    if (lane == &m->out) {
        if (op->kind == TR_COMM_REDUCE) {
            return (char *)(uintptr_t)op->send + first;
        }
        return op->send ? (char *)(uintptr_t)op->send : (char *)op->recv + first;
    }
    return (char *)op->recv + (op->kind == TR_COMM_GATHER ? first : 0);
}

// Takes the next piece; false: there is none.
static bool next_piece(const tr_mpi_mover *m, tr_lane *lane, tr_mpi_piece *piece) {
    for (; lane->step < m->stage.group.count; lane->step++, lane->offset = 0) {
        int64_t first, bytes;
        part_of(m, lane, lane->step, &first, &bytes);
        if (lane->offset < bytes) {
            int64_t some = tr__min_i64(TR_COMM_CHUNK, bytes - lane->offset);
            *piece = (tr_mpi_piece){lane->step, place_of(m, lane, first) + lane->offset,
                                    lane->offset, (int)some};
            lane->offset += some;
            return true;
        }
    }
    return false;
}

// ---- messages

static char *staging_of(const tr_mpi_mover *m, int64_t number) {
    return m->base->places[m->channel].chunks + number % TR_COMM_WINDOW * TR_COMM_CHUNK;
}

static tr_status post(tr_mpi_mover *m, tr_lane *lane, const tr_mpi_piece *piece,
                      tr_error *err) {
    int64_t slot = lane->posted % TR_LANE;
    const tr_comm_group *group = &m->stage.group;
    int peer = group->first + group->stride * peer_of(m, lane, piece->step);
    int tag = tag_of[m->channel];
    MPI_Request *request = &lane->requests[slot];
    lane->pieces[slot] = *piece;
    if (lane == &m->out) {
        tr__comm_count_sent(m->base, &m->stage.task, peer, piece->bytes);
        return tr__mpi_check(
            MPI_Isend(piece->at, piece->bytes, MPI_BYTE, peer, tag, m->comm, request),
            "MPI_Isend", err);
    }
    bool gathers = m->stage.task.op.kind == TR_COMM_GATHER;
    void *to = gathers ? piece->at : staging_of(m, lane->posted);
    return tr__mpi_check(
        MPI_Irecv(to, piece->bytes, MPI_BYTE, peer, tag, m->comm, request), "MPI_Irecv",
        err);
}

// The first to come is added to this rank's own part; the result takes its place.
static void add_piece(const tr_mpi_mover *m, const tr_mpi_piece *piece,
                      const char *from) {
    const tr_comm_op *op = &m->stage.task.op;
    int64_t size = (int64_t)tr__comm_type_bytes(op->type), first, part;
    int64_t elements = piece->bytes / size;
    tr__task_part(&m->stage.task, m->stage.member, &first, &part);
    const char *own = (const char *)op->send + first * size + piece->offset;
    if (piece->step == 1 && op->add) {
        tr__add(op->type, piece->at, own, elements);
    }
    if (piece->step > 1 || op->add || own == piece->at) {
        tr__add(op->type, piece->at, from, elements);
    } else {
        tr__add_to(op->type, piece->at, own, from, elements);
    }
}

static tr_status complete(tr_mpi_mover *m, tr_lane *lane, bool *moved, tr_error *err) {
    while (lane->done < lane->posted) {
        int64_t slot = lane->done % TR_LANE;
        int flag = 0;
        tr_status status = tr__mpi_check(
            MPI_Test(&lane->requests[slot], &flag, MPI_STATUS_IGNORE), "MPI_Test", err);
        if (status != TR_OK || !flag) {
            return status;
        }
        if (lane == &m->in && m->stage.task.op.kind == TR_COMM_REDUCE) {
            add_piece(m, &lane->pieces[slot], staging_of(m, lane->done));
        }
        lane->done++;
        *moved = true;
    }
    return TR_OK;
}

static tr_status advance(tr_mpi_mover *m, tr_lane *lane, bool *moved, tr_error *err) {
    tr_mpi_piece piece;
    bool staged = lane == &m->in && m->stage.task.op.kind == TR_COMM_REDUCE;
    int window = staged ? TR_COMM_WINDOW : TR_LANE;
    tr_status status = complete(m, lane, moved, err);
    while (status == TR_OK && lane->posted - lane->done < window &&
           next_piece(m, lane, &piece)) {
        status = post(m, lane, &piece, err);
        lane->posted++;
        *moved = true;
    }
    return status;
}

static tr_status advance_stage(tr_mpi_mover *m, bool *moved, bool *finished,
                               tr_error *err) {
    int members = m->stage.group.count;
    *moved = *finished = false;
    tr_status status = advance(m, &m->in, moved, err);
    if (status == TR_OK) {
        status = advance(m, &m->out, moved, err);
    }
    *finished = m->in.done == m->in.posted && m->out.done == m->out.posted &&
                m->in.step == members && m->out.step == members;
    return status;
}

// A gather's own part goes to its place while the first messages are under way; and so
// does a reduction's where there is no other.
static void copy_own(const tr_mpi_mover *m) {
    const tr_comm_op *op = &m->stage.task.op;
    int64_t size = (int64_t)tr__comm_type_bytes(op->type), first, part;
    tr__task_part(&m->stage.task, m->stage.member, &first, &part);
    bool gathers = op->kind == TR_COMM_GATHER;
    char *to = (char *)op->recv + (gathers ? first * size : 0);
    if (!op->send || op->send == to || part == 0 ||
        !(gathers || m->stage.group.count == 1)) {
        return;
    }
    if (!gathers && op->add) {
        tr__add(op->type, to, op->send, part);
    } else {
        memcpy(to, op->send, (size_t)(part * size));
    }
}

static tr_status begin_stage(tr_mpi_mover *m, tr_error *err) {
    bool moved, finished;
    m->in = m->out = (tr_lane){.step = 1};
    tr_status status = advance_stage(m, &moved, &finished, err);
    if (status == TR_OK) {
        copy_own(m);
    }
    return status;
}

tr_status tr__mover_advance(tr_mpi_mover *m, bool *moved, bool *finished,
                            tr_error *err) {
    bool over = false;
    *finished = false;
    tr_status status = advance_stage(m, moved, &over, err);
    if (status != TR_OK || !over) {
        return status;
    }
    *moved = true;
    *finished = !tr__stages_next(&m->stages, &m->stage);
    return *finished ? TR_OK : begin_stage(m, err);
}

static bool is_rank(const tr_mpi_mover *m, int rank) {
    return rank >= 0 && rank < m->base->ranks;
}

tr_status tr__mover_join(tr_mpi_mover *m, const tr_comm_group *group, tr_error *err) {
    const tr_comm_group all = {0, 1, m->base->ranks};
    m->group = group->count > 0 ? *group : all;
    int from_first = m->base->rank - m->group.first;
    m->member = m->group.stride != 0 ? from_first / m->group.stride : m->group.count;
    int last = m->group.first + m->group.stride * (m->group.count - 1);
    if (!is_rank(m, m->group.first) || !is_rank(m, last) || m->member < 0 ||
        m->member >= m->group.count || from_first != m->member * m->group.stride) {
        return tr_fail(err, TR_INTERNAL,
                       "this rank is not in the group of its operation: ranks %d to "
                       "%d, %d apart",
                       m->group.first, last, m->group.stride);
    }
    return TR_OK;
}

tr_status tr__mover_begin(tr_mpi_mover *m, const tr_task *task, tr_error *err) {
    if (task->op.kind == TR_COMM_REDUCE && !m->base->places[m->channel].chunks) {
        return tr_fail(err, TR_INTERNAL, "a reduction without memory for its chunks");
    }
    tr_status status = tr__mover_join(m, &task->op.group, err);
    if (status == TR_OK) {
        const tr_stage whole = {*task, m->group, m->member};
        status = tr__stages_begin(&m->stages, m->base, &whole, err);
    }
    if (status != TR_OK) {
        return status;
    }
    if (!tr__stages_next(&m->stages, &m->stage)) { // nothing is exchanged
        m->stage = (tr_stage){.group = {0, 1, 1}};
    }
    return begin_stage(m, err);
}

static void cancel(tr_lane *lane) {
    for (; lane->done < lane->posted; lane->done++) {
        MPI_Request *request = &lane->requests[lane->done % TR_LANE];
        if (*request != MPI_REQUEST_NULL) {
            MPI_Cancel(request);
        }
    }
}

// Only receiving is given up: to cancel what is being sent can take talk with a rank
// that is no more.
void tr__mover_cancel(tr_mpi_mover *m) {
    cancel(&m->in);
}

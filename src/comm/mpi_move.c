#include "comm/mpi_move.h"

#include "comm/mpi_check.h"

#include "base/checked.h"

// Both ranks of a message have it in one channel, but for messages of stages, which one
// sends and the other receives.
static const int tag_of[TR_COMM_CHANNELS] = {[TR_COMM_RANKS] = 1,
                                             [TR_COMM_SEND] = 2,
                                             [TR_COMM_RECEIVE] = 2,
                                             [TR_COMM_TENSOR] = 3};

// ---- exchanges whose pieces follow from their rounds alone

// Where the run of parts is that begins at byte `first` of the whole. A member's own
// part may lie alone.
static char *place_of(const tr_mpi_mover *m, const tr_lane *lane, int64_t first) {
    const tr_comm_op *op = &m->stage.task.op;
    if (op->kind == TR_COMM_REDUCE) {
        return (char *)(uintptr_t)op->send + first;
    }
    bool alone = lane == &m->out && op->send &&
                 (lane->round == 0 || op->algorithm == TR_COMM_DIRECT);
    return alone ? (char *)(uintptr_t)op->send : (char *)op->recv + first;
}

// A ring hands on what has come piece by piece, a tree round by round.
static bool has_come(const tr_mpi_mover *m, const tr_mpi_piece *piece) {
    switch (m->stage.task.op.algorithm) {
    case TR_COMM_RING:
        return piece->round == 0 ||
               tr__mover_has(m, piece->round - 1, piece->offset + piece->bytes);
    case TR_COMM_TREE:
        return piece->round == 0 || tr__mover_has(m, piece->round - 1, INT64_MAX);
    default:
        return true;
    }
}

// Finds the next piece; false: there is none.
static bool find_piece(const tr_mpi_mover *m, tr_lane *lane, tr_mpi_piece *piece) {
    const tr_task *task = &m->stage.task;
    int members = m->stage.group.count;
    int64_t size = (int64_t)tr__comm_type_bytes(task->op.type);
    int rounds = tr__rounds(task->op.algorithm, members);
    while (lane->round < rounds) {
        int64_t first, count;
        tr_round round = tr__round(&task->op, members, lane->round);
        tr__round_run(task, members, &round, tr__mover_sender(m, lane, &round),
                      lane->run, &first, &count);
        if (lane->offset < count * size) {
            *piece = (tr_mpi_piece){
                .memory = place_of(m, lane, first * size) + lane->offset,
                .offset = lane->offset,
                .bytes = (int)tr__min_i64(TR_COMM_CHUNK, count * size - lane->offset),
                .round = lane->round,
                .run = lane->run,
                .peer = tr__mover_peer(m, lane, &round)};
            return true;
        }
        lane->offset = 0;
        lane->run = (lane->run + 1) % TR_ROUND_RUNS;
        lane->round += lane->run == 0;
    }
    return false;
}

static bool next_gathered(const tr_mpi_mover *m, tr_lane *lane, tr_mpi_piece *piece) {
    lane->over = !find_piece(m, lane, piece);
    if (lane->over || (lane == &m->out && !has_come(m, piece))) {
        return false;
    }
    lane->offset += piece->bytes;
    return true;
}

// A reduction's messages come into the staging.
static bool next_summed(const tr_mpi_mover *m, tr_lane *lane, tr_mpi_piece *piece) {
    lane->over = !find_piece(m, lane, piece);
    if (lane->over || (lane == &m->in && lane->posted - lane->done == TR_COMM_WINDOW)) {
        return false;
    }
    if (lane == &m->in) {
        piece->memory = tr__mover_chunk(m, lane->posted);
    }
    lane->offset += piece->bytes;
    return true;
}

static void add_piece(const tr_mpi_mover *m, const tr_mpi_piece *piece) {
    tr__stage_add(&m->stage, piece->round == 0, piece->memory, piece->offset,
                  piece->bytes);
}

static void put_own(const tr_mpi_mover *m) {
    tr__stage_put_own(&m->stage);
}

static const tr_mpi_pattern gather = {.next = next_gathered};
static const tr_mpi_pattern tree_gather = {.begin = put_own, .next = next_gathered};
static const tr_mpi_pattern sum = {.next = next_summed, .arrived = add_piece};

static const tr_mpi_pattern *pattern_of(const tr_stage *stage) {
    static const tr_mpi_pattern *const gathers[TR_COMM_ALGORITHMS] = {
        [TR_COMM_DIRECT] = &gather,
        [TR_COMM_RING] = &gather,
        [TR_COMM_TREE] = &tree_gather};
    static const tr_mpi_pattern *const sums[TR_COMM_ALGORITHMS] = {
        [TR_COMM_DIRECT] = &sum,
        [TR_COMM_RING] = &tr__mpi_ring_sum,
        [TR_COMM_TREE] = &tr__mpi_tree_sum};
    const tr_comm_op *op = &stage->task.op;
    return stage->group.count == 1      ? &gather
           : op->kind == TR_COMM_GATHER ? gathers[op->algorithm]
                                        : sums[op->algorithm];
}

// ---- messages

static tr_status post(tr_mpi_mover *m, tr_lane *lane, const tr_mpi_piece *piece,
                      tr_error *err) {
    int64_t slot = lane->posted++ % TR_LANE;
    int tag = tag_of[m->channel];
    MPI_Request *request = &lane->requests[slot];
    lane->pieces[slot] = *piece;
    if (piece->bytes == 0) {
        *request = MPI_REQUEST_NULL;
        return TR_OK;
    }
    if (lane == &m->out) {
        tr__comm_count_sent(m->base, &m->stage.task, piece->peer, piece->bytes);
        return tr__mpi_check(MPI_Isend(piece->memory, piece->bytes, MPI_BYTE,
                                       piece->peer, tag, m->comm, request),
                             "MPI_Isend", err);
    }
    return tr__mpi_check(MPI_Irecv(piece->memory, piece->bytes, MPI_BYTE, piece->peer,
                                   tag, m->comm, request),
                         "MPI_Irecv", err);
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
        if (lane == &m->in && m->pattern->arrived) {
            m->pattern->arrived(m, &lane->pieces[slot]);
        }
        lane->done++;
        *moved = true;
    }
    return TR_OK;
}

static tr_status advance(tr_mpi_mover *m, tr_lane *lane, bool *moved, tr_error *err) {
    tr_mpi_piece piece;
    tr_status status = complete(m, lane, moved, err);
    while (status == TR_OK && lane->posted - lane->done < TR_LANE &&
           m->pattern->next(m, lane, &piece)) {
        status = post(m, lane, &piece, err);
        *moved = true;
    }
    return status;
}

static tr_status advance_stage(tr_mpi_mover *m, bool *moved, bool *finished,
                               tr_error *err) {
    *moved = *finished = false;
    tr_status status = advance(m, &m->in, moved, err);
    if (status == TR_OK) {
        status = advance(m, &m->out, moved, err);
    }
    *finished = m->in.over && m->in.done == m->in.posted && m->out.over &&
                m->out.done == m->out.posted;
    return status;
}

// What is copied is copied while the first messages are under way.
static tr_status begin_stage(tr_mpi_mover *m, tr_error *err) {
    bool moved, finished;
    m->in = m->out = (tr_lane){0};
    m->pattern = pattern_of(&m->stage);
    if (m->pattern->begin) {
        m->pattern->begin(m);
    }
    tr_status status = advance_stage(m, &moved, &finished, err);
    if (status == TR_OK) {
        put_own(m);
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
    if (!tr__task_is_possible(task)) {
        return tr_fail(err, TR_INTERNAL,
                       "a reduction of %lld elements is too large for a tree",
                       (long long)task->op.count);
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

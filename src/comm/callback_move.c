// One operation of ranks that exchange by functions of the caller's. Who sends to whom,
// and in which order sums are made, is as over MPI (mpi_move.h), so that results have
// the same bits.
#include "comm/callback.h"

#include "comm/add.h"
#include "comm/ferry.h"
#include "comm/rounds.h"

#include "base/checked.h"
#include "base/clock.h"

#include <string.h>

// A stage that is under way.
typedef struct work {
    tr_callback_comm *comm;
    tr_stage stage;
    int64_t element; // bytes
} work;

// The part of a member, in bytes.
static void part_of(const work *w, int member, int64_t *first, int64_t *bytes) {
    tr__task_part(&w->stage.task, member, first, bytes);
    *first *= w->element;
    *bytes *= w->element;
}

// One message each way, of which one may be empty.
typedef struct message {
    const void *out;
    void *in;
    int64_t out_bytes, in_bytes;
} message;

static tr_status exchange(const work *w, const tr_round *round, const message *m,
                          tr_error *err) {
    const tr_comm_functions *f = &w->comm->functions;
    int to = tr__stage_rank(&w->stage, w->stage.member + round->by);
    int from = tr__stage_rank(&w->stage, w->stage.member - round->by);
    tr_error mine = {0};
    if (m->out_bytes == 0 && m->in_bytes == 0) {
        return TR_OK;
    }
    tr_status status = f->exchange(f->user, to, m->out, (size_t)m->out_bytes, from,
                                   m->in, (size_t)m->in_bytes, &mine);
    if (status == TR_OK) {
        tr__comm_count_sent(&w->comm->base, &w->stage.task, to, m->out_bytes);
        return TR_OK;
    }
    return tr_fail(err, status, "%s",
                   mine.message[0] ? mine.message : "an exchange of ranks has failed");
}

static int rounds_of(const work *w) {
    return tr__rounds(w->stage.task.op.algorithm, w->stage.group.count);
}

static tr_round round_of(const work *w, int number) {
    return tr__round(&w->stage.task.op, w->stage.group.count, number);
}

// What a member sends in a round, in bytes.
static void run_of(const work *w, const tr_round *round, int sender, int run,
                   int64_t *first, int64_t *bytes) {
    tr__round_run(&w->stage.task, w->stage.group.count, round,
                  tr__stage_member(&w->stage, sender), run, first, bytes);
    *first *= w->element;
    *bytes *= w->element;
}

// A round of a gather. A member's own part, where that lies alone, is in its place
// after the first one.
static tr_status gather_round(const work *w, int number, tr_error *err) {
    const tr_comm_op *op = &w->stage.task.op;
    tr_round round = round_of(w, number);
    bool own = op->send && (number == 0 || op->algorithm == TR_COMM_DIRECT);
    tr_status status = TR_OK;
    for (int run = 0; status == TR_OK && run < TR_ROUND_RUNS; run++) {
        int64_t first, came;
        message m = {0};
        run_of(w, &round, w->stage.member, run, &first, &m.out_bytes);
        run_of(w, &round, w->stage.member - round.by, run, &came, &m.in_bytes);
        m.out = own ? op->send : (char *)op->recv + first;
        m.in = (char *)op->recv + came;
        status = exchange(w, &round, &m, err);
    }
    return status;
}

static char *staging_of(const work *w) {
    return w->comm->base.places[w->stage.task.op.channel].chunks;
}

// A reduction's messages are added from the staging, which they have to themselves.
static int64_t staging_bytes(const work *w) {
    return tr__comm_chunks_bytes(&w->comm->base.room, w->stage.task.op.channel);
}

// A round of a direct reduction: another's part goes out, this member's comes in, in
// pieces.
static tr_status reduce_round(const work *w, int number, tr_error *err) {
    const tr_comm_op *op = &w->stage.task.op;
    tr_round round = round_of(w, number);
    int64_t first, out, own, in, piece = staging_bytes(w);
    tr_status status = TR_OK;
    run_of(w, &round, w->stage.member, 0, &first, &out);
    part_of(w, w->stage.member, &own, &in);
    for (int64_t at = 0; at < tr__max_i64(out, in) && status == TR_OK; at += piece) {
        const message m = {.out = (const char *)op->send + first + at,
                           .in = staging_of(w),
                           .out_bytes = tr__max_i64(0, tr__min_i64(piece, out - at)),
                           .in_bytes = tr__max_i64(0, tr__min_i64(piece, in - at))};
        status = exchange(w, &round, &m, err);
        if (status == TR_OK) {
            tr__stage_add(&w->stage, number == 0, m.in, at, m.in_bytes);
        }
    }
    return status;
}

// A round of a slice of a reduction around a ring: what came in the round before goes
// on, from the other half of the staging.
static tr_status ring_round(const work *w, int number, int64_t at, tr_error *err) {
    const tr_comm_op *op = &w->stage.task.op;
    tr_round round = round_of(w, number);
    int64_t sent, out, came, in, slice = staging_bytes(w) / 2;
    run_of(w, &round, w->stage.member, 0, &sent, &out);
    run_of(w, &round, w->stage.member - round.by, 0, &came, &in);
    char *half = staging_of(w) + (number + 1) % 2 * slice;
    const message m = {.out = number == 0 ? (const char *)op->send + sent + at : half,
                       .in = staging_of(w) + number % 2 * slice,
                       .out_bytes = tr__max_i64(0, tr__min_i64(slice, out - at)),
                       .in_bytes = tr__max_i64(0, tr__min_i64(slice, in - at))};
    tr_status status = exchange(w, &round, &m, err);
    if (status != TR_OK || m.in_bytes == 0) {
        return status;
    }
    if (number == rounds_of(w) - 1) {
        tr__stage_add(&w->stage, true, m.in, at, m.in_bytes);
    } else {
        tr__add(op->type, m.in, (const char *)op->send + came + at,
                m.in_bytes / w->element);
    }
    return TR_OK;
}

static tr_status reduce_by_ring(const work *w, tr_error *err) {
    const tr_comm_op *op = &w->stage.task.op;
    int64_t longest = tr__min_i64(op->shard, op->count) * w->element;
    int64_t slice = staging_bytes(w) / 2;
    tr_status status = TR_OK;
    for (int64_t at = 0; at < longest; at += slice) {
        for (int i = 0; status == TR_OK && i < rounds_of(w); i++) {
            status = ring_round(w, i, at, err);
        }
    }
    return status;
}

// A round along a tree (mpi_tree.c): sums go out, and others are added to this
// member's, which come into the other half of the staging.
static tr_status tree_round(const work *w, int number, tr_error *err) {
    const tr_comm_op *op = &w->stage.task.op;
    tr_round round = round_of(w, number);
    int members = w->stage.group.count, member = w->stage.member, apart = -round.by;
    int64_t first = tr__tree_at(op, members, member, apart);
    int64_t end = tr__tree_at(op, members, member, apart + round.parts);
    int64_t added = tr__tree_at(op, members, member, round.parts);
    const message m = {.out = staging_of(w) + first * w->element,
                       .in = staging_of(w) + TR_COMM_TREE_BYTES,
                       .out_bytes = (end - first) * w->element,
                       .in_bytes = added * w->element};
    tr_status status = exchange(w, &round, &m, err);
    if (status == TR_OK && added > 0) {
        tr__add(op->type, staging_of(w), m.in, added);
    }
    return status;
}

static tr_status reduce_by_tree(const work *w, tr_error *err) {
    const tr_comm_op *op = &w->stage.task.op;
    tr_status status = TR_OK;
    int64_t own = tr__tree_at(op, w->stage.group.count, w->stage.member, 1);
    tr__tree_begin(op, w->stage.group.count, w->stage.member, staging_of(w));
    for (int i = 0; status == TR_OK && i < rounds_of(w); i++) {
        status = tree_round(w, i, err);
    }
    if (own == 0) {
        return status;
    }
    if (op->add) {
        tr__add(op->type, op->recv, staging_of(w), own);
    } else {
        memcpy(op->recv, staging_of(w), (size_t)(own * w->element));
    }
    return status;
}

static tr_status in_rounds(const work *w, tr_error *err) {
    bool gathers = w->stage.task.op.kind == TR_COMM_GATHER;
    tr_status status = TR_OK;
    for (int i = 0; status == TR_OK && i < rounds_of(w); i++) {
        status = (gathers ? gather_round : reduce_round)(w, i, err);
    }
    return status;
}

// The own part of a gather goes to its place before it is sent on from there.
static tr_status run_stage(const work *w, tr_error *err) {
    static tr_status (*const sums[TR_COMM_ALGORITHMS])(const work *, tr_error *) = {
        [TR_COMM_DIRECT] = in_rounds,
        [TR_COMM_RING] = reduce_by_ring,
        [TR_COMM_TREE] = reduce_by_tree};
    const tr_comm_op *op = &w->stage.task.op;
    tr__stage_put_own(&w->stage);
    if (w->stage.group.count == 1) {
        return TR_OK;
    }
    return op->kind == TR_COMM_GATHER ? in_rounds(w, err) : sums[op->algorithm](w, err);
}

static tr_status check_task(const tr_comm *base, const tr_task *task, tr_error *err) {
    const tr_comm_op *op = &task->op;
    if (!tr__task_is_possible(task)) {
        return tr_fail(err, TR_INTERNAL,
                       "a reduction of %lld elements is too large for a tree",
                       (long long)op->count);
    }
    if (op->kind == TR_COMM_REDUCE && !base->places[op->channel].chunks) {
        return tr_fail(err, TR_INTERNAL, "a reduction without memory for its pieces");
    }
    return TR_OK;
}

static tr_status run_stages(work *w, const tr_stage *whole, tr_error *err) {
    tr_stages stages;
    tr_status status = check_task(&w->comm->base, &whole->task, err);
    if (status == TR_OK) {
        status = tr__stages_begin(&stages, &w->comm->base, whole, err);
    }
    while (status == TR_OK && tr__stages_next(&stages, &w->stage)) {
        status = run_stage(w, err);
    }
    return status;
}

// ---- of memory that messages do not reach

static tr_status await(const tr_ferrying *f,
                       tr_status (*look)(const tr_ferrying *, bool *, tr_error *),
                       tr_error *err) {
    static const double nap = 2e-5; // seconds
    bool done = false;
    tr_status status = look(f, &done, err);
    while (status == TR_OK && !done) {
        tr__sleep(nap);
        status = look(f, &done, err);
    }
    return status;
}

static tr_status ferry(work *w, const tr_stage *whole, tr_error *err) {
    tr_ferrying f;
    tr_status status = tr__ferrying_begin(&f, &w->comm->base, &whole->task,
                                          whole->group.count, whole->member, err);
    while (status == TR_OK && f.moved < f.slices) {
        tr_stage slice = *whole;
        slice.task = tr__ferrying_slice(&f);
        status = await(&f, tr__ferrying_look_in, err);
        status = status == TR_OK ? run_stages(w, &slice, err) : status;
        if (status == TR_OK) {
            tr__ferrying_moved(&f);
        }
    }
    return status == TR_OK && f.slices > 0 ? await(&f, tr__ferrying_look_out, err)
                                           : status;
}

tr_status tr__callback_run(tr_callback_comm *comm, const tr_task *task, tr_error *err) {
    const tr_comm_op *op = &task->op;
    const tr_comm_group all = {0, 1, comm->base.ranks};
    const tr_comm_group *group = op->group.count > 0 ? &op->group : &all;
    int from_first = comm->base.rank - group->first;
    tr_stage whole = {*task, *group,
                      from_first / (group->stride != 0 ? group->stride : 1)};
    work w = {.comm = comm, .element = (int64_t)tr__comm_type_bytes(op->type)};
    return (op->away ? ferry : run_stages)(&w, &whole, err);
}

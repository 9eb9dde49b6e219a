// Ranks that exchange by functions of the caller's: an operation is done, on the
// calling thread, when it is started. Who sends to whom, and in which order sums are
// made, is as over MPI (mpi_move.h), so that results have the same bits.
#include "comm/add.h"
#include "comm/stages.h"

#include "base/arguments.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"

#include <string.h>

typedef struct callback_comm {
    tr_comm base;
    tr_comm_functions functions;
    tr_error error; // of this rank or another; the comm is broken
    struct {
        tr_task_span *spans;
        int64_t from, count;
    } watched[TR_COMM_CHANNELS];
} callback_comm;

// A reduction's messages are added from the staging, which they have to themselves.
enum { PIECE = TR_COMM_WINDOW * TR_COMM_CHUNK };

static callback_comm *of(const tr_comm *comm) {
    return (callback_comm *)(uintptr_t)comm;
}

// ---- one operation

// A stage that is under way.
typedef struct work {
    callback_comm *comm;
    tr_stage stage;
    int64_t element; // bytes
} work;

// The part of a member, in bytes.
static void part_of(const work *w, int member, int64_t *first, int64_t *bytes) {
    tr__task_part(&w->stage.task, member, first, bytes);
    *first *= w->element;
    *bytes *= w->element;
}

static int rank_of(const work *w, int member) {
    return w->stage.group.first + w->stage.group.stride * member;
}

// One message each way, of which one may be empty.
typedef struct message {
    const void *out;
    void *in;
    int64_t out_bytes, in_bytes;
} message;

static tr_status exchange(const work *w, int step, const message *m, tr_error *err) {
    const tr_comm_functions *f = &w->comm->functions;
    int members = w->stage.group.count;
    int to = rank_of(w, (w->stage.member + step) % members);
    int from = rank_of(w, (w->stage.member + members - step) % members);
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

// A step of a gather: this member's part goes out, another's comes in.
static tr_status gather_step(const work *w, int step, tr_error *err) {
    const tr_comm_op *op = &w->stage.task.op;
    int sender = (w->stage.member + w->stage.group.count - step) % w->stage.group.count;
    int64_t own, first;
    message m = {0};
    part_of(w, w->stage.member, &own, &m.out_bytes);
    part_of(w, sender, &first, &m.in_bytes);
    m.out = op->send ? op->send : (char *)op->recv + own;
    m.in = (char *)op->recv + first;
    return exchange(w, step, &m, err);
}

// The first to come is added to this rank's own part; the result takes its place.
static void add_piece(const work *w, int step, int64_t offset, int64_t bytes) {
    const tr_comm_op *op = &w->stage.task.op;
    int64_t first, part, elements = bytes / w->element;
    part_of(w, w->stage.member, &first, &part);
    const char *own = (const char *)op->send + first + offset;
    const void *from = w->comm->base.places[op->channel].chunks;
    char *to = (char *)op->recv + offset;
    if (step == 1 && op->add) {
        tr__add(op->type, to, own, elements);
    }
    if (step > 1 || op->add || own == to) {
        tr__add(op->type, to, from, elements);
    } else {
        tr__add_to(op->type, to, own, from, elements);
    }
}

// A step of a reduction: another's part goes out, this member's comes in, in pieces.
static tr_status reduce_step(const work *w, int step, tr_error *err) {
    const tr_comm_op *op = &w->stage.task.op;
    int receiver = (w->stage.member + step) % w->stage.group.count;
    int64_t first, out, own, in;
    tr_status status = TR_OK;
    part_of(w, receiver, &first, &out);
    part_of(w, w->stage.member, &own, &in);
    for (int64_t at = 0; at < tr__max_i64(out, in) && status == TR_OK; at += PIECE) {
        const message m = {.out = (const char *)op->send + first + at,
                           .in = w->comm->base.places[op->channel].chunks,
                           .out_bytes = tr__max_i64(0, tr__min_i64(PIECE, out - at)),
                           .in_bytes = tr__max_i64(0, tr__min_i64(PIECE, in - at))};
        status = exchange(w, step, &m, err);
        if (status == TR_OK) {
            add_piece(w, step, at, m.in_bytes);
        }
    }
    return status;
}

// A gather's own part goes to its place; and so does a reduction's where there is no
// other.
static void copy_own(const work *w) {
    const tr_comm_op *op = &w->stage.task.op;
    int64_t first, bytes;
    part_of(w, w->stage.member, &first, &bytes);
    bool gathers = op->kind == TR_COMM_GATHER;
    char *to = (char *)op->recv + (gathers ? first : 0);
    if (!op->send || op->send == to || bytes == 0 ||
        !(gathers || w->stage.group.count == 1)) {
        return;
    }
    if (!gathers && op->add) {
        tr__add(op->type, to, op->send, bytes / w->element);
    } else {
        memcpy(to, op->send, (size_t)bytes);
    }
}

static tr_status run_stage(const work *w, tr_error *err) {
    tr_status status = TR_OK;
    for (int step = 1; status == TR_OK && step < w->stage.group.count; step++) {
        status = w->stage.task.op.kind == TR_COMM_GATHER ? gather_step(w, step, err)
                                                         : reduce_step(w, step, err);
    }
    if (status == TR_OK) {
        copy_own(w);
    }
    return status;
}

static tr_status check_op(const tr_comm *base, const tr_comm_op *op, tr_error *err) {
    if (op->away) {
        return tr_fail(err, TR_USAGE,
                       "ranks of the program's own functions exchange memory of the "
                       "host alone: set \"device\" to \"cpu\", or start the ranks by "
                       "MPI");
    }
    if (op->kind == TR_COMM_REDUCE && !base->places[op->channel].chunks) {
        return tr_fail(err, TR_INTERNAL, "a reduction without memory for its pieces");
    }
    return TR_OK;
}

static tr_status run(callback_comm *comm, const tr_task *task, tr_error *err) {
    const tr_comm_op *op = &task->op;
    const tr_comm_group all = {0, 1, comm->base.ranks};
    const tr_comm_group *group = op->group.count > 0 ? &op->group : &all;
    int from_first = comm->base.rank - group->first;
    tr_stage whole = {*task, *group,
                      from_first / (group->stride != 0 ? group->stride : 1)};
    work w = {.comm = comm, .element = (int64_t)tr__comm_type_bytes(op->type)};
    tr_stages stages;
    tr_status status = check_op(&comm->base, op, err);
    if (status == TR_OK) {
        status = tr__stages_begin(&stages, &comm->base, &whole, err);
    }
    while (status == TR_OK && tr__stages_next(&stages, &w.stage)) {
        status = run_stage(&w, err);
    }
    return status;
}

// ---- the transport

static void abandon(tr_comm *comm, const tr_error *error) {
    callback_comm *own = of(comm);
    if (own->error.status == TR_OK) {
        own->error = *error;
        own->functions.abandon(own->functions.user, error);
    }
}

static int64_t start(tr_comm *comm, const tr_task *task) {
    callback_comm *own = of(comm);
    tr_error mine = {0};
    tr_comm_channel channel = task->op.channel;
    int64_t at = comm->newest[channel]++ - own->watched[channel].from;
    tr_task_span span = {tr__seconds(), 0};
    if (own->error.status == TR_OK && run(own, task, &mine) != TR_OK) {
        tr_comm_abandon(comm, &mine);
    }
    span.end = tr__seconds();
    if (own->watched[channel].spans && at >= 0 && at < own->watched[channel].count) {
        own->watched[channel].spans[at] = span;
    }
    return comm->newest[channel];
}

static tr_status wait(tr_comm *comm, tr_comm_channel channel, int64_t ticket,
                      tr_error *err) {
    const tr_error *error = &of(comm)->error;
    (void)channel, (void)ticket;
    return error->status == TR_OK ? TR_OK
                                  : tr_fail(err, error->status, "%s", error->message);
}

static void watch(tr_comm *comm, tr_comm_channel channel, tr_task_span *spans,
                  int64_t count) {
    callback_comm *own = of(comm);
    own->watched[channel].spans = spans;
    own->watched[channel].from = comm->newest[channel];
    own->watched[channel].count = count;
}

static void beside(tr_comm *comm, const tr_comm_beside *what) {
    (void)comm, (void)what;
}

static bool is_broken(const tr_comm *comm) {
    return of(comm)->error.status != TR_OK;
}

// The others hear of it in the statistics of their step.
static void notice(tr_comm *comm) {
    (void)comm;
}

static bool speaks(const tr_comm *comm) {
    return comm->rank == 0;
}

static void close(tr_comm *comm) {
    const tr_comm_functions functions = of(comm)->functions;
    tr__comm_release(comm);
    if (functions.close) {
        functions.close(functions.user);
    }
}

static void end(tr_comm *comm, int exit_status) {
    (void)exit_status;
    close(comm);
}

static const tr_transport callback = {.start = start,
                                      .wait = wait,
                                      .watch = watch,
                                      .beside = beside,
                                      .is_broken = is_broken,
                                      .notice = notice,
                                      .abandon = abandon,
                                      .speaks = speaks,
                                      .close = close,
                                      .end = end};

// ---- the beginning

static tr_status check(const tr_comm_functions *functions, tr_comm **out,
                       tr_error *err) {
    static const char name[] = "tr_comm_create_callback";
    static const tr_sized known = {"tr_comm_functions", "TR_COMM_FUNCTIONS_INIT",
                                   sizeof *functions, 0};
    tr_status status = tr__need_sized(functions, &known, name, err);
    status = status == TR_OK ? tr__need(out, name, "out", err) : status;
    if (status != TR_OK) {
        return status;
    }
    if (functions->ranks < 1 || functions->rank < 0 ||
        functions->rank >= functions->ranks) {
        return tr_fail(err, TR_USAGE,
                       "%s: rank %d of %d: ranks are at least 1, and are numbered from "
                       "0",
                       name, functions->rank, functions->ranks);
    }
    return functions->exchange && functions->abandon
               ? TR_OK
               : tr_fail(err, TR_USAGE,
                         "%s: the functions exchange and abandon are "
                         "needed",
                         name);
}

// No memory on one rank is the others' error, too.
static tr_status prepare(callback_comm *own, tr_error *err) {
    tr_error mine = {0};
    const tr_comm_functions *f = &own->functions;
    own->base.transport = &callback;
    own->base.rank = f->rank;
    if (tr__comm_prepare(&own->base, &callback, f->rank, f->ranks, &mine) != TR_OK) {
        tr_comm_abandon(&own->base, &mine);
        return tr_fail(err, mine.status, "%s", mine.message);
    }
    return tr__comm_count_threads(&own->base, err);
}

tr_status tr_comm_create_callback(const tr_comm_functions *functions, tr_comm **out,
                                  tr_error *err) {
    tr_status status = check(functions, out, err);
    if (status != TR_OK) {
        return status;
    }
    callback_comm *own = tr__calloc(1, sizeof *own);
    *out = NULL;
    if (!own) {
        tr_error mine = {0};
        tr_fail(&mine, TR_MEMORY, "rank %d: no memory for the ranks", functions->rank);
        functions->abandon(functions->user, &mine);
        return tr_fail(err, TR_MEMORY, "no memory for the ranks");
    }
    own->functions = *functions;
    status = prepare(own, err);
    if (status != TR_OK) {
        tr__comm_release(&own->base);
        return status;
    }
    *out = &own->base;
    return TR_OK;
}

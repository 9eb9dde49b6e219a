// Ranks that exchange by functions of the caller's: an operation is done, on the
// calling thread, when it is started.
#include "comm/callback.h"

#include "base/arguments.h"
#include "base/clock.h"
#include "base/memory.h"

static tr_callback_comm *of(const tr_comm *comm) {
    return (tr_callback_comm *)(uintptr_t)comm;
}

// ---- the transport

static void abandon(tr_comm *comm, const tr_error *error) {
    tr_callback_comm *own = of(comm);
    if (own->error.status == TR_OK) {
        own->error = *error;
        own->functions.abandon(own->functions.user, error);
    }
}

static int64_t start(tr_comm *comm, const tr_task *task) {
    tr_callback_comm *own = of(comm);
    tr_error mine = {0};
    tr_comm_channel channel = task->op.channel;
    int64_t at = comm->newest[channel]++ - own->watched[channel].from;
    tr_task_span span = {tr__seconds(), 0};
    if (own->error.status == TR_OK && tr__callback_run(own, task, &mine) != TR_OK) {
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
    tr_callback_comm *own = of(comm);
    own->watched[channel].spans = spans;
    own->watched[channel].from = comm->newest[channel];
    own->watched[channel].count = count;
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
                                      .is_broken = is_broken,
                                      .notice = notice,
                                      .abandon = abandon,
                                      .speaks = speaks,
                                      .close = close,
                                      .end = end,
                                      .chunks = TR_CALLBACK_CHUNKS};

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
static tr_status prepare(tr_callback_comm *own, tr_error *err) {
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
    tr_callback_comm *own = tr__calloc(1, sizeof *own);
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

// Ranks that exchange by functions of the caller's: operations are done one after the
// other, by a thread of the library's where the functions allow that, so that they go
// on beside computing; else on the calling thread, when they are started.
#include "comm/callback.h"

#include "base/arguments.h"
#include "base/memory.h"
#include "base/thread.h"

#include <string.h>

// How long the thread rests at most, and, where ranks have failed, how long the end
// waits for it: an exchange of its may still wait for another rank. In seconds.
static const double rest_most = 1;
enum { JOIN_MOST = 2 };

static tr_callback_comm *of(const tr_comm *comm) {
    return (tr_callback_comm *)(uintptr_t)comm;
}

static tr_queue *queue_of(const tr_comm *comm, tr_comm_channel channel) {
    return &of(comm)->channels[channel].queue;
}

// The thread rests here.
static tr_queue *rest_of(const tr_comm *comm) {
    return queue_of(comm, TR_COMM_RANKS);
}

static void init_queues(tr_callback_comm *own) {
    for (int c = 0; c < TR_COMM_CHANNELS; c++) {
        tr_callback_channel *channel = &own->channels[c];
        tr__queue_init(&channel->queue,
                       &(tr_queue_options){.ring = channel->tasks,
                                           .size = sizeof *channel->tasks,
                                           .capacity = TR_COMM_QUEUE,
                                           .counted_on = true});
    }
}

static void release(tr_callback_comm *own) {
    for (int c = 0; c < TR_COMM_CHANNELS; c++) {
        tr__queue_destroy(&own->channels[c].queue);
    }
    tr__comm_release(&own->base);
}

// ---- the transport

static void abandon(tr_comm *comm, const tr_error *error) {
    tr_callback_comm *own = of(comm);
    if (!atomic_exchange(&own->abandoned, true)) {
        for (int c = 0; c < TR_COMM_CHANNELS; c++) {
            tr__queue_break(&own->channels[c].queue, error);
        }
        own->functions.abandon(own->functions.user, error);
    }
}

// Does the task whose turn it is. false: it has not been started.
static bool serve(tr_callback_comm *own) {
    for (int c = 0; c < TR_COMM_CHANNELS; c++) {
        tr_queue *queue = &own->channels[c].queue;
        tr_callback_task next;
        tr_error mine = {0};
        if (!tr__queue_next(queue, 0, &next) || next.turn != own->done) {
            continue;
        }
        own->done++;
        if (tr__callback_run(own, &next.task, &mine) != TR_OK) {
            tr_comm_abandon(&own->base, &mine);
        }
        tr__queue_finish(queue);
        return true;
    }
    return false;
}

static void *serve_all(void *argument) {
    tr_callback_comm *own = argument;
    do {
        tr__queue_rest(rest_of(&own->base), rest_most);
        while (serve(own)) {
        }
    } while (!atomic_load(&own->leaves));
    return NULL;
}

static int64_t start(tr_comm *comm, const tr_task *task) {
    tr_callback_comm *own = of(comm);
    tr_comm_channel channel = task->op.channel;
    const tr_callback_task next = {*task, own->started++};
    comm->newest[channel] = tr__queue_put(queue_of(comm, channel), &next);
    if (!own->has_thread) {
        serve(own);
    } else if (channel != TR_COMM_RANKS) {
        tr__queue_poke(rest_of(comm));
    }
    return comm->newest[channel];
}

static tr_status wait(tr_comm *comm, tr_comm_channel channel, int64_t ticket,
                      tr_error *err) {
    return tr__queue_wait(queue_of(comm, channel), ticket, err);
}

static void watch(tr_comm *comm, tr_comm_channel channel, tr_task_span *spans,
                  int64_t count) {
    tr__queue_watch(queue_of(comm, channel), spans, count);
}

static bool is_broken(const tr_comm *comm) {
    return atomic_load(&rest_of(comm)->broken);
}

// The others hear of it in the statistics of their step.
static void notice(tr_comm *comm) {
    (void)comm;
}

static bool speaks(const tr_comm *comm) {
    return comm->rank == 0;
}

// Waits for the thread. false: it does not come back.
static bool join(tr_callback_comm *own) {
    if (!own->has_thread) {
        return true;
    }
    atomic_store(&own->leaves, true);
    tr__queue_poke(rest_of(&own->base));
    return is_broken(&own->base) ? tr__thread_join_within(own->thread, JOIN_MOST)
                                 : pthread_join(own->thread, NULL) == 0;
}

// A thread that does not come back keeps what it uses.
static void shut(tr_comm *comm) {
    const tr_comm_functions functions = of(comm)->functions;
    if (!join(of(comm))) {
        return;
    }
    release(of(comm));
    if (functions.close) {
        functions.close(functions.user);
    }
}

static void end(tr_comm *comm, int exit_status) {
    (void)exit_status;
    shut(comm);
}

static const tr_transport callback = {.start = start,
                                      .wait = wait,
                                      .watch = watch,
                                      .is_broken = is_broken,
                                      .notice = notice,
                                      .abandon = abandon,
                                      .speaks = speaks,
                                      .close = shut,
                                      .end = end,
                                      .chunks = TR_CALLBACK_CHUNKS};

// ---- the beginning

static tr_status start_thread(tr_callback_comm *own, tr_error *err) {
    int result = tr__thread_start(serve_all, own, &own->thread);
    own->has_thread = result == 0;
    return own->has_thread
               ? TR_OK
               : tr_fail(err, TR_INTERNAL, "cannot start the communication thread: %s",
                         strerror(result));
}

static tr_status check(const tr_comm_functions *functions, tr_comm **out,
                       tr_error *err) {
    static const char name[] = "tr_comm_create_callback";
    static const tr_sized known = {"tr_comm_functions", "TR_COMM_FUNCTIONS_INIT",
                                   sizeof *functions,
                                   offsetof(tr_comm_functions, any_thread)};
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

// An error of one rank is the others', too.
static tr_status prepare(tr_callback_comm *own, tr_error *err) {
    tr_error mine = {0};
    const tr_comm_functions *f = &own->functions;
    own->base.transport = &callback;
    own->base.rank = f->rank;
    tr_status status =
        tr__comm_prepare(&own->base, &callback, f->rank, f->ranks, &mine);
    if (status == TR_OK && f->any_thread) {
        status = start_thread(own, &mine);
    }
    if (status != TR_OK) {
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
    memcpy(&own->functions, functions, functions->size);
    init_queues(own);
    status = prepare(own, err);
    if (status != TR_OK) {
        if (join(own)) {
            release(own);
        }
        return status;
    }
    *out = &own->base;
    return TR_OK;
}

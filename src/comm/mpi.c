#include "comm/mpi.h"

#include "comm/mpi_world.h"

#include "base/clock.h"
#include "base/memory.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { HUNG_SECONDS = 8 };

static tr_world *world_of(const tr_comm *comm) {
    return (tr_world *)(uintptr_t)comm;
}

static void init_queues(tr_world *w) {
    for (int c = 0; c < TR_COMM_CHANNELS; c++) {
        tr_world_channel *channel = &w->channels[c];
        tr__queue_init(&channel->queue,
                       &(tr_queue_options){
                           .ring = channel->tasks,
                           .size = sizeof *channel->tasks,
                           .capacity = TR_COMM_QUEUE,
                           .patience = HUNG_SECONDS,
                           .hung_status = TR_COMM,
                           .hung_message = "a call of MPI has not returned",
                           .counted_on = c == TR_COMM_SEND,
                       });
    }
}

static void destroy_queues(tr_world *w) {
    for (int c = 0; c < TR_COMM_CHANNELS; c++) {
        tr__queue_destroy(&w->channels[c].queue);
    }
}

static int64_t start(tr_comm *comm, const tr_task *task) {
    tr_world *w = world_of(comm);
    tr_comm_channel channel = task->op.channel;
    comm->newest[channel] = tr__queue_put(&w->channels[channel].queue, task);
    if (channel != TR_COMM_RANKS) { // where the thread does not rest
        tr__queue_poke(tr__world_queue(w));
    }
    return comm->newest[channel];
}

static tr_status wait(tr_comm *comm, tr_comm_channel channel, int64_t ticket,
                      tr_error *err) {
    return tr__queue_wait(&world_of(comm)->channels[channel].queue, ticket, err);
}

static bool is_broken(const tr_comm *comm) {
    return atomic_load(&tr__world_queue(world_of(comm))->broken);
}

static void notice(tr_comm *comm) {
    tr__queue_poke(tr__world_queue(world_of(comm)));
}

// Comes back when the others have been told.
static void fail_as(tr_world *w, const tr_error *error, int speaker) {
    if (!is_broken(&w->base)) {
        w->own_error = *error;
        w->own_speaker = speaker;
        tr__world_order(w, TR_ORDER_FAIL);
        tr__queue_wait(tr__world_queue(w), INT64_MAX, NULL);
    }
}

static void abandon(tr_comm *comm, const tr_error *error) {
    fail_as(world_of(comm), error, 0);
}

// ---- the end

// How long a rank leaves it to another to speak, in seconds: lower ranks come first.
// Open MPI takes about a second to end the others once one has ended.
static double patience_of(int rank) {
    static const double patience = 1.5, stagger = 1.5;
    return patience + stagger * (rank < 8 ? rank : 8);
}

// The rank that the error names as its speaker speaks, and has the launcher end the
// others. Whoever is still there after a while takes its place, lower ranks first.
static bool speaks(const tr_comm *comm) {
    const tr_world *w = world_of(comm);
    if (!is_broken(comm)) {
        return comm->rank == 0;
    }
    double until = tr__seconds();
    signal(SIGTERM, SIG_DFL); // the launcher's: nothing is left to be done
    if (comm->rank != atomic_load(&w->speaker)) {
        until += patience_of(comm->rank);
    }
    while (tr__seconds() < until) {
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return true;
}

// A start that took too long; the process is to end, with its thread in MPI.
static atomic_bool start_failed;

bool tr__mpi_speaks_unstarted(int rank) {
    static const double moment = 0.5, turn = 3; // seconds
    if (rank <= 0) {
        return true;
    }
    if (!atomic_load(&start_failed)) {
        // Where the first rank to end ends the others, rank 0 is to have spoken.
        tr__sleep(moment);
        return false;
    }
    // Rank 0 may be the one that does not come. Where it has spoken, or another one
    // that comes first, the launcher ends this one meanwhile.
    tr__sleep(turn * (rank < 8 ? rank : 8));
    return true;
}

static void release(tr_world *w) {
    w->guard->world = NULL;
    tr__control_free(&w->talk);
    destroy_queues(w);
    tr__comm_release(&w->base);
}

// A thread that does not come back from MPI keeps what it uses.
static void shut(tr_comm *comm) {
    tr_world *w = world_of(comm);
    if (!is_broken(comm)) {
        tr__comm_barrier(comm, NULL);
    }
    tr__world_order(w, TR_ORDER_LEAVE);
    if (tr__world_join(w)) {
        release(w);
    } else {
        w->guard->world = NULL;
    }
}

static void end(tr_comm *comm, int exit_status) {
    tr_world *w = world_of(comm);
    if (is_broken(comm)) {
        fflush(NULL);
        w->exit_status = exit_status;
        tr__world_order(w, TR_ORDER_ABORT);
        tr__world_join(w); // it does not return
    }
    shut(comm);
}

// A process that exits while the others count on it. No launcher does this for us: when
// a rank exits with status 0 and without MPI_Finalize, Open MPI's ends the job with 1,
// and MPICH's with 9 or with 0, as if all had been done. Not in a child, which has no
// thread, nor in the thread itself, where MPI has given up.
static void at_exit(int exit_status, void *argument) {
    tr_world_guard *guard = argument;
    tr_world *w = guard->world;
    tr_error error = {0};
    if (!w || guard->process != getpid() || pthread_equal(pthread_self(), w->thread)) {
        return;
    }
    tr_fail(&error, TR_COMM, "rank %d: has exited with status %d before the end",
            w->base.rank, exit_status);
    fail_as(w, &error, w->base.rank == 0 ? 1 : 0);
    if (speaks(&w->base)) {
        end(&w->base, exit_status != 0 ? exit_status : tr_status_exit(TR_COMM));
    }
}

static void watch(tr_comm *comm, tr_comm_channel channel, tr_task_span *spans,
                  int64_t count) {
    tr__queue_watch(&world_of(comm)->channels[channel].queue, spans, count);
}

static void beside(tr_comm *comm, const tr_comm_beside *of) {
    tr__world_beside(world_of(comm), of);
}

static const tr_transport mpi = {.start = start,
                                 .wait = wait,
                                 .watch = watch,
                                 .beside = beside,
                                 .is_broken = is_broken,
                                 .notice = notice,
                                 .abandon = abandon,
                                 .speaks = speaks,
                                 .close = shut,
                                 .end = end};

// ---- the beginning

static tr_status prepare(tr_world *w, tr_error *err) {
    tr_error mine = {0};
    tr_comm *base = &w->base;
    w->guard->world = w;
    base->transport = &mpi;
    if (tr__comm_prepare(base, &mpi, base->rank, base->ranks, &mine) != TR_OK) {
        tr_comm_abandon(base, &mine);
        return tr_fail(err, mine.status, "%s", mine.message);
    }
    return tr__comm_count_threads(base, err);
}

tr_status tr__mpi_open(const tr_process_launcher *launcher, tr_comm **out,
                       tr_error *err) {
    tr_world *w = tr__calloc(1, sizeof *w);
    tr_world_guard *guard = tr__calloc(1, sizeof *guard); // until the process ends
    *out = NULL;
    if (!w || !guard || on_exit(at_exit, guard) != 0) {
        tr__free(w);
        tr__free(guard);
        return tr_fail(err, TR_MEMORY, "no memory for the ranks");
    }
    guard->process = getpid();
    w->guard = guard;
    w->launcher = *launcher;
    init_queues(w);
    tr_status status = tr__world_start(w, err);
    if (status != TR_OK) {
        if (w->stuck) {
            atomic_store(&start_failed, true);
            return status;
        }
        destroy_queues(w);
        tr__free(w);
        return status;
    }
    status = prepare(w, err);
    if (status != TR_OK) {
        shut(&w->base);
        return status;
    }
    *out = &w->base;
    return TR_OK;
}

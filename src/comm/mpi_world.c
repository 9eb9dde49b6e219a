#include "comm/mpi_world.h"

#include "comm/mpi_check.h"

#include "base/clock.h"
#include "base/parallel.h"
#include "base/thread.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

// Seconds.
static const double idle_rest = 0.01;  // between two looks at the others' news
static const double nap = 1e-3;        // the same at the end
static const double spread_least = .2; // news of an error are given so long to leave
static const double spread_most = .6;
static const double print_pause = .1; // launchers drop what they have not passed on
static const double bye_most = TR_SILENCE;
static const double ucx_rest = .2; // before MPI_Finalize, where MPICH uses UCX
enum { JOIN_MOST = 3, FINALIZE_MOST = 60 };

// MPI waits without end for a rank that does not come: this long it may, in seconds.
static const char limit_name[] = "TRANCHE_START_SECONDS";
static const double limit_default = 300, limit_most = 1e6;

// ---- the beginning

// "Open MPI v4.1.4", of a text that goes on for lines.
static void library_name(char *name, size_t size) {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(text, &length);
    text[strcspn(text, ",\n")] = '\0';
    for (char *c = text; *c; c++) {
        *c = *c == '\t' ? ' ' : *c;
    }
    snprintf(name, size, "%s", text);
}

static tr_status check_ranks(const tr_process_launcher *launcher, int rank, int ranks,
                             tr_error *err) {
    char name[128];
    if (launcher->ranks < 0 || (launcher->ranks == ranks && launcher->rank == rank)) {
        return TR_OK;
    }
    library_name(name, sizeof name);
    return tr_fail(
        err, TR_COMM,
        "%s has started %d ranks, but %s, which this program was built with, "
        "finds %d: start it with that MPI's own mpirun",
        launcher->name, launcher->ranks, name, ranks);
}

static tr_status make_comm(MPI_Comm *comm, tr_error *err) {
    tr_status status =
        tr__mpi_check(MPI_Comm_dup(MPI_COMM_WORLD, comm), "MPI_Comm_dup", err);
    if (status == TR_OK) {
        MPI_Comm_set_errhandler(*comm, MPI_ERRORS_RETURN);
    }
    return status;
}

static tr_status begin(tr_world *w, tr_error *err) {
    int got, rank = 0, ranks = 0;
    tr_status status = tr__mpi_check(
        MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &got), "MPI_Init_thread", err);
    if (status != TR_OK) {
        return status;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    status = check_ranks(&w->launcher, rank, ranks, err);
    if (status != TR_OK) {
        MPI_Finalize();
        return status;
    }
    w->base.rank = rank;
    w->base.ranks = ranks;
    status = make_comm(&w->data, err);
    if (status == TR_OK) {
        status = make_comm(&w->control, err);
    }
    if (status == TR_OK) {
        status = tr__control_begin(&w->talk, &w->base, w->control, err);
    }
    for (int c = 0; c < TR_COMM_CHANNELS; c++) {
        w->channels[c].ferry.mover = (tr_mpi_mover){
            .base = &w->base, .comm = w->data, .channel = (tr_comm_channel)c};
    }
    return status;
}

// ---- work

// Rests the longer the longer nothing has happened: what arrives is seen soon, measured
// by the time that it took, and a thread that waits long leaves the core to those that
// compute.
static void rest(double idle_since) {
    static const double least = 50e-6, most = 4e-3;
    double idle = tr__seconds() - idle_since, seconds = idle / 32;
    if (idle < least) {
        sched_yield();
        return;
    }
    seconds = seconds < least ? least : seconds > most ? most : seconds;
    tr__sleep(seconds);
}

static void fail(tr_world *w, const tr_error *error) {
    tr_error led = {0};
    tr_fail(&led, error->status, "rank %d: %s", w->base.rank, error->message);
    tr__control_fail(&w->talk, &led, 0);
}

// Some work on a channel's tasks; returns whether there was any to do.
static bool work_on(tr_world *w, tr_world_channel *channel) {
    tr_task task;
    tr_error error = {0};
    tr_status status = TR_OK;
    bool moved = false, finished = false;
    if (!channel->busy) {
        if (!tr__queue_next(&channel->queue, 0, &task)) {
            return false;
        }
        status = tr__ferry_begin(&channel->ferry, &task, &error);
        channel->busy = moved = true;
    }
    if (status == TR_OK) {
        bool more;
        status = tr__ferry_advance(&channel->ferry, &more, &finished, &error);
        moved = moved || more;
    }
    if (status != TR_OK) {
        fail(w, &error);
    }
    if (finished) {
        channel->busy = false;
        tr__queue_finish(&channel->queue);
    }
    return moved;
}

static bool work(tr_world *w) {
    bool moved = false;
    for (int c = 0; c < TR_COMM_CHANNELS; c++) {
        moved = work_on(w, &w->channels[c]) || moved;
    }
    return moved;
}

static bool is_busy(const tr_world *w) {
    bool busy = false;
    for (int c = 0; c < TR_COMM_CHANNELS; c++) {
        busy = busy || w->channels[c].busy;
    }
    return busy;
}

// ---- what goes on beside messages

static void look_beside(tr_world *w) {
    tr_error error = {0};
    tr_status status = TR_OK;
    pthread_mutex_lock(&w->beside_lock);
    if (w->beside.look) {
        status = w->beside.look(w->beside.user, &error);
    }
    pthread_mutex_unlock(&w->beside_lock);
    if (status != TR_OK) {
        fail(w, &error);
    }
}

static void let_go_beside(tr_world *w) {
    pthread_mutex_lock(&w->beside_lock);
    if (w->beside.let_go) {
        w->beside.let_go(w->beside.user);
    }
    w->beside = (tr_comm_beside){0};
    pthread_mutex_unlock(&w->beside_lock);
}

void tr__world_beside(tr_world *w, const tr_comm_beside *beside) {
    pthread_mutex_lock(&w->beside_lock);
    w->beside = *beside;
    pthread_mutex_unlock(&w->beside_lock);
    if (atomic_load(&tr__world_queue(w)->broken)) {
        let_go_beside(w);
    }
}

// ---- the loop

// Until there is an error or an order.
static void serve(tr_world *w) {
    double idle_since = tr__seconds();
    while (atomic_load(&w->order) == TR_ORDER_NONE &&
           w->talk.news.error.status == TR_OK) {
        if (work(w)) {
            idle_since = tr__seconds();
        } else if (is_busy(w)) {
            rest(idle_since);
        } else {
            tr__queue_rest(tr__world_queue(w), idle_rest);
            idle_since = tr__seconds();
        }
        tr__control_poll(&w->talk);
        look_beside(w);
        for (int c = 0; c < TR_COMM_CHANNELS; c++) {
            tr__queue_live(&w->channels[c].queue);
        }
    }
    if (atomic_load(&w->order) == TR_ORDER_FAIL) {
        tr__control_fail(&w->talk, &w->own_error, w->own_speaker);
    }
}

// ---- the end

// The error goes to the others first; then the caller hears of it, and MPI is not
// called again, because the caller may free what messages under way still point at.
static void break_off(tr_world *w) {
    double begin_time = tr__seconds(), passed = 0;
    for (int c = 0; c < TR_COMM_CHANNELS; c++) {
        if (w->channels[c].busy) {
            tr__mover_cancel(&w->channels[c].ferry.mover);
        }
    }
    while (passed < spread_least ||
           (passed < spread_most && !tr__control_is_told(&w->talk))) {
        tr__control_poll(&w->talk);
        tr__sleep(nap);
        passed = tr__seconds() - begin_time;
    }
    atomic_store(&w->speaker, w->talk.news.speaker);
    for (int c = TR_COMM_CHANNELS; c-- > 0;) { // the first tells that it is broken
        tr__queue_break(&w->channels[c].queue, &w->talk.news.error);
    }
    let_go_beside(w);
}

static void await_end(tr_world *w) {
    tr_world_order order = TR_ORDER_NONE;
    while (order != TR_ORDER_LEAVE && order != TR_ORDER_ABORT) {
        tr__queue_rest(tr__world_queue(w), spread_most);
        order = atomic_load(&w->order);
    }
    if (order == TR_ORDER_ABORT) {
        tr__sleep(print_pause);
        MPI_Abort(MPI_COMM_WORLD, w->exit_status);
    }
}

// MPICH closes UCX's connections and then waits for the others in a barrier that moves
// no messages. A connection that UCX's own thread has not finished making is then never
// closed, and the ranks hang (MPICH 4.0.2 with UCX 1.13 over TCP between two hosts: ten
// of twenty-five programs that exchanged and ended at once, none of sixty that rested).
static void let_ucx_finish(void) {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(text, &length);
    if (strstr(text, "ch4:ucx")) {
        tr__sleep(ucx_rest);
    }
}

// All ranks have come to the end: nobody waits for data any more.
static void finalize(tr_world *w) {
    double begin_time = tr__seconds();
    tr__control_bye(&w->talk);
    do {
        tr__control_poll(&w->talk);
        if (w->talk.news.error.status != TR_OK ||
            tr__seconds() - begin_time > bye_most) {
            return;
        }
        tr__sleep(nap);
    } while (!tr__control_is_over(&w->talk));
    let_ucx_finish();
    MPI_Comm_free(&w->control);
    MPI_Comm_free(&w->data);
    MPI_Finalize();
}

static void *run(void *argument) {
    tr_world *w = argument;
    tr__parallel_threads_set(1); // of this thread: the cores belong to the step
    prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL); // nanoseconds: rests are short
    tr_status status = begin(w, &w->opened);
    sem_post(&w->open);
    if (status != TR_OK) {
        return NULL;
    }
    serve(w);
    if (w->talk.news.error.status != TR_OK) {
        break_off(w);
        await_end(w);
    } else {
        finalize(w);
    }
    return NULL;
}

static tr_status read_limit(double *seconds, tr_error *err) {
    const char *text = getenv(limit_name);
    char *end = NULL;
    *seconds = text && *text ? strtod(text, &end) : limit_default;
    if (text && *text && (*end != '\0' || !(*seconds >= 0 && *seconds <= limit_most))) {
        return tr_fail(err, TR_USAGE,
                       "%s is '%.40s' in the environment: give a number of seconds up "
                       "to %g, or 0 for no limit",
                       limit_name, text, limit_most);
    }
    return TR_OK;
}

// Waits until the thread has MPI up, or knows why not; false: the time is over.
static bool await_open(tr_world *w, double seconds) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)ceil(seconds > 0 ? seconds : limit_most);
    int result;
    do {
        result = sem_timedwait(&w->open, &until);
    } while (result != 0 && errno == EINTR); // a signal
    return result == 0;
}

tr_status tr__world_start(tr_world *w, tr_error *err) {
    double limit;
    tr_status status = read_limit(&limit, err);
    if (status != TR_OK) {
        return status;
    }
    sem_init(&w->open, 0, 0);
    pthread_mutex_init(&w->beside_lock, NULL);
    int result = tr__thread_start(run, w, &w->thread);
    if (result != 0) {
        sem_destroy(&w->open);
        return tr_fail(err, TR_INTERNAL, "cannot start the communication thread: %s",
                       strerror(result));
    }
    if (!await_open(w, limit)) {
        w->stuck = true;
        return tr_fail(
            err, TR_COMM,
            "MPI has not connected the ranks within %g s: one of them has died, is "
            "stopped, or cannot be reached (%s sets this limit, and 0 removes it)",
            limit, limit_name);
    }
    sem_destroy(&w->open);
    if (w->opened.status != TR_OK) {
        pthread_join(w->thread, NULL);
        return tr_fail(err, w->opened.status, "%s", w->opened.message);
    }
    return TR_OK;
}

void tr__world_order(tr_world *w, tr_world_order order) {
    atomic_store(&w->order, order);
    tr__queue_poke(tr__world_queue(w));
}

bool tr__world_join(tr_world *w) {
    // Among healthy ranks the end takes what MPI takes for it.
    bool broken = atomic_load(&tr__world_queue(w)->broken);
    return tr__thread_join_within(w->thread, broken ? JOIN_MOST : FINALIZE_MOST);
}

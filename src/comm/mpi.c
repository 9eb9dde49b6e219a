#include "comm/mpi.h"

#include "comm/mpi_world.h"

#include "base/memory.h"

static tr_world *world_of(const tr_comm *comm) {
    return (tr_world *)(uintptr_t)comm;
}

static int64_t start(tr_comm *comm, const tr_task *task) {
    comm->newest = tr__queue_put(&world_of(comm)->queue, task);
    return comm->newest;
}

static tr_status wait(tr_comm *comm, int64_t ticket, tr_error *err) {
    return tr__queue_wait(&world_of(comm)->queue, ticket, err);
}

static bool is_broken(const tr_comm *comm) {
    return atomic_load(&world_of(comm)->queue.broken);
}

static void notice(tr_comm *comm) {
    tr__queue_poke(&world_of(comm)->queue);
}

static void order(tr_world *w, tr_order what) {
    atomic_store(&w->order, what);
    tr__queue_poke(&w->queue);
}

static void abandon(tr_comm *comm, const tr_error *error) {
    tr_world *w = world_of(comm);
    if (!is_broken(comm)) {
        w->own_error = *error;
        order(w, TR_ORDER_FAIL);
        tr__queue_wait(&w->queue, INT64_MAX, NULL);
    }
}

static bool speaks(const tr_comm *comm) {
    const tr_world *w = world_of(comm);
    return is_broken(comm) ? atomic_load(&w->speaks) : comm->rank == 0;
}

static void release(tr_world *w) {
    tr__control_free(&w->talk);
    tr__queue_destroy(&w->queue);
    tr__comm_release(&w->base);
}

// A thread that does not come back from MPI keeps what it uses.
static void close(tr_comm *comm) {
    tr_world *w = world_of(comm);
    if (!is_broken(comm)) {
        tr__comm_barrier(comm, NULL);
        order(w, TR_ORDER_LEAVE);
    }
    if (tr__world_join(w)) {
        release(w);
    }
}

static const tr_transport mpi = {start,   wait,   is_broken, notice,
                                 abandon, speaks, close};

tr_status tr__mpi_open(const tr_launcher *launcher, tr_comm **out, tr_error *err) {
    tr_world *w = tr__calloc(1, sizeof *w);
    tr_error mine = {0};
    *out = NULL;
    if (!w) {
        return tr_fail(err, TR_MEMORY, "no memory for the ranks");
    }
    w->launcher = *launcher;
    tr__queue_init(&w->queue);
    tr_status status = tr__world_start(w, err);
    if (status != TR_OK) {
        tr__queue_destroy(&w->queue);
        tr__free(w);
        return status;
    }
    if (tr__comm_prepare(&w->base, &mpi, w->base.rank, w->base.ranks, &mine) != TR_OK) {
        w->base.transport = &mpi;
        tr_comm_abandon(&w->base, &mine);
        close(&w->base);
        return tr_fail(err, mine.status, "%s", mine.message);
    }
    status = tr__comm_count_threads(&w->base, &w->base.threads, err);
    if (status != TR_OK) {
        close(&w->base);
        return status;
    }
    *out = &w->base;
    return TR_OK;
}

// The communication thread: MPI's beginning, work and end.
#ifndef TR_COMM_MPI_WORLD_H
#define TR_COMM_MPI_WORLD_H

#include "comm/launcher.h"
#include "comm/mpi_control.h"
#include "comm/mpi_ferry.h"

#include "base/queue.h"

#include <pthread.h>
#include <semaphore.h>

// What the caller asks of the thread, besides tasks.
typedef enum tr_world_order {
    TR_ORDER_NONE,
    TR_ORDER_FAIL,  // tell `own_error`, and break off
    TR_ORDER_LEAVE, // the end
    TR_ORDER_ABORT, // the end of all, by the launcher, with `exit_status`
} tr_world_order;

// What outlives a world: the exit of the process looks at it.
typedef struct tr_world_guard {
    struct tr_world *world; // NULL: closed
    pid_t process;
} tr_world_guard;

typedef struct tr_world_channel {
    tr_queue queue;
    tr_task tasks[TR_COMM_QUEUE]; // the queue's
    tr_mpi_ferry ferry;           // the thread's own
    bool busy;                    // a task is under way; likewise
} tr_world_channel;

typedef struct tr_world {
    tr_comm base;
    tr_world_guard *guard;
    // The thread rests at the queue of the first one.
    tr_world_channel channels[TR_COMM_CHANNELS];
    tr_process_launcher launcher;
    pthread_t thread;
    _Atomic tr_world_order order;
    tr_error own_error; // with TR_ORDER_FAIL
    int own_speaker;    // likewise
    int exit_status;    // with TR_ORDER_ABORT
    atomic_int speaker; // of the error, once the queue is broken
    pthread_mutex_t beside_lock;
    tr_comm_beside beside; // without functions: nothing, or it has been let go

    // Open: the caller waits for `open`, then reads `opened`.
    sem_t open;
    tr_error opened;
    bool stuck; // the time was over

    // The thread's own.
    MPI_Comm data, control;
    tr_control talk;
} tr_world;

// The queue that says whether the world is broken.
static inline tr_queue *tr__world_queue(tr_world *world) {
    return &world->channels[TR_COMM_RANKS].queue;
}

// Starts the thread and waits until MPI is up and fits the launcher. TR_COMM, with
// `stuck` set: MPI has not come up within the time that the environment gives it, and
// the thread, which is still in there, keeps the world.
tr_status tr__world_start(tr_world *world, tr_error *err);
void tr__world_order(tr_world *world, tr_world_order order);
// tr__comm_beside. Where the world is broken, it is let go at once.
void tr__world_beside(tr_world *world, const tr_comm_beside *beside);
// Waits for the thread's end; false: it does not come.
bool tr__world_join(tr_world *world);

#endif

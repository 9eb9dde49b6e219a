// The communication thread: MPI's beginning, work and end.
#ifndef TR_COMM_MPI_WORLD_H
#define TR_COMM_MPI_WORLD_H

#include "comm/launcher.h"
#include "comm/mpi_control.h"
#include "comm/mpi_move.h"
#include "comm/queue.h"

#include <pthread.h>
#include <semaphore.h>

// What the caller asks of the thread, besides tasks.
typedef enum tr_order { TR_ORDER_NONE, TR_ORDER_FAIL, TR_ORDER_LEAVE } tr_order;

typedef struct tr_world {
    tr_comm base;
    tr_queue queue;
    tr_launcher launcher;
    pthread_t thread;
    _Atomic tr_order order;
    tr_error own_error; // with TR_ORDER_FAIL
    atomic_bool speaks; // tells the user of an error

    // Open: the caller waits for `open`, then reads `opened`.
    sem_t open;
    tr_error opened;

    // The thread's own.
    MPI_Comm data, control;
    tr_mover mover;
    tr_control talk;
    bool busy; // a task is under way
} tr_world;

// Starts the thread and waits until MPI is up and fits the launcher.
tr_status tr__world_start(tr_world *world, tr_error *err);
// Waits for the thread's end; false: it does not come.
bool tr__world_join(tr_world *world);

#endif

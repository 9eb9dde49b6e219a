// Ranks that exchange by functions of the caller's.
#ifndef TR_COMM_CALLBACK_H
#define TR_COMM_CALLBACK_H

#include "base/queue.h"
#include "comm/stages.h"

// Of a reduction in one message, in bytes. Both ranks wait for each message, and over
// TCP one of 1 MiB takes 1.7 times the processor time of these for each byte.
enum { TR_CALLBACK_CHUNKS = 8 << 20 };

// The functions know no channels, and all messages between two ranks arrive in the
// order in which they are sent. So operations are done in the order in which they are
// started, whatever their channels are: each has its turn.
typedef struct tr_callback_task {
    tr_task task;
    int64_t turn;
} tr_callback_task;

typedef struct tr_callback_channel {
    tr_queue queue;
    tr_callback_task tasks[TR_COMM_QUEUE]; // the queue's
} tr_callback_channel;

typedef struct tr_callback_comm {
    tr_comm base;
    tr_comm_functions functions;
    tr_callback_channel channels[TR_COMM_CHANNELS];
    int64_t started; // turns that have been given out
    int64_t done;    // by who does the tasks
    atomic_bool abandoned;
    // Does the tasks; without it, `start` does.
    bool has_thread;
    pthread_t thread;
    atomic_bool leaves;
} tr_callback_comm;

// Does the task; an error is one of all ranks.
tr_status tr__callback_run(tr_callback_comm *comm, const tr_task *task, tr_error *err);

#endif

// Ranks that exchange by functions of the caller's.
#ifndef TR_COMM_CALLBACK_H
#define TR_COMM_CALLBACK_H

#include "comm/stages.h"

// Of a reduction in one message, in bytes. Both ranks wait for each message, and over
// TCP one of 1 MiB takes 1.7 times the processor time of these for each byte.
enum { TR_CALLBACK_CHUNKS = 8 << 20 };

typedef struct tr_callback_comm {
    tr_comm base;
    tr_comm_functions functions;
    tr_error error; // of this rank or another; the comm is broken
    struct {
        tr_task_span *spans;
        int64_t from, count;
    } watched[TR_COMM_CHANNELS];
} tr_callback_comm;

// Does the task; an error is one of all ranks.
tr_status tr__callback_run(tr_callback_comm *comm, const tr_task *task, tr_error *err);

#endif

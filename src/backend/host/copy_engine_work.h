// The inside of a copy engine: what its caller's side (copy engine.c) and its thread
// (copy_engine_work.c) share.
#ifndef TR_BACKEND_HOST_COPY_ENGINE_WORK_H
#define TR_BACKEND_HOST_COPY_ENGINE_WORK_H

#include "backend/host/copy_engine.h"
#include "backend/host/nvme.h"

#include "base/queue.h"

struct tr_copy_engine {
    tr_queue queue;
    tr_carry ring[TR_CARRY_QUEUE]; // the queue's
    pthread_t thread;
    atomic_bool stop;
    char *folder;  // for messages
    tr_nvme *nvme; // NULL: no file
    int64_t file_bytes;
    bool direct;

    // The caller's own.
    int64_t newest; // ticket
    double waited;  // seconds

    // Bytes, by the thread.
    _Atomic int64_t copied, read, written;

    // The thread's own. Orders are begun one after the other, a piece at a time; reads
    // and writes of several may be under way, and an order is finished when it and all
    // before it have nothing under way. Orders are numbered from 0.
    tr_carry order; // being begun
    bool busy;      // there is one
    int64_t at;     // bytes of it that are begun
    int64_t begun, finished;
    int parts[TR_CARRY_QUEUE]; // under way, of order number % TR_CARRY_QUEUE
    int under_way;             // the sum of them
    struct {
        int64_t number; // of the order; -1: free
        int tries;
    } slots[TR_NVME_SLOTS];
    tr_error error;
};

// The thread.
void *tr__copy_engine_work(void *copy_engine);

// A copy engine on any way of reaching a file of that size, which it takes over, also
// where it fails; NULL: no file.
tr_status tr__copy_engine_create_on(tr_nvme *nvme, const char *folder,
                                    int64_t file_bytes, bool direct,
                                    tr_copy_engine **out, tr_error *err);

#endif

// Queues of a discrete device: kernels and copies, done one after the other beside the
// thread that puts them in.
//
// The work of a step is ended by a mark, whose ticket others wait for. All calls are
// for one thread. None allocates but `create`. What goes wrong on the device is told by
// every wait that comes after it.
#ifndef TR_BACKEND_QUEUE_H
#define TR_BACKEND_QUEUE_H

#include "base/queue.h"

#include <tranche/extend/op.h>

typedef struct tr_device_queue tr_device_queue; // the backend's own

// A kernel and what it is launched on. All that is pointed at is read before the call
// returns, but for `state`, `launch->run->update` and the operands, which must stay
// until the launch is done. `launch->failed` is the queue's own affair.
typedef struct tr_device_work {
    const tr_kernel *kernel;
    const tr_op_desc *desc;
    void *state;
    const tr_launch *launch;
    const char *subject; // whose work it is, for messages: "h.0". Stays
} tr_device_work;

typedef struct tr_queue_table {
    // TR_MEMORY; TR_INTERNAL: the device or a thread fails.
    tr_status (*create)(int workers, tr_device_queue **out, tr_error *err);
    // Waits for what is under way and drops the rest. NULL-safe.
    void (*destroy)(tr_device_queue *queue);
    void (*launch)(tr_device_queue *queue, const tr_device_work *work);
    // Gives the libraries that kernels call memory of the device to work in, borrowed
    // until the next call; without it they do with none. NULL: there are no libraries.
    void (*lend)(tr_device_queue *queue, void *memory, int64_t bytes);
    // Between the device's memory and the host's, or within one.
    void (*copy)(tr_device_queue *queue, const void *from, void *to, int64_t bytes);
    // What is put into the queue from now on begins when the other one's work up to
    // that ticket is done. The caller goes on.
    void (*follow)(tr_device_queue *queue, tr_device_queue *other, int64_t ticket);
    // Ends a step; returns its ticket, which counts from 1.
    int64_t (*mark)(tr_device_queue *queue);
    int64_t (*newest)(const tr_device_queue *queue); // ticket; 0: none yet
    // Until the work up to that ticket is done.
    tr_status (*wait)(tr_device_queue *queue, int64_t ticket, tr_error *err);
    // Is it? Waits for nothing. Errors as of wait. NULL: of a backend with `reach`.
    tr_status (*look)(tr_device_queue *queue, int64_t ticket, bool *done,
                      tr_error *err);
    // What programs know the queue by, to put work of their own into it: a CUDA stream.
    // NULL: there is no such thing.
    void *(*handle)(const tr_device_queue *queue);
    // Bytes that it has been given to copy, so far.
    int64_t (*copied)(const tr_device_queue *queue);
    // The steps that are marked from now on, `count` at most, are noted in spans:
    // [count], borrowed until the next call (NULL: none are noted). Each is there once
    // somebody has waited for it.
    void (*watch)(tr_device_queue *queue, tr_task_span *spans, int64_t count);
} tr_queue_table;

// The error of a launch that failed (tr_launch.failed) in the work of `subject`.
tr_status tr__backend_fail_launch(tr_status failed, const char *subject, tr_error *err);

#endif

// What all shapes of steps share while a plan is walked.
#ifndef TR_EXEC_WALK_H
#define TR_EXEC_WALK_H

#include "backend/backend.h"
#include "backend/host/copy_engine.h"
#include "backend/host/launcher.h"
#include "exec/executor.h"
#include "exec/guards.h"
#include "plan/flow/plan.h"

// A micro-batch that is at work: its slot of the data ring.
typedef struct tr_micro {
    const char *data;
    uint64_t sample; // global index of its first row
    int64_t rows;    // that are there
} tr_micro;

// A walk through a sequence. In parts it stops before some steps, and goes on from
// there.
typedef struct tr_work {
    tr_executor *ex;
    tr_sequence_kind sequence;
    tr_run_context run;
    tr_walk_calls calls;
    size_t next;    // the step that comes
    size_t resumed; // the step before which it last stopped; SIZE_MAX: none
    bool paused;    // it stops before the step that comes
    bool begun;     // some of the sequence is done
    // Of each stream, the newest ticket before this walk, as if all of the sequence's
    // steps were of it.
    int64_t first[TR_STREAMS];
    double begin, waited; // tr__seconds(), and the waits of ranks, at its beginning
    tr_status failed;     // first
    tr_error *err;
} tr_work;

// Which ranks exchange, and on which stream: streams share no group, since a group
// makes one exchange after the other.
typedef struct tr_peer_key {
    tr_stream stream; // of a message: the sender's
    tr_axes axes;
    int32_t from, to; // of two members; else both 0
} tr_peer_key;

// A group in which devices exchange by themselves.
typedef struct tr_peer_group {
    tr_peer_key key;
    int64_t first; // its first member's rank
    int members, member;
    tr_peers *peers;
} tr_peer_group;

struct tr_executor {
    const tr_plan *plan;
    const tr_backend *backend;
    char *base[TR_SPACES]; // starts of the arenas
    tr_comm *comm;         // NULL: one rank
    // What runs a stream beside the walk: a queue of a discrete device, a copy engine
    // for the host's memory and its files, or a launcher of the host's kernels. All
    // NULL: the walk does the stream's steps itself.
    tr_device_queue *queue[TR_STREAMS];
    tr_copy_engine *copy_engine[TR_STREAMS];
    tr_launcher *launcher[TR_STREAMS];
    // Copies between the staging of exchanges and a device that messages do not reach;
    // the communication thread's. NULL: messages reach all memory, or devices exchange
    // by themselves, in queues of their own.
    tr_device_queue *ferry;
    // What the caller of a walk in parts hands over on the device; NULL: he does so on
    // the host.
    tr_device_queue *hand;
    tr_peer_group *peers; // [peer_count] in which devices exchange by themselves
    int peer_count;
    size_t peer_room;
    tr_watch *watch; // NULL: nobody watches
    tr_feed *feed[2];
    tr_micro *micros;   // [micro_room]
    int64_t micro_room; // the most micro-batches that a sequence has had so far
    bool *leave_out;    // [training steps] for a micro-batch without rows
    bool asks_save;     // see tr__executor_ask
    tr_fixed fixed;
    tr_walk_flags flags; // of the newest walk
    tr_work part;        // the newest walk in parts
    tr_update_order order;
};

// A launch, with a copy of everything that may change before its stream comes to it.
typedef struct tr_launch_task {
    const tr_plan_step *step; // NULL: nothing
    tr_sequence_kind sequence;
    tr_run_context run;
    tr_micro micro; // of the step
} tr_launch_task;

// Where a buffer lies, as kernels know it: the host may look there only where the
// buffer is on the host, or the device is not discrete. NULL: no buffer, or one on
// NVMe.
static inline void *tr__memory(const tr_executor *ex, int buffer) {
    const tr_buffer *at = buffer < 0 ? NULL : &ex->plan->buffers[buffer];
    return at && ex->base[at->space] ? ex->base[at->space] + at->offset : NULL;
}

// The first byte of an operand; NULL: there is none.
static inline void *tr__operand_address(const tr_executor *ex,
                                        const tr_step_operand *operand) {
    char *memory = tr__memory(ex, operand->buffer);
    return memory ? memory + operand->first : NULL;
}

// The same, where messages and files reach it.
static inline void *tr__operand_reached(const tr_executor *ex,
                                        const tr_step_operand *operand) {
    return tr__backend_reach(ex->backend, tr__operand_address(ex, operand));
}

// Element `element` of a flat buffer, in what this rank keeps of it.
static inline float *tr__kept_f32(const tr_executor *ex, const tr_flat_range *range,
                                  int64_t element) {
    return (float *)tr__memory(ex, range->buffer) + (element - range->first);
}

// The same of what units compute with, in its own type.
static inline void *tr__kept_param(const tr_executor *ex, const tr_flat_range *range,
                                   int64_t element) {
    char *base = tr__memory(ex, range->buffer);
    return base + (element - range->first) * tr__param_bytes(ex->plan);
}

// And of the sums of gradients.
static inline void *tr__kept_sum(const tr_executor *ex, const tr_flat_range *range,
                                 int64_t element) {
    char *base = tr__memory(ex, range->buffer);
    return base + (element - range->first) * tr__sum_bytes(ex->plan);
}

// ---- statistics.c
// This rank's statistics of the step: [plan->statistics.doubles].
double *tr__own_statistics(const tr_executor *ex);

// ---- run_unit.c
tr_status tr__launch_program(const tr_executor *ex, tr_device_queue *queue,
                             const tr_launch_task *task, const tr_program *program,
                             tr_error *err);
// ---- run_launch.c
// Launches what the step names: a unit's program, or ops on flat buffers. On the step's
// stream, where that works beside the walk.
tr_status tr__run_launch(tr_work *work, const tr_plan_step *step);
// The same into a device's queue (NULL: by the calling thread, at once).
tr_status tr__launch(const tr_executor *ex, tr_device_queue *queue,
                     const tr_launch_task *task, tr_error *err);
// One kernel, likewise.
void tr__launch_kernel(const tr_executor *ex, tr_device_queue *queue,
                       const tr_device_work *work);
// ---- run_ops.c
// The launches of a step's ops.
void tr__launch_ops(const tr_executor *ex, tr_device_queue *queue,
                    const tr_run_context *run, const tr_plan_step *step);
// ---- run_comm.c
tr_status tr__run_exchange(tr_work *work, const tr_plan_step *step);
// Gives the ranks' exchanges a queue to the device's memory.
tr_status tr__exchange_ferry(tr_executor *ex, tr_error *err);
// ---- peers.c
void tr__peers_leave(tr_executor *ex);
// Puts the step's exchange into the queue of its stream. TR_COMM.
tr_status tr__peers_exchange(const tr_executor *ex, const tr_plan_step *step,
                             const tr_comm_op *op, tr_error *err);
// ---- run_copy.c
tr_status tr__run_copy(tr_work *work, const tr_plan_step *step);
tr_status tr__run_file(tr_work *work, const tr_plan_step *step);
// ---- hand.c
// Gives what the caller hands over a queue of its own, where he does so on the device.
tr_status tr__hand_begin(tr_executor *ex, tr_error *err);
// ---- run_host.c
tr_status tr__run_host(tr_work *work, const tr_plan_step *step);
// ---- streams.c
// The host's launches work beside the walk from now on.
tr_status tr__stream_launches(tr_executor *ex, tr_stream stream, tr_error *err);
int64_t tr__stream_newest(const tr_executor *ex, tr_stream stream); // ticket
tr_status tr__stream_wait(tr_executor *ex, tr_stream stream, int64_t ticket,
                          tr_error *err);
void tr__stream_watch(tr_executor *ex, tr_stream stream, tr_task_span *spans,
                      int64_t count);
// Takes the place of a step whose guard does not permit it.
void tr__stream_skip(tr_executor *ex, tr_stream stream);
// Waits until no stream has work.
tr_status tr__streams_wait(tr_executor *ex, tr_error *err);
// Waits until everything is done that the step waits for. A step of a device's queue
// waits for other queues on the device, while the walk goes on.
tr_status tr__run_wait(const tr_work *work, const tr_plan_step *step);

#endif

// One rank: an operation is done when it is started.
#include "comm/self.h"

#include "comm/add.h"
#include "comm/transport.h"

#include "base/memory.h"
#include "base/parallel.h"

#include <string.h>

// The whole is this rank's part.
static void gather(const tr_comm_op *op, size_t bytes) {
    if (op->send && op->send != op->recv) {
        memcpy(op->recv, op->send, bytes);
    }
}

static void reduce(const tr_comm_op *op, size_t bytes) {
    if (op->add) {
        tr__add(op->type, op->recv, op->send, op->count);
    } else if (op->send != op->recv) {
        memcpy(op->recv, op->send, bytes);
    }
}

static int64_t start(tr_comm *comm, const tr_task *task) {
    const tr_comm_op *op = &task->op;
    size_t bytes = (size_t)op->count * tr__comm_type_bytes(op->type);
    if (bytes > 0) {
        (op->kind == TR_COMM_GATHER ? gather : reduce)(op, bytes);
    }
    return ++comm->newest[op->channel];
}

static tr_status wait(tr_comm *comm, tr_comm_channel channel, int64_t ticket,
                      tr_error *err) {
    (void)comm, (void)channel, (void)ticket, (void)err;
    return TR_OK;
}

static void watch(tr_comm *comm, tr_comm_channel channel, tr_task_span *spans,
                  int64_t count) {
    (void)comm, (void)channel, (void)spans, (void)count;
}

static void beside(tr_comm *comm, const tr_comm_beside *of) {
    (void)comm, (void)of;
}

static bool is_broken(const tr_comm *comm) {
    (void)comm;
    return false;
}

static void notice(tr_comm *comm) {
    (void)comm;
}

static void abandon(tr_comm *comm, const tr_error *error) {
    (void)comm, (void)error;
}

static bool speaks(const tr_comm *comm) {
    (void)comm;
    return true;
}

static void close(tr_comm *comm) {
    tr__comm_release(comm);
}

static void end(tr_comm *comm, int exit_status) {
    (void)exit_status;
    close(comm);
}

static const tr_transport self = {.start = start,
                                  .wait = wait,
                                  .watch = watch,
                                  .beside = beside,
                                  .is_broken = is_broken,
                                  .notice = notice,
                                  .abandon = abandon,
                                  .speaks = speaks,
                                  .close = close,
                                  .end = end};

tr_status tr__self_open(tr_comm **out, tr_error *err) {
    tr_comm *comm = tr__calloc(1, sizeof *comm);
    *out = NULL;
    if (!comm) {
        return tr_fail(err, TR_MEMORY, "no memory for the ranks");
    }
    tr_status status = tr__comm_prepare(comm, &self, 0, 1, err);
    if (status != TR_OK) {
        tr__free(comm);
        return status;
    }
    comm->threads = tr__parallel_threads();
    comm->node_ranks = 1;
    *out = comm;
    return TR_OK;
}

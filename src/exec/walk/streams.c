// The streams that work beside the walk, by their numbers: messages, copies, the file,
// and launches.
#include "exec/walk.h"

// By messages, in a channel of its own.
static bool is_of_comm(tr_stream stream) {
    return tr__stream_exchanges(stream) && tr__stream_is_beside(stream);
}

int64_t tr__stream_newest(const tr_executor *ex, tr_stream stream) {
    if (ex->queue[stream]) {
        return ex->backend->queues->newest(ex->queue[stream]);
    }
    if (is_of_comm(stream)) {
        return ex->comm ? tr__comm_newest(ex->comm, tr__stream_channel(stream)) : 0;
    }
    if (ex->launcher[stream]) {
        return tr__launcher_newest(ex->launcher[stream]);
    }
    return ex->copy_engine[stream] ? tr__copy_engine_newest(ex->copy_engine[stream])
                                   : 0;
}

// Where devices exchange by themselves, what has come to its end may have been given
// up, and the ranks' error says why.
static tr_status wait_for_queue(const tr_executor *ex, tr_stream stream, int64_t ticket,
                                tr_error *err) {
    tr_error own = {0};
    tr_status status = ex->backend->queues->wait(ex->queue[stream], ticket, &own);
    if (ex->queue[TR_STREAM_COMM] && tr__comm_is_broken(ex->comm)) {
        return tr__comm_wait(ex->comm, TR_COMM_RANKS,
                             tr__comm_newest(ex->comm, TR_COMM_RANKS), err);
    }
    return status == TR_OK ? TR_OK : tr_fail(err, status, "%s", own.message);
}

tr_status tr__stream_wait(tr_executor *ex, tr_stream stream, int64_t ticket,
                          tr_error *err) {
    if (ex->queue[stream]) {
        return wait_for_queue(ex, stream, ticket, err);
    }
    if (is_of_comm(stream)) {
        return ex->comm
                   ? tr__comm_wait(ex->comm, tr__stream_channel(stream), ticket, err)
                   : TR_OK;
    }
    if (ex->launcher[stream]) {
        return tr__launcher_wait(ex->launcher[stream], ticket, err);
    }
    tr_copy_engine *copy_engine = ex->copy_engine[stream];
    return copy_engine ? tr__copy_engine_wait(copy_engine, ticket, err) : TR_OK;
}

void tr__stream_watch(tr_executor *ex, tr_stream stream, tr_task_span *spans,
                      int64_t count) {
    if (ex->queue[stream]) {
        ex->backend->queues->watch(ex->queue[stream], spans, count);
    } else if (is_of_comm(stream) && ex->comm) {
        tr__comm_watch(ex->comm, tr__stream_channel(stream), spans, count);
    } else if (ex->launcher[stream]) {
        tr__launcher_watch(ex->launcher[stream], spans, count);
    } else if (ex->copy_engine[stream]) {
        tr__copy_engine_watch(ex->copy_engine[stream], spans, count);
    }
}

tr_status tr__streams_wait(tr_executor *ex, tr_error *err) {
    tr_status status = TR_OK;
    for (int s = 0; s < TR_STREAMS && status == TR_OK; s++) {
        int64_t newest = tr__stream_newest(ex, (tr_stream)s);
        status = tr__stream_wait(ex, (tr_stream)s, newest, err);
    }
    return status;
}

tr_status tr__run_wait(const tr_work *work, const tr_plan_step *step) {
    const tr_executor *ex = work->ex;
    tr_status status = TR_OK;
    for (int s = 0; s < TR_STREAMS && status == TR_OK; s++) {
        int64_t ticket = work->first[s] + step->wait[s];
        if (step->wait[s] > 0 && ex->queue[s] && ex->queue[step->stream]) {
            ex->backend->queues->follow(ex->queue[step->stream], ex->queue[s], ticket);
        } else if (step->wait[s] > 0) {
            status = tr__stream_wait(work->ex, (tr_stream)s, ticket, work->err);
        }
    }
    return status;
}

// What is left out of a stream is nothing there: waits count steps.
void tr__stream_skip(tr_executor *ex, tr_stream stream) {
    if (ex->queue[stream]) {
        ex->backend->queues->mark(ex->queue[stream]);
    } else if (is_of_comm(stream)) {
        tr__comm_skip(ex->comm, tr__stream_channel(stream));
    } else if (stream == TR_STREAM_NVME) {
        tr__copy_engine_start(ex->copy_engine[stream], &(tr_carry){.bytes = 0});
    } else {
        tr__launcher_start(ex->launcher[stream], &(tr_launch_task){.step = NULL});
    }
}

static tr_status run_task(void *executor, const void *task, tr_error *err) {
    const tr_launch_task *t = task;
    return t->step ? tr__launch(executor, NULL, t, err) : TR_OK;
}

tr_status tr__stream_launches(tr_executor *ex, tr_stream stream, tr_error *err) {
    tr_launcher_options options = {.run = run_task,
                                   .user = ex,
                                   .task_bytes = sizeof(tr_launch_task),
                                   .threads = ex->plan->request.threads};
    return ex->launcher[stream]
               ? TR_OK
               : tr__launcher_create(&options, &ex->launcher[stream], err);
}

tr_status tr__executor_host_beside(tr_executor *executor, tr_error *err) {
    return tr__stream_launches(executor, TR_STREAM_HOST, err);
}

bool tr__executor_works_beside(const tr_executor *executor) {
    return executor->launcher[TR_STREAM_HOST] || executor->copy_engine[TR_STREAM_NVME];
}

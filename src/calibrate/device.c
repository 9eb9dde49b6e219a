// The device whose kernels are measured: the host itself, or a discrete one, whose work
// is put into queues.
#include "base/checked.h"
#include "calibrate/measure.h"

enum { PIECE = 8 << 20 }; // bytes that are copied to a device at once

// As in a run.
static tr_status lend_scratch(tr_measuring *m, tr_error *err) {
    int level = m->plans[0]->target.level;
    int64_t bytes = m->backend->scratch ? m->backend->scratch(level) : 0;
    if (bytes == 0) {
        return TR_OK;
    }
    tr_status status =
        tr__measure_take(m, "scratch", (size_t)bytes, false, &m->scratch, err);
    if (status == TR_OK) {
        m->backend->queues->lend(m->queue, tr__arena_view(m->scratch, 0, (size_t)bytes),
                                 bytes);
    }
    return status;
}

tr_status tr__measure_open(tr_measuring *m, tr_error *err) {
    const tr_queue_table *queues = m->backend->queues;
    if (!m->backend->discrete) {
        return TR_OK;
    }
    tr_status status =
        m->backend->open ? m->backend->open(m->request->device, err) : TR_OK;
    if (status == TR_OK) {
        status = queues->create(m->request->threads, &m->queue, err);
    }
    status = status == TR_OK ? queues->create(1, &m->copies, err) : status;
    return status == TR_OK ? lend_scratch(m, err) : status;
}

void tr__measure_close(tr_measuring *m) {
    if (m->backend->discrete) {
        m->backend->queues->destroy(m->queue);
        m->backend->queues->destroy(m->copies);
    }
    m->queue = m->copies = NULL;
    tr__arena_destroy(m->scratch);
    m->scratch = NULL;
}

void tr__measure_put(tr_measuring *m, const tr_device_work *work) {
    if (m->queue) {
        m->backend->queues->launch(m->queue, work);
    } else {
        work->kernel->launch(work->desc, work->state, work->launch);
    }
}

void tr__measure_settle(tr_measuring *m, tr_device_queue *queue) {
    const tr_queue_table *queues = m->backend->queues;
    tr_error err = {0};
    if (queue && queues->wait(queue, queues->mark(queue), &err) != TR_OK &&
        m->fault.status == TR_OK) {
        m->fault = err;
    }
}

// ---- its memory

void tr__measure_bring(tr_measuring *m, tr_arena *to, const void *from, size_t bytes) {
    m->backend->queues->copy(m->copies, from, tr__arena_view(to, 0, bytes),
                             (int64_t)bytes);
    tr__measure_settle(m, m->copies);
}

// Pieces of one pattern, out of memory that the device reaches.
static tr_status fill(tr_measuring *m, tr_arena *arena, size_t bytes, tr_error *err) {
    size_t piece = bytes < PIECE ? bytes : PIECE;
    tr_arena *staging = NULL;
    tr_status status = tr__arena_create_from(tr__backend_host_memory(m->backend),
                                             "staging", piece, &staging, err);
    if (status == TR_OK) {
        tr__measure_fill(staging, piece);
    }
    for (size_t at = 0; at < bytes && status == TR_OK; at += piece) {
        size_t part = bytes - at < piece ? bytes - at : piece;
        m->backend->queues->copy(m->copies, tr__arena_view(staging, 0, part),
                                 tr__arena_view(arena, at, part), (int64_t)part);
    }
    tr__measure_settle(m, m->copies);
    tr__arena_destroy(staging);
    return status;
}

tr_status tr__measure_take(tr_measuring *m, const char *space, size_t bytes,
                           bool filled, tr_arena **out, tr_error *err) {
    if (m->fault.status != TR_OK) {
        return tr_fail(err, m->fault.status, "%s", m->fault.message);
    }
    tr_status status =
        tr__arena_create_from(tr__backend_memory(m->backend), space, bytes, out, err);
    if (status != TR_OK || !filled || bytes == 0) {
        return status;
    }
    if (m->queue) {
        return fill(m, *out, bytes, err);
    }
    tr__measure_fill(*out, bytes);
    return TR_OK;
}

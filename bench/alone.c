#include "alone.h"

#include "base/clock.h"

#include <string.h>

static size_t room(const tr_operand *operand, tr_tensor_desc desc) {
    size_t bytes =
        desc.dtype == TR_NONE ? 0 : (size_t)(tr_tensor_bytes(desc) + operand->padding);
    return (bytes + TR_MEASURE_PAGE - 1) / TR_MEASURE_PAGE * TR_MEASURE_PAGE;
}

static size_t workspace_of(const tr_instruction *at) {
    tr_op_desc desc = tr__desc_alone(at);
    size_t bytes = at->kernel->workspace ? at->kernel->workspace(&desc, at->state) : 0;
    return bytes + (size_t)at->packed_bytes + (size_t)2 * TR_MEASURE_PAGE;
}

void alone_need(alone *a, const tr_instruction *at) {
    size_t sum = workspace_of(at);
    for (int i = 0; i < at->desc.in_count; i++) {
        bool is_ids = at->desc.in[i].dtype == TR_I32;
        size_t bytes = room(&at->in[i], at->desc.in[i]);
        sum += is_ids ? 0 : bytes;
        a->ids_bytes = is_ids && bytes > a->ids_bytes ? bytes : a->ids_bytes;
    }
    for (int i = 0; i < at->desc.out_count; i++) {
        sum += room(&at->out[i], at->desc.out[i]);
    }
    a->ring_bytes = sum > a->ring_bytes ? sum : a->ring_bytes;
}

// Ids, and behind them positions, which count from 0 in each sample.
static tr_status take_ids(alone *a, tr_error *err) {
    tr_measuring *m = &a->m;
    tr_arena *staging = NULL;
    const tr_batch_tensor *positions = tr_batch_positions(&m->plans[0]->batch);
    int64_t length = positions ? positions->desc.shape.dim[0] : 1;
    size_t bytes = 2 * a->ids_bytes, count = a->ids_bytes / sizeof(int32_t);
    uint32_t draw = 1;
    tr_status status = tr__measure_take(m, "ids", bytes, false, &m->ids, err);
    if (status != TR_OK || bytes == 0) {
        return status;
    }
    status = tr__arena_create_from(tr__backend_host_memory(m->backend), "staging",
                                   bytes, &staging, err);
    if (status == TR_OK) {
        int32_t *ids = tr__arena_view(staging, 0, bytes);
        for (size_t i = 0; i < count; i++) {
            draw = draw * 1664525u + 1013904223u;
            ids[i] = (int32_t)((draw >> 8) % (uint32_t)a->ids);
            ids[count + i] = (int32_t)((int64_t)i % length);
        }
        if (m->queue) {
            tr__measure_bring(m, m->ids, ids, bytes);
        } else {
            memcpy(tr__arena_view(m->ids, 0, bytes), ids, bytes);
        }
    }
    tr__arena_destroy(staging);
    return status;
}

tr_status alone_open(alone *a, size_t beyond, tr_error *err) {
    tr_status status = tr__measure_open(&a->m, err);
    a->ring_bytes += beyond;
    if (status == TR_OK) {
        status =
            tr__measure_take(&a->m, "operands", a->ring_bytes, true, &a->m.cold, err);
    }
    return status == TR_OK ? take_ids(a, err) : status;
}

void alone_close(alone *a) {
    tr__measure_close(&a->m);
    tr__arena_destroy(a->m.cold);
    tr__arena_destroy(a->m.ids);
}

static void *next_place(alone *a, size_t bytes) {
    size_t at = a->ring_at + bytes > a->ring_bytes ? 0 : a->ring_at;
    a->ring_at = at + bytes;
    return tr__arena_view(a->m.cold, at, bytes);
}

// Where the operand lies that the plan has the result written over; NULL: over none.
static void *under(const tr_instruction *at, const tr_launch *args,
                   const tr_operand *result) {
    for (int i = 0; i < at->desc.in_count; i++) {
        const tr_operand *in = &at->in[i];
        if (in->place != TR_PLACE_NONE && in->place == result->place &&
            in->flat == result->flat && in->offset == result->offset) {
            return (void *)args->in[i];
        }
    }
    return NULL;
}

static void launch(alone *a, const tr_instruction *at) {
    tr_run_context run = {.loss_seed = 1, .rows = INT64_MAX};
    tr_launch args = {
        .run = &run, .accumulate = at->desc.accumulate, .is_packed = true};
    for (int i = 0; i < at->desc.in_count; i++) {
        tr_tensor_desc desc = at->desc.in[i];
        bool positions = at->desc.op->positions >> i & 1;
        if (at->in[i].place != TR_PLACE_NONE) {
            args.in[i] = desc.dtype == TR_I32
                             ? tr__arena_view(a->m.ids, positions ? a->ids_bytes : 0,
                                              room(&at->in[i], desc))
                             : next_place(a, room(&at->in[i], desc));
        }
    }
    for (int i = 0; i < at->desc.out_count; i++) {
        void *over = under(at, &args, &at->out[i]);
        if (at->out[i].place != TR_PLACE_NONE) {
            args.out[i] =
                over ? over : next_place(a, room(&at->out[i], at->desc.out[i]));
        }
    }
    char *work = next_place(a, workspace_of(at));
    args.workspace = work;
    args.packed = work + (workspace_of(at) - (size_t)at->packed_bytes) /
                             TR_MEASURE_PAGE * TR_MEASURE_PAGE;
    tr_op_desc desc = tr__desc_alone(at); // queues of devices launch at once
    const tr_device_work of = {at->kernel, &desc, at->state, &args, at->desc.op->name};
    tr__measure_put(&a->m, &of);
}

double alone_seconds(alone *a, const tr_instruction *at) {
    const tr_queue_table *queues = a->m.backend->queues;
    tr_task_span spans[2] = {{0, 0}, {0, 0}};
    tr_device_queue *queue = a->m.queue;
    if (queue) {
        queues->watch(queue, spans, 2);
    }
    launch(a, at);
    if (queue) {
        queues->mark(queue); // while it works on the first, the others come
    }
    double begin = tr__seconds();
    for (int i = 0; i < a->times; i++) {
        launch(a, at);
    }
    tr__measure_settle(&a->m, queue);
    double all = queue ? spans[1].end - spans[1].begin : tr__seconds() - begin;
    if (queue) {
        queues->watch(queue, NULL, 0);
    }
    return all / a->times;
}

// What lies in the memory of a discrete device.
#include "exec/store/pieces.h"

bool tr__is_on_device(const tr_executor *ex, const tr_flat_range *range) {
    return ex->plan->request.discrete && range->buffer >= 0 &&
           ex->plan->buffers[range->buffer].space == TR_SPACE_DEVICE;
}

// Bytes between the memory of the device and the host's.
tr_status tr__device_copy(const tr_executor *ex, const void *from, void *to,
                          int64_t bytes, tr_error *err) {
    const tr_queue_table *queues = ex->backend->queues;
    tr_device_queue *queue = ex->queue[TR_STREAM_COPY];
    queues->copy(queue, from, to, bytes);
    return queues->wait(queue, queues->mark(queue), err);
}

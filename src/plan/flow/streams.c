#include "plan/flow/streams.h"

#include "plan/flow/plan.h"

const tr_stream_row tr__streams[TR_STREAMS] = {
    [TR_STREAM_COMPUTE] = {"compute", "wait_compute", false, TR_QUEUE_ALWAYS},
    [TR_STREAM_DATA] = {"data", NULL, false, TR_QUEUE_NEVER},
    [TR_STREAM_COMM] = {"communication", "wait", true, TR_QUEUE_OF_PEERS},
    [TR_STREAM_SEND] = {"send", "wait_send", true, TR_QUEUE_OF_PEERS},
    [TR_STREAM_RECEIVE] = {"receive", "wait_receive", true, TR_QUEUE_OF_PEERS},
    [TR_STREAM_COPY] = {"copy", "wait_copy", true, TR_QUEUE_ALWAYS},
    [TR_STREAM_NVME] = {"nvme", "wait_nvme", true, TR_QUEUE_NEVER},
    [TR_STREAM_HOST] = {"host", "wait_host", true, TR_QUEUE_NEVER},
    [TR_STREAM_COPY_OUT] = {"copy out", "wait_copy_out", true, TR_QUEUE_ALWAYS},
    [TR_STREAM_TENSOR] = {"tensor", "wait_tensor", true, TR_QUEUE_OF_PEERS},
};

const char *tr__stream_name(tr_stream stream) {
    return (unsigned)stream < TR_STREAMS ? tr__streams[stream].name : "";
}

bool tr__stream_is_beside(tr_stream stream) {
    return tr__streams[stream].beside;
}

bool tr__plan_has_queue(const tr_plan *plan, tr_stream stream) {
    tr_queue_kind queue = tr__streams[stream].queue;
    return plan->request.discrete &&
           (queue == TR_QUEUE_ALWAYS || tr__plan_by_devices(plan, stream));
}

bool tr__plan_by_devices(const tr_plan *plan, tr_stream stream) {
    return plan->request.peers && tr__streams[stream].queue == TR_QUEUE_OF_PEERS;
}

bool tr__plan_is_beside(const tr_plan *plan, tr_stream stream) {
    return tr__stream_is_beside(stream) || tr__plan_has_queue(plan, stream);
}

bool tr__plan_follows(const tr_plan *plan, tr_stream waiting, tr_stream awaited) {
    return tr__plan_has_queue(plan, waiting) && tr__plan_has_queue(plan, awaited);
}

tr_stream tr__copy_stream(const tr_plan *plan, tr_space to) {
    bool out = plan->request.discrete && to != TR_SPACE_DEVICE;
    return out ? TR_STREAM_COPY_OUT : TR_STREAM_COPY;
}

bool tr__stream_copies(tr_stream stream) {
    return stream == TR_STREAM_COPY || stream == TR_STREAM_COPY_OUT;
}

bool tr__stream_exchanges(tr_stream stream) {
    return stream == TR_STREAM_COMM || stream == TR_STREAM_SEND ||
           stream == TR_STREAM_RECEIVE || stream == TR_STREAM_DATA ||
           stream == TR_STREAM_TENSOR;
}

tr_comm_channel tr__stream_channel(tr_stream stream) {
    return stream == TR_STREAM_SEND      ? TR_COMM_SEND
           : stream == TR_STREAM_RECEIVE ? TR_COMM_RECEIVE
           : stream == TR_STREAM_TENSOR  ? TR_COMM_TENSOR
                                         : TR_COMM_RANKS;
}

tr_stream tr__exchange_stream(const tr_plan *plan, tr_space space) {
    bool host = space == TR_SPACE_HOST && plan->request.peers;
    return host ? TR_STREAM_DATA : TR_STREAM_COMM;
}

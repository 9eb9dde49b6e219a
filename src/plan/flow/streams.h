// Streams: each takes its steps in their order. What a stream is says its row.
#ifndef TR_PLAN_FLOW_STREAMS_H
#define TR_PLAN_FLOW_STREAMS_H

#include "comm/comm.h"

#include <tranche/extend/plan.h>

#include <stdbool.h>

// Steps of the data stream (load, unload, hand_out, report, decide) are done by the
// thread that issues steps, when it reaches them. Those of the communication stream
// (gather, reduce), of the tensor stream (the same inside of units), of those of a
// pipeline's messages (send; receive), of the copy streams (fetch; evict), of the NVMe
// stream (read, write) and of the host's compute stream (launches on what lives on the
// host) begin when they are reached, on each stream one after the other, and go on
// beside what follows, until a step waits for them. Steps of the compute stream do so,
// too, where the device is discrete (tr_plan_request); else they are done when the next
// step is issued. Where the ranks' devices exchange by themselves
// (tr_plan_request.peers), the communication stream, the tensor stream and those of
// messages are theirs, and what lies on the host is exchanged in the data stream. The
// tensor stream is one of its own so that parameters which are gathered ahead hold up
// nothing that computing waits for.
typedef enum tr_stream {
    TR_STREAM_COMPUTE,
    TR_STREAM_DATA,
    TR_STREAM_COMM,
    TR_STREAM_SEND,
    TR_STREAM_RECEIVE,
    TR_STREAM_COPY,
    TR_STREAM_NVME,
    TR_STREAM_HOST,
    TR_STREAM_COPY_OUT, // from a discrete device: both ways go on at once
    TR_STREAM_TENSOR,
    TR_STREAMS
} tr_stream;

// Where a stream is a queue of a discrete device.
typedef enum tr_queue_kind {
    TR_QUEUE_NEVER,
    TR_QUEUE_ALWAYS,
    TR_QUEUE_OF_PEERS, // where devices exchange by themselves
} tr_queue_kind;

typedef struct tr_stream_row {
    const char *name;
    const char *wait_key; // of a plan's JSON: for how many of its steps a step waits
    bool beside; // its steps go on beside those that follow, whatever the device is
    tr_queue_kind queue;
} tr_stream_row;

extern const tr_stream_row tr__streams[TR_STREAMS];

const char *tr__stream_name(tr_stream stream);
bool tr__stream_is_beside(tr_stream stream);
// The same in this plan.
bool tr__plan_is_beside(const tr_plan *plan, tr_stream stream);
// Do the ranks' devices make by themselves what is exchanged on it?
bool tr__plan_by_devices(const tr_plan *plan, tr_stream stream);
// Is it a queue of the device in this plan?
bool tr__plan_has_queue(const tr_plan *plan, tr_stream stream);
// Both streams are queues of a discrete device: the one waits for the other there,
// while the walk goes on, so that only its own later steps know of it.
bool tr__plan_follows(const tr_plan *plan, tr_stream waiting, tr_stream awaited);
// On which stream copies to the space are made; and is it one of these?
tr_stream tr__copy_stream(const tr_plan *plan, tr_space to);
bool tr__stream_copies(tr_stream stream);
// Do ranks exchange on it?
bool tr__stream_exchanges(tr_stream stream);
// The channel that the stream's messages go through.
tr_comm_channel tr__stream_channel(tr_stream stream);
// On which stream ranks exchange what lies in the space.
tr_stream tr__exchange_stream(const tr_plan *plan, tr_space space);

#endif

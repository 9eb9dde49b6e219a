// Who is done when a step begins.
//
// One thread issues all steps, in the order of the sequence. It does the steps of the
// data stream itself, and those of the compute stream unless the device is discrete;
// those of the other streams go on beside it, on each stream one after the other. It
// waits before it issues a step: so what it knows to be done holds for every later
// step, and its clock is everybody's. Of a discrete device, the compute stream and the
// copy streams are queues that wait for each other themselves, while the thread goes
// on: what such a wait brings is known to the later steps of that queue alone. So are
// the communication stream, the tensor stream and those of messages where devices
// exchange by themselves.
#include "plan/proof/proof.h"

static const tr_stream beside[TR_BESIDE_STREAMS] = {
    TR_STREAM_COMM,   TR_STREAM_SEND, TR_STREAM_RECEIVE,
    TR_STREAM_TENSOR, TR_STREAM_COPY, TR_STREAM_COPY_OUT,
    TR_STREAM_NVME,   TR_STREAM_HOST, TR_STREAM_COMPUTE};

// Does the stream wait for itself?
static bool is_queue(const tr_proof *p, tr_stream stream) {
    bool peers = p->plan->request.peers &&
                 (stream == TR_STREAM_COMM || stream == TR_STREAM_TENSOR ||
                  stream == TR_STREAM_SEND || stream == TR_STREAM_RECEIVE);
    return p->plan->request.discrete &&
           (stream == TR_STREAM_COMPUTE || stream == TR_STREAM_COPY ||
            stream == TR_STREAM_COPY_OUT || peers);
}

// Who knows, after the step has waited for stream `s`, that this much of it is done.
static int32_t *knowing(tr_proof *p, int s) {
    tr_stream waiting = p->step->stream;
    return is_queue(p, waiting) && is_queue(p, beside[s])
               ? &p->known[tr__clock_stream(p, waiting)][s]
               : &p->done[s];
}

int tr__clock_count(const tr_plan *plan) {
    return plan->request.discrete ? TR_BESIDE_STREAMS : TR_BESIDE_STREAMS - 1;
}

int tr__clock_stream(const tr_proof *p, tr_stream stream) {
    for (int s = 0; s < p->beside; s++) {
        if (beside[s] == stream) {
            return s;
        }
    }
    return -1;
}

void tr__clock_wait(tr_proof *p) {
    for (int s = 0; s < p->beside; s++) {
        int32_t wait = p->step->wait[beside[s]];
        if (wait < 0 || wait > p->issued[s]) {
            tr__proof_wrong(p,
                            "waits for %d steps of the %s stream, of which %d have "
                            "begun",
                            (int)wait, tr__stream_name(beside[s]), (int)p->issued[s]);
        } else if (wait > 0) {
            int32_t last = p->of_stream[p->kind][s][wait - 1];
            int32_t *known = knowing(p, s);
            *known = last > *known ? last : *known;
        }
    }
}

void tr__clock_issue(tr_proof *p) {
    int s = tr__clock_stream(p, p->step->stream);
    if (s >= 0) {
        p->issued[s]++;
    }
}

void tr__clock_reset(tr_proof *p, int32_t first) {
    const tr_sequence *sequence = &p->plan->sequences[p->kind];
    for (int s = 0; s < p->beside; s++) {
        p->issued[s] = 0;
        p->done[s] = first - 1;
        for (int q = 0; q < p->beside; q++) {
            p->known[q][s] = first - 1;
        }
        for (int32_t i = 0; i < first; i++) {
            p->issued[s] += sequence->steps[i].stream == beside[s];
        }
    }
}

bool tr__clock_is_before(const tr_proof *p, int stream, int32_t before) {
    int own = tr__clock_stream(p, p->step->stream);
    return before <= p->done[stream] || stream == own ||
           (own >= 0 && before <= p->known[own][stream]);
}

#include "exec/watch.h"

#include "base/clock.h"
#include "base/memory.h"
#include "plan/work.h"

tr_status tr__watch_create(const tr_plan *plan, tr_watch **out, tr_error *err) {
    const tr_sequence *sequence = &plan->sequences[TR_SEQUENCE_TRAIN];
    tr_watch *watch = tr__calloc(1, sizeof *watch);
    tr_transfer transfers[TR_TRANSFERS_AT_ONCE];
    size_t messages = 0;
    for (size_t i = 0; i < sequence->count; i++) {
        size_t next = 0;
        int count;
        while ((count = tr__step_transfers(plan, &sequence->steps[i], &next,
                                           transfers)) > 0) {
            messages += (size_t)count;
        }
    }
    if (watch) {
        watch->capacity = sequence->count + messages;
        watch->message_capacity = messages;
        watch->spans = tr__calloc(watch->capacity, sizeof *watch->spans);
        watch->messages = tr__calloc(messages, sizeof *watch->messages);
        watch->span_of = tr__calloc(messages, sizeof *watch->span_of);
    }
    if (!watch || !watch->spans || !watch->messages || !watch->span_of) {
        tr__watch_destroy(watch);
        return tr_fail(err, TR_MEMORY, "no memory to watch a step");
    }
    *out = watch;
    return TR_OK;
}

void tr__watch_destroy(tr_watch *watch) {
    if (watch) {
        tr__free(watch->spans);
        tr__free(watch->messages);
        tr__free(watch->span_of);
        tr__free(watch);
    }
}

void tr__watch_begin(tr_watch *watch, tr_comm *comm, bool first) {
    if (first) {
        watch->count = watch->message_count = 0;
        watch->origin = tr__seconds();
    }
    watch->first_message = watch->message_count;
    if (comm) {
        tr__comm_watch(comm, watch->messages + watch->first_message,
                       (int64_t)(watch->message_capacity - watch->first_message));
    }
}

void tr__watch_step(tr_watch *watch, int32_t step, tr_stream stream, double begin,
                    int64_t messages) {
    double now = tr__seconds();
    if (messages == 0) {
        watch->spans[watch->count++] =
            (tr_span){step, stream, begin - watch->origin, now - watch->origin};
    }
    for (int64_t i = 0; i < messages; i++) {
        watch->span_of[watch->message_count++] = watch->count;
        watch->spans[watch->count++] = (tr_span){step, TR_STREAM_COMM, 0, 0};
    }
}

void tr__watch_end(tr_watch *watch, tr_comm *comm) {
    for (size_t i = watch->first_message; i < watch->message_count; i++) {
        tr_span *span = &watch->spans[watch->span_of[i]];
        span->begin = watch->messages[i].begin - watch->origin;
        span->end = watch->messages[i].end - watch->origin;
    }
    if (comm) {
        tr__comm_watch(comm, NULL, 0);
    }
}

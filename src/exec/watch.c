#include "exec/watch.h"

#include "base/clock.h"
#include "base/memory.h"

static bool take(tr_watch *watch, const size_t count[TR_STREAMS]) {
    bool there = true;
    for (int s = 0; s < TR_STREAMS; s++) {
        tr_watched *stream = &watch->streams[s];
        stream->capacity = count[s];
        stream->times = tr__calloc(count[s], sizeof *stream->times);
        stream->span_of = tr__calloc(count[s], sizeof *stream->span_of);
        there = there && stream->times && stream->span_of;
        watch->capacity += count[s];
    }
    watch->spans = tr__calloc(watch->capacity, sizeof *watch->spans);
    return there && watch->spans;
}

tr_status tr__watch_create(const tr_plan *plan, tr_watch **out, tr_error *err) {
    const tr_sequence *sequence = &plan->sequences[TR_SEQUENCE_TRAIN];
    tr_watch *watch = tr__calloc(1, sizeof *watch);
    size_t count[TR_STREAMS] = {0};
    for (size_t i = 0; i < sequence->count; i++) {
        tr_stream stream = sequence->steps[i].stream;
        count[stream] += tr__plan_is_beside(plan, stream);
    }
    if (watch) {
        watch->capacity = sequence->count;
    }
    if (!watch || !take(watch, count)) {
        tr__watch_destroy(watch);
        return tr_fail(err, TR_MEMORY, "no memory to watch a step");
    }
    *out = watch;
    return TR_OK;
}

void tr__watch_destroy(tr_watch *watch) {
    for (int s = 0; watch && s < TR_STREAMS; s++) {
        tr__free(watch->streams[s].times);
        tr__free(watch->streams[s].span_of);
    }
    if (watch) {
        tr__free(watch->spans);
        tr__free(watch);
    }
}

void tr__watch_begin(tr_watch *watch, bool first) {
    for (int s = 0; s < TR_STREAMS; s++) {
        tr_watched *stream = &watch->streams[s];
        stream->count = first ? 0 : stream->count;
        stream->first = stream->count;
    }
    if (first) {
        watch->count = 0;
        watch->origin = tr__seconds();
    }
}

tr_task_span *tr__watch_times(tr_watch *watch, tr_stream stream, int64_t *count) {
    tr_watched *of = &watch->streams[stream];
    *count = (int64_t)(of->capacity - of->first);
    return of->times + of->first;
}

static void add_span(tr_watch *watch, tr_span span) {
    if (watch->count < watch->capacity) {
        watch->spans[watch->count++] = span;
    }
}

void tr__watch_step(tr_watch *watch, const tr_sequence *sequence, int32_t step,
                    double begin, const tr_tickets *before, const tr_tickets *after) {
    double now = tr__seconds();
    bool handed = false;
    for (int s = 0; s < TR_STREAMS; s++) {
        tr_watched *of = &watch->streams[s];
        for (int64_t i = before->of[s]; i < after->of[s]; i++) {
            handed = true;
            if (of->count < of->capacity) {
                of->span_of[of->count++] = watch->count;
                add_span(watch, tr__span_of(sequence, step, (tr_stream)s, 0, 0));
            }
        }
    }
    if (!handed) {
        add_span(watch, tr__span_of(sequence, step, sequence->steps[step].stream,
                                    begin - watch->origin, now - watch->origin));
    }
}

// A thread may take a task while others are still under way: what counts is from where
// the one before it was done.
void tr__watch_end(tr_watch *watch) {
    for (int s = 0; s < TR_STREAMS; s++) {
        tr_watched *of = &watch->streams[s];
        double before = 0;
        for (size_t i = of->first; i < of->count; i++) {
            tr_span *span = &watch->spans[of->span_of[i]];
            double begin = of->times[i].begin > before ? of->times[i].begin : before;
            before = of->times[i].end;
            span->begin = begin - watch->origin;
            span->end = before - watch->origin;
        }
    }
}

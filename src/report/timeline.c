#include "report/timeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LANES_MAX = 1 << 14 };

typedef struct reader {
    timeline *to;
    const json_t *events;
    tr_error *err;
} reader;

// Room for one more of `bytes`; NULL: there is no memory.
static void *grow(void *items, int64_t count, int64_t *room, size_t bytes) {
    if (count < *room) {
        return items;
    }
    int64_t more = 2 * *room + 64;
    void *grown = realloc(items, (size_t)more * bytes);
    *room = grown ? more : *room;
    return grown;
}

static tr_status no_memory(const reader *r) {
    return tr_fail(r->err, TR_MEMORY, "no memory for the time of a step");
}

static tr_status no_trace(const reader *r, const char *what) {
    return tr_fail(r->err, TR_DATA,
                   "%s: this is no trace of tranche train --trace or of tranche "
                   "simulate --trace",
                   what);
}

// ---- lanes and names

// The stream that a thread_name says of a rank's number; NULL: none does.
static const char *stream_of(const reader *r, json_int_t rank, json_int_t number) {
    size_t i;
    json_t *event;
    json_array_foreach((json_t *)r->events, i, event) {
        const char *name = json_string_value(json_object_get(event, "name"));
        bool names = name && strcmp(name, "thread_name") == 0 &&
                     json_integer_value(json_object_get(event, "pid")) == rank &&
                     json_integer_value(json_object_get(event, "tid")) == number;
        if (names) {
            return json_string_value(
                json_object_get(json_object_get(event, "args"), "name"));
        }
    }
    return NULL;
}

// The number of a lane, which spans before have or which is new; -1: none.
static int find_lane(const reader *r, json_int_t rank, json_int_t number) {
    timeline *t = r->to;
    for (int64_t i = t->lane_count; i-- > 0;) {
        if (t->lanes[i].rank == rank && t->lanes[i].number == number) {
            return (int)i;
        }
    }
    const char *stream = stream_of(r, rank, number);
    timeline_lane *lanes =
        stream && t->lane_count < LANES_MAX
            ? grow(t->lanes, t->lane_count, &t->lane_room, sizeof *lanes)
            : NULL;
    if (!lanes) {
        return -1;
    }
    t->lanes = lanes;
    t->lanes[t->lane_count] =
        (timeline_lane){.rank = rank, .number = number, .stream = stream};
    return (int)t->lane_count++;
}

static int find_name(timeline *t, const char *name) {
    for (int64_t i = t->name_count; i-- > 0;) {
        if (strcmp(t->names[i], name) == 0) {
            return (int)i;
        }
    }
    const char **names = (const char **)grow((void *)t->names, t->name_count,
                                             &t->name_room, sizeof *names);
    if (!names) {
        return -1;
    }
    t->names = names;
    t->names[t->name_count] = name;
    return (int)t->name_count++;
}

// ---- spans

static tr_status take(const reader *r, const json_t *event) {
    timeline *t = r->to;
    const json_t *args = json_object_get(event, "args");
    const json_t *micro = json_object_get(args, "micro_batch");
    const char *name = json_string_value(json_object_get(event, "name"));
    const char *kind = json_string_value(json_object_get(event, "cat"));
    double begin = json_number_value(json_object_get(event, "ts"));
    double length = json_number_value(json_object_get(event, "dur"));
    if (!name || !kind || !(begin >= 0) || !(length >= 0)) {
        return no_trace(r, "a span has no name, kind or time");
    }
    int lane = find_lane(r, json_integer_value(json_object_get(event, "pid")),
                         json_integer_value(json_object_get(event, "tid")));
    if (lane < 0) {
        return no_trace(r, "a span is of no stream");
    }
    timeline_span *spans = grow(t->spans, t->span_count, &t->span_room, sizeof *spans);
    t->spans = spans ? spans : t->spans;
    int named = find_name(t, name), of_kind = find_name(t, kind);
    if (!spans || named < 0 || of_kind < 0) {
        return no_memory(r);
    }
    t->spans[t->span_count++] =
        (timeline_span){.lane = lane,
                        .name = named,
                        .kind = of_kind,
                        .begin = begin,
                        .length = length,
                        .step = json_integer_value(json_object_get(args, "step")),
                        .micro_batch = micro ? json_integer_value(micro) : -1};
    t->lanes[lane].busy += length;
    t->lanes[lane].spans++;
    t->end = fmax(t->end, begin + length);
    return TR_OK;
}

// ---- the critical path

static double end_of(const timeline_span *s) {
    return s->begin + s->length;
}

static int by_end(const void *a, const void *b) {
    const timeline_span *one = a, *other = b;
    double first = end_of(one), second = end_of(other);
    return first != second ? (first > second) - (first < second)
                           : (one->step > other->step) - (one->step < other->step);
}

// The last span before `at` that has ended at this time; -1: none has.
static int64_t last_ended(const timeline *t, int64_t at, double time) {
    int64_t low = -1, high = at; // low has ended, high has not
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (end_of(&t->spans[middle]) <= time) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

// Spans are sorted by their ends. Times of a trace have three digits behind the point.
static void find_critical(timeline *t) {
    const double rounding = 2e-3;
    int64_t at = t->span_count - 1;
    int64_t rank = at >= 0 ? t->lanes[t->spans[at].lane].rank : 0;
    while (at >= 0) {
        timeline_span *s = &t->spans[at];
        s->critical = true;
        t->critical += s->length;
        at = last_ended(t, at, s->begin + rounding);
        while (at >= 0 && t->lanes[t->spans[at].lane].rank != rank) {
            at--;
        }
    }
}

tr_status timeline_read(json_t *trace, timeline *out, tr_error *err) {
    *out = (timeline){.trace = json_incref(trace)};
    reader r = {out, json_object_get(trace, "traceEvents"), err};
    tr_status status = TR_OK;
    size_t i;
    json_t *event;
    if (!json_is_array(r.events)) {
        return no_trace(&r, "there are no \"traceEvents\"");
    }
    json_array_foreach((json_t *)r.events, i, event) {
        const char *phase = json_string_value(json_object_get(event, "ph"));
        if (status == TR_OK && phase && strcmp(phase, "X") == 0) {
            status = take(&r, event);
        }
    }
    if (status == TR_OK && out->span_count == 0) {
        status = no_trace(&r, "there are no spans");
    }
    if (status == TR_OK) {
        qsort(out->spans, (size_t)out->span_count, sizeof *out->spans, by_end);
        find_critical(out);
    }
    return status;
}

void timeline_free(timeline *of) {
    json_decref(of->trace);
    free(of->lanes);
    free(of->spans);
    free((void *)of->names);
    *of = (timeline){0};
}

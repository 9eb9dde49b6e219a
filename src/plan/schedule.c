// Pass: who waits for whom.
#include "plan/schedule.h"

#include "base/checked.h"
#include "base/memory.h"

#include <string.h>

// Bytes of a value that have one history: who wrote them last, and who has read them
// since. -1: nobody.
typedef struct extent {
    int64_t first, end;
    int32_t writer;
    int32_t reader[TR_STREAMS];
} extent;

// The extents of one value, in order, without gaps.
typedef struct history {
    extent *extents;
    size_t count, capacity;
} history;

typedef struct scheduler {
    const tr_plan *plan;
    const tr_sequence *sequence;
    history *histories; // [buffers]
    int32_t step;
    int32_t *on; // [TR_STREAMS] of the step
} scheduler;

static extent untouched(int64_t first, int64_t end) {
    extent fresh = {.first = first, .end = end, .writer = -1};
    memset(fresh.reader, -1, sizeof fresh.reader);
    return fresh;
}

// The index of the extent that holds byte `at`.
static size_t find(const history *h, int64_t at) {
    size_t low = 0, high = h->count - 1;
    while (low < high) {
        size_t middle = (low + high + 1) / 2;
        if (h->extents[middle].first <= at) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

// An extent begins at byte `at` from now on. *index: which.
static bool split(history *h, int64_t at, size_t *index) {
    if (at == h->extents[h->count - 1].end) {
        *index = h->count;
        return true;
    }
    size_t i = find(h, at);
    *index = i + (h->extents[i].first < at);
    if (h->extents[i].first == at) {
        return true;
    }
    if (!tr__grow((void **)&h->extents, &h->capacity, h->count + 1,
                  sizeof *h->extents)) {
        return false;
    }
    memmove(h->extents + i + 1, h->extents + i, (h->count - i) * sizeof *h->extents);
    h->count++;
    h->extents[i].end = h->extents[i + 1].first = at;
    return true;
}

static void depend(scheduler *s, int32_t before) {
    if (before >= 0 && before != s->step) {
        tr_stream stream = s->sequence->steps[before].stream;
        s->on[stream] = before > s->on[stream] ? before : s->on[stream];
    }
}

static bool begin_history(const scheduler *s, const tr_access *access) {
    history *h = &s->histories[access->value];
    if (h->count == 0) {
        int64_t bytes = s->plan->buffers[access->value].bytes;
        if (!tr__grow((void **)&h->extents, &h->capacity, 1, sizeof *h->extents)) {
            return false;
        }
        h->extents[h->count++] = untouched(0, tr__max_i64(bytes, access->end));
    }
    return true;
}

// All extents of [first, end) become one, written by the step.
static void write_extents(scheduler *s, history *h, size_t first, size_t end) {
    extent written = untouched(h->extents[first].first, h->extents[end - 1].end);
    written.writer = s->step;
    h->extents[first] = written;
    memmove(h->extents + first + 1, h->extents + end,
            (h->count - end) * sizeof *h->extents);
    h->count -= end - first - 1;
}

static bool follow(scheduler *s, const tr_access *access) {
    tr_stream stream = s->sequence->steps[s->step].stream;
    history *h = &s->histories[access->value];
    size_t first, end;
    if (!begin_history(s, access) || !split(h, access->first, &first) ||
        !split(h, access->end, &end)) {
        return false;
    }
    for (size_t i = first; i < end; i++) {
        depend(s, h->extents[i].writer);
        for (int k = 0; k < TR_STREAMS && access->mode != TR_ACCESS_READ; k++) {
            depend(s, h->extents[i].reader[k]);
        }
        h->extents[i].reader[stream] = s->step;
    }
    if (access->mode != TR_ACCESS_READ) {
        write_extents(s, h, first, end);
    }
    return true;
}

tr_status tr__schedule_find(const tr_plan *plan, tr_sequence_kind kind,
                            const tr_accesses *accesses, tr_dependencies *out,
                            tr_error *err) {
    const tr_sequence *sequence = &plan->sequences[kind];
    scheduler s = {.plan = plan, .sequence = sequence};
    s.histories = tr__calloc(plan->buffer_count, sizeof *s.histories);
    out->on = tr__calloc(sequence->count, sizeof *out->on);
    bool good = s.histories && out->on;
    for (size_t i = 0; i < sequence->count && good; i++) {
        s.step = (int32_t)i;
        s.on = out->on[i];
        memset(s.on, -1, sizeof *out->on);
        for (size_t k = accesses->begin[i]; k < accesses->begin[i + 1] && good; k++) {
            good = follow(&s, &accesses->items[k]);
        }
    }
    for (size_t i = 0; s.histories && i < plan->buffer_count; i++) {
        tr__free(s.histories[i].extents);
    }
    tr__free(s.histories);
    return good ? TR_OK : tr_fail(err, TR_MEMORY, "no memory for the plan's waits");
}

void tr__schedule_clear(tr_dependencies *dependencies) {
    tr__free(dependencies->on);
    *dependencies = (tr_dependencies){0};
}

// ---- waits

// The limits of the sequence are dependencies, too. at: [ids + 1] the step of an id.
static void add_limits(const tr_sequence *sequence, const int32_t *at,
                       tr_dependencies *dependencies) {
    for (size_t i = 0; i < sequence->limit_count; i++) {
        int32_t before = at[sequence->limits[i].before];
        int32_t *on = dependencies->on[at[sequence->limits[i].after]];
        tr_stream stream = sequence->steps[before].stream;
        on[stream] = before > on[stream] ? before : on[stream];
    }
}

static tr_status find_limits(const tr_sequence *sequence, tr_dependencies *dependencies,
                             tr_error *err) {
    int32_t *at = tr__calloc((size_t)sequence->ids + 1, sizeof *at);
    if (!at) {
        return tr_fail(err, TR_MEMORY, "no memory for the plan's waits");
    }
    for (size_t i = 0; i < sequence->count; i++) {
        at[sequence->steps[i].id] = (int32_t)i;
    }
    add_limits(sequence, at, dependencies);
    tr__free(at);
    return TR_OK;
}

static int32_t *wait_of(tr_plan_step *step, tr_stream stream) {
    return stream == TR_STREAM_COMM   ? &step->wait
           : stream == TR_STREAM_COPY ? &step->wait_copy
                                      : &step->wait_nvme;
}

// A wait holds for all later steps: only one for more is noted. number: [steps].
static void count_waits(tr_sequence *sequence, tr_stream stream,
                        const tr_dependencies *dependencies, int32_t *number) {
    int32_t issued = 0, done = 0;
    for (size_t i = 0; i < sequence->count; i++) {
        tr_plan_step *step = &sequence->steps[i];
        int32_t on = step->stream == stream ? -1 : dependencies->on[i][stream];
        int32_t needed = on < 0 ? 0 : number[on];
        *wait_of(step, stream) = needed > done ? needed : 0;
        done = needed > done ? needed : done;
        issued += step->stream == stream;
        number[i] = issued;
    }
}

static tr_status find_waits(tr_sequence *sequence, const tr_dependencies *dependencies,
                            tr_error *err) {
    static const tr_stream beside[] = {TR_STREAM_COMM, TR_STREAM_COPY, TR_STREAM_NVME};
    int32_t *number = tr__calloc(sequence->count, sizeof *number);
    if (!number) {
        return tr_fail(err, TR_MEMORY, "no memory for the plan's waits");
    }
    for (size_t s = 0; s < sizeof beside / sizeof *beside; s++) {
        count_waits(sequence, beside[s], dependencies, number);
    }
    tr__free(number);
    return TR_OK;
}

static tr_status schedule(tr_plan *plan, tr_sequence_kind kind, tr_error *err) {
    tr_sequence *sequence = &plan->sequences[kind];
    tr_accesses accesses = {0};
    tr_dependencies dependencies = {0};
    tr_status status = tr__accesses_find(plan, kind, &accesses, err);
    if (status == TR_OK) {
        status = tr__schedule_find(plan, kind, &accesses, &dependencies, err);
    }
    if (status == TR_OK) {
        status = find_limits(sequence, &dependencies, err);
    }
    if (status == TR_OK) {
        status = find_waits(sequence, &dependencies, err);
    }
    if (status == TR_OK) {
        status = tr__lifetimes_find(plan, kind, &accesses, err);
    }
    tr__accesses_clear(&accesses);
    tr__schedule_clear(&dependencies);
    return status;
}

tr_status tr__pass_schedule(tr_plan *plan, tr_error *err) {
    const tr_sequence *train = &plan->sequences[TR_SEQUENCE_TRAIN];
    tr_status status = TR_OK;
    for (int kind = 0; kind < TR_SEQUENCES && status == TR_OK; kind++) {
        status = schedule(plan, (tr_sequence_kind)kind, err);
    }
    plan->update_begin = tr__sequence_applied(train);
    return status;
}

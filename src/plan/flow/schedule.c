// Pass: who waits for whom.
#include "plan/flow/schedule.h"

#include "base/memory.h"
#include "plan/flow/extents.h"
#include "plan/flow/passes.h"

#include <string.h>

typedef struct scheduler {
    const tr_plan *plan;
    const tr_sequence *sequence;
    tr_extents *values; // [buffers]
    int32_t step;
    int32_t *on; // [TR_STREAMS] of the step
} scheduler;

static void depend(scheduler *s, int32_t before) {
    if (before >= 0 && before != s->step) {
        tr_stream stream = s->sequence->steps[before].stream;
        s->on[stream] = before > s->on[stream] ? before : s->on[stream];
    }
}

static bool follow(scheduler *s, const tr_access *access) {
    tr_stream stream = s->sequence->steps[s->step].stream;
    tr_extents *value = &s->values[access->value];
    size_t first, end;
    if (!tr__extents_cut(value, s->plan->buffers[access->value].bytes, access, &first,
                         &end)) {
        return false;
    }
    for (size_t i = first; i < end; i++) {
        depend(s, value->items[i].writer);
        for (int k = 0; k < TR_STREAMS && access->mode != TR_ACCESS_READ; k++) {
            depend(s, value->items[i].reader[k]);
        }
        value->items[i].reader[stream] = s->step;
    }
    if (access->mode != TR_ACCESS_READ) {
        tr__extents_write(value, first, end, s->step);
    }
    return true;
}

tr_status tr__schedule_find(const tr_plan *plan, tr_sequence_kind kind,
                            const tr_accesses *accesses, tr_dependencies *out,
                            tr_error *err) {
    const tr_sequence *sequence = &plan->sequences[kind];
    scheduler s = {.plan = plan, .sequence = sequence};
    s.values = tr__calloc(plan->buffer_count, sizeof *s.values);
    out->on = tr__calloc(sequence->count, sizeof *out->on);
    bool good = s.values && out->on;
    for (size_t i = 0; i < sequence->count && good; i++) {
        s.step = (int32_t)i;
        s.on = out->on[i];
        memset(s.on, -1, sizeof *out->on);
        for (size_t k = accesses->begin[i]; k < accesses->begin[i + 1] && good; k++) {
            good = follow(&s, &accesses->items[k]);
        }
    }
    tr__extents_free(s.values, plan->buffer_count);
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

// A wait of the walk holds for all later steps, one of a device's queue for its own
// later steps: only one for more is noted. number: [steps].
static void count_waits(const tr_plan *plan, tr_sequence *sequence, tr_stream stream,
                        const tr_dependencies *dependencies, int32_t *number) {
    int32_t issued = 0, done = 0, done_on[TR_STREAMS] = {0};
    for (size_t i = 0; i < sequence->count; i++) {
        tr_plan_step *step = &sequence->steps[i];
        int32_t on = step->stream == stream ? -1 : dependencies->on[i][stream];
        int32_t needed = on < 0 ? 0 : number[on];
        bool follows = tr__plan_follows(plan, step->stream, stream);
        int32_t *known = follows ? &done_on[step->stream] : &done;
        int32_t most = *known > done ? *known : done;
        step->wait[stream] = needed > most ? needed : 0;
        *known = needed > most ? needed : *known;
        issued += step->stream == stream;
        number[i] = issued;
    }
}

static tr_status find_waits(tr_plan *plan, tr_sequence_kind kind,
                            const tr_dependencies *dependencies, tr_error *err) {
    tr_sequence *sequence = &plan->sequences[kind];
    int32_t *number = tr__calloc(sequence->count, sizeof *number);
    if (!number) {
        return tr_fail(err, TR_MEMORY, "no memory for the plan's waits");
    }
    for (int s = 0; s < TR_STREAMS; s++) {
        if (tr__plan_is_beside(plan, (tr_stream)s)) {
            count_waits(plan, sequence, (tr_stream)s, dependencies, number);
        }
    }
    tr__free(number);
    return TR_OK;
}

tr_status tr__schedule_waits(tr_plan *plan, tr_sequence_kind kind,
                             tr_dependencies *dependencies, tr_error *err) {
    tr_status status = find_limits(&plan->sequences[kind], dependencies, err);
    return status == TR_OK ? find_waits(plan, kind, dependencies, err) : status;
}

tr_status tr__schedule_from(tr_plan *plan, tr_sequence_kind kind,
                            const tr_accesses *accesses, tr_error *err) {
    tr_dependencies dependencies = {0};
    tr_status status = tr__adds_find(plan, kind, accesses, err);
    if (status == TR_OK) {
        status = tr__schedule_find(plan, kind, accesses, &dependencies, err);
    }
    if (status == TR_OK) {
        status = tr__schedule_waits(plan, kind, &dependencies, err);
    }
    if (status == TR_OK) {
        status = tr__lifetimes_find(plan, kind, accesses, err);
    }
    tr__schedule_clear(&dependencies);
    return status;
}

static tr_status schedule_one(tr_plan *plan, tr_sequence_kind kind,
                              tr_scheduling *schedule, tr_error *err) {
    tr_accesses accesses = {0};
    tr_status status = tr__accesses_find(plan, kind, &accesses, err);
    if (status == TR_OK) {
        status = schedule(plan, kind, &accesses, err);
    }
    tr__accesses_clear(&accesses);
    return status;
}

tr_status tr__schedule_all(tr_plan *plan, tr_scheduling *schedule, tr_error *err) {
    tr_status status = TR_OK;
    for (int kind = 0; kind < TR_SEQUENCES && status == TR_OK; kind++) {
        status = schedule_one(plan, (tr_sequence_kind)kind, schedule, err);
    }
    return status;
}

tr_status tr__pass_schedule(tr_plan *plan, tr_error *err) {
    return tr__schedule_all(plan, tr__schedule_from, err);
}

// From below: what a plan takes at least, without making it.
#include "base/checked.h"
#include "plan/schedules/schedule.h"
#include "planner/outline.h"

#include <math.h>

tr_point tr__group_point(const tr_search *search, const tr_group *group, size_t rung) {
    tr_point point = group->point;
    tr__plan_settings[TR_DIMENSION_recomputed_units].set(&point, search->ladder[rung]);
    return point;
}

// Sizes of parts of parameters are rounded.
enum { ROUNDED = 1 << 16 };

static int64_t always(const tr_outline *s, int space) {
    double bytes = s->part * (double)s->class->always[space];
    return s->cut_alike ? s->class->always[space]
                        : tr__max_i64(0, (int64_t)bytes - ROUNDED);
}

static int64_t passing(const tr_outline *s, int space) {
    return s->cut_alike ? s->class->passing[space] : 0;
}

// Bytes of a unit and a micro-batch that leave.
static int64_t leaving(const tr_outline *s, int u) {
    return tr__outline_input_leaves(s, u)  ? tr__outline_unit(s, u)->input
           : tr__outline_saved_leave(s, u) ? tr__outline_unit(s, u)->saved
                                           : 0;
}

// ---- memory

// Forwards of the first stage for which a wave is away on the others. (Where gradients
// of weights come later, a backward may be much shorter than a unit's cost says.)
static double forwards_away(const tr_outline *s) {
    double forward = 0, others = 0;
    for (int u = 0; u < s->units; u++) {
        const tr_unit_figures *unit = tr__outline_unit(s, u);
        forward += tr__outline_is_own(s, u) ? unit->forward_cost : 0;
        others += tr__outline_is_own(s, u) ? 0
                  : s->weights_later       ? unit->forward_cost
                                           : unit->cost;
    }
    return others / forward;
}

// What the first stage keeps, when its first backward begins, of waves and chunks that
// this backward is not of.
static int64_t kept_beside(const tr_outline *s, int chunk) {
    int64_t waves = tr__ceil_div(s->steps, s->wave), bytes = 0;
    double away = s->chunk ? forwards_away(s) : 0;
    for (int u = 0; u < s->units && s->chunk; u++) {
        if (tr__outline_is_own(s, u) && tr__outline_unit(s, u)->backward) {
            int64_t boundary = 0, kept = tr__outline_kept(s, u, &boundary);
            int64_t of = tr__outline_chunk(s, u);
            int64_t count =
                tr__waves_kept(s->request, waves, of / s->chunks.stages, away) -
                (of == chunk ? 1 : 0);
            // The last wave may be shorter.
            bytes += tr__max_i64(0, tr__min_i64(count * s->wave, s->steps - s->wave)) *
                     (kept + boundary);
        }
    }
    return bytes;
}

// The last chunk of the first stage, which is the first that it takes backward.
static int last_own_chunk(const tr_outline *s) {
    return s->chunk ? tr__stage_chunk(&s->chunks, 0, s->chunks.each - 1) : 0;
}

// At the backward of each unit of a chunk live what the units below keep, of the whole
// wave, what the stage keeps beside, and the unit's own work on the first micro-batch.
static int64_t passing_in(const tr_outline *s, int chunk, int64_t below) {
    int64_t most = 0;
    for (int u = 0; u < s->units; u++) {
        const tr_unit_figures *unit = tr__outline_unit(s, u);
        bool last = u == s->units - 1;
        if (!unit->backward ||
            tr__outline_chunk(s, u) != chunk) { // nothing of it is kept
            continue;
        }
        int64_t boundary = 0, kept = tr__outline_kept(s, u, &boundary);
        bool less = s->weights_later || (last && s->twice);
        int64_t work = less ? 0 : unit->backward_workspace;
        int64_t here = below + s->wave * boundary + work;
        bool one = last || tr__outline_is_again(s, u) || tr__outline_saved_leave(s, u);
        bool back = tr__outline_input_leaves(s, u) && unit->keeps_input;
        here += one ? unit->saved : s->wave * unit->saved;
        here += last ? 0 : s->wave * unit->output;
        here += back ? unit->input : 0;
        here += s->chunk ? 0 : s->class->moved[u]; // stages move in another order
        most = tr__max_i64(most, here);
        below += s->wave * (kept + boundary);
    }
    return most;
}

static int64_t passing_device(const tr_outline *s, const tr_course *course) {
    int chunk = last_own_chunk(s);
    int64_t least = passing(s, TR_SPACE_DEVICE);
    int64_t most = tr__max_i64(least, passing_in(s, chunk, kept_beside(s, chunk)));
    for (int64_t i = 0; course && i < s->chunks.each; i++) {
        int own = tr__stage_chunk(&s->chunks, 0, i);
        most = tr__max_i64(most, passing_in(s, own, course->beside[own]));
    }
    return most;
}

// The same on any stage. (What lives always is known of the first one alone.)
static int64_t passing_elsewhere(const tr_outline *s, const tr_course *course) {
    int64_t most = 0;
    for (int c = 0; course && c < tr__chunk_count(&s->chunks); c++) {
        most = tr__max_i64(most, passing_in(s, c, course->beside[c]));
    }
    return most;
}

// ---- what leaves

// Of a wave, what would have to come back at once stays (plan/passes/away.c): no more
// values than this.
enum { STAY_MOST = 4 };

// Bytes of a wave's values that are away at the same time.
static int64_t bytes_away(const tr_outline *s) {
    int64_t sum = 0, largest = 0;
    for (int u = 0; u < s->units; u++) {
        int64_t bytes = tr__outline_is_own(s, u) ? leaving(s, u) : 0;
        sum += bytes;
        largest = tr__max_i64(largest, bytes);
    }
    return tr__max_i64(0, s->wave * sum - 2 * STAY_MOST * largest);
}

// Seconds that a way takes for so many bytes.
static double way_seconds(const tr_machine *m, tr_way way, double bytes) {
    return m->way[way].latency + bytes / m->way[way].rate;
}

// Seconds of a copy stream: what leaves, what comes back, or both.
static double seconds_away(const tr_outline *s, const tr_machine *m, tr_stream on) {
    bool back = on == TR_STREAM_COPY;
    bool leaves = s->discrete ? on == TR_STREAM_COPY_OUT : back;
    double most = 0, all = 0, waves = (double)tr__ceil_div(s->steps, s->wave);
    for (int u = 0; u < s->units; u++) {
        double bytes = tr__outline_is_own(s, u) ? (double)leaving(s, u) : 0;
        if (bytes > 0) {
            double one = (leaves ? way_seconds(m, TR_WAY_TO_HOST, bytes) : 0) +
                         (back ? way_seconds(m, TR_WAY_TO_DEVICE, bytes) : 0);
            all += one;
            most = fmax(most, one);
        }
    }
    return isfinite(all) ? fmax(0, all * (double)s->steps - STAY_MOST * most * waves)
                         : all;
}

// ---- time

// Of the first stage; and with what it waits for.
typedef struct busy {
    double kernels, all;
} busy;

static busy computing(const tr_outline *s, bool cached) {
    double seconds = 0, messages = 0, steps = (double)s->steps;
    for (int u = 0; u < s->units; u++) {
        seconds +=
            tr__outline_is_own(s, u) ? tr__outline_unit(s, u)->seconds[cached] : 0;
        messages += tr__outline_is_own(s, u) ? tr__outline_waiting(s, u) : 0;
    }
    const double *load = s->class->load[TR_STREAM_COMPUTE];
    double other = s->part * (load[1] * (steps - 1) + load[0]);
    return (busy){seconds * steps + other,
                  seconds * steps + fmax(messages * steps, other)};
}

// Of a pipeline: each stage is at work on all micro-batches, and none before the first
// one has been through the stages before it, nor do these end before the last one is
// back.
static double of_stages(const tr_outline *s, bool cached) {
    bool follow = !s->weights_later; // a backward is one turn
    double most = 0;
    for (int64_t stage = 0; stage < s->chunks.stages && s->chunk; stage++) {
        double own = 0, before = 0;
        for (int u = 0; u < s->units; u++) {
            const tr_unit_figures *unit = tr__outline_unit(s, u);
            double here = unit->seconds[cached] + tr__outline_waiting(s, u);
            own += tr__outline_stage(s, u) == stage ? here : 0;
            if (tr__outline_chunk(s, u) <
                stage) { // what is recomputed is when others wait
                before += unit->forward[cached];
                before += follow ? unit->backward_seconds[cached] : 0;
            }
        }
        most = fmax(most, own * (double)s->steps + before);
    }
    return most;
}

// Two streams of which each slows the other while both are at work: either one after
// the other, or together as long as both have work, whichever is sooner.
static double together(double a, double b, double interference) {
    double slowed = interference / (1 - interference);
    return fmax(a, b) + fmin(a, b) * fmin(1, slowed);
}

// Where a stage turns around from one wave to another, what it has gathered of a unit
// serves both.
static double of_waves(const tr_outline *s, tr_stream stream) {
    double waves = (double)tr__ceil_div(s->steps, s->wave);
    const double *load = s->class->load[stream];
    bool turns = s->chunk && stream == TR_STREAM_COMM;
    double served =
        turns ? 2 * (double)s->chunks.each * waves * s->class->unit_load : 0;
    return s->part * fmax(0, load[0] + (waves - 1) * load[1] - served);
}

static double seconds_of(const tr_outline *s, const tr_machine *m, bool cached) {
    busy own = computing(s, cached);
    double most = fmax(own.all, of_stages(s, cached));
    for (int i = 0; i < TR_STREAMS; i++) {
        double load =
            tr__stream_is_beside((tr_stream)i) ? of_waves(s, (tr_stream)i) : 0;
        load += seconds_away(s, m, (tr_stream)i);
        most = fmax(most, together(own.kernels, load,
                                   tr__stream_interference(m, (tr_stream)i)));
    }
    return most;
}

tr_bound tr__bound_of(const tr_outline *s, const tr_machine *machine,
                      const tr_course *course) {
    tr_bound bound = {0};
    for (int space = 0; space < TR_SPACES; space++) {
        bound.bytes[space] = always(s, space) + passing(s, space);
    }
    bound.bytes[TR_SPACE_HOST] = always(s, TR_SPACE_HOST) +
                                 tr__max_i64(passing(s, TR_SPACE_HOST), bytes_away(s));
    // Rings of two waves for training and two micro-batches for evaluation.
    bound.bytes[TR_SPACE_DEVICE] =
        always(s, TR_SPACE_DEVICE) + passing_device(s, course) +
        (2 * s->wave + 2) * s->kernels->slot - 4 * s->class->slot;
    bound.bytes[TR_SPACE_DEVICE] =
        tr__max_i64(bound.bytes[TR_SPACE_DEVICE], passing_elsewhere(s, course));
    bool cached = (double)bound.bytes[TR_SPACE_DEVICE] <= machine->cache_bytes;
    bound.seconds = seconds_of(s, machine, cached);
    if (course) {
        bound.seconds = fmax(bound.seconds, course->seconds[cached]);
    }
    return bound;
}

tr_bound tr__bound(const tr_search *search, const tr_group *group, size_t rung) {
    tr_outline s = tr__outline_of(search, group, rung);
    return tr__bound_of(&s, search->request->machine, NULL);
}

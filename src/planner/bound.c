// From below: what a plan takes at least, without making it.
#include "base/checked.h"
#include "planner/planner.h"

#include <math.h>

tr_point tr__group_point(const tr_search *search, const tr_group *group, size_t rung) {
    tr_point point = group->point;
    tr__plan_settings[TR_DIMENSION_recomputed_units].set(&point, search->ladder[rung]);
    return point;
}

// What a point is made of, resolved as a plan resolves it.
typedef struct shape {
    const tr_kernels *kernels;
    const tr_class *class;
    int units;
    int64_t again;       // recomputed units
    int64_t steps, wave; // g
    // What leaves the device between forward and backward: inputs of recomputed units;
    // what the others save.
    bool inputs_leave, saved_leave;
    bool discrete; // both ways at once
    bool twice; // in two passes: when the last unit's loss is at work, nothing is kept
} shape;

static shape shape_of(const tr_search *search, const tr_group *group, size_t rung) {
    const tr_plan_request *r = &group->point.plan;
    shape s = {.kernels = group->kernels,
               .class = group->class,
               .units = r->model->unit_count,
               .again = search->ladder[rung],
               .steps = r->accumulation_steps,
               .wave = r->wave,
               .inputs_leave = r->boundary_placement != TR_SPACE_DEVICE,
               .saved_leave = r->saved_placement != TR_SPACE_DEVICE,
               .discrete = r->discrete,
               .twice = r->passes > 1};
    if (s.again < 0 || s.again > s.units - 1) {
        s.again = s.units - 1;
    }
    if (group->class->whole_wave) {
        s.wave = s.steps;
    }
    s.wave = tr__max_i64(1, tr__min_i64(s.wave, s.steps));
    return s;
}

static bool is_again(const shape *s, int u) {
    return u < s->again && s->kernels->again[u].worth;
}

static const tr_unit_figures *unit_of(const shape *s, int u) {
    return is_again(s, u) ? &s->kernels->again[u] : &s->kernels->units[u];
}

static bool input_leaves(const shape *s, int u) {
    return s->inputs_leave && is_again(s, u) && unit_of(s, u)->input > 0;
}

// What the last unit saves is needed at once.
static bool saved_leave(const shape *s, int u) {
    return s->saved_leave && !is_again(s, u) && u < s->units - 1;
}

// Bytes of a unit and a micro-batch that leave.
static int64_t leaving(const shape *s, int u) {
    return input_leaves(s, u)  ? unit_of(s, u)->input
           : saved_leave(s, u) ? unit_of(s, u)->saved
                               : 0;
}

// ---- memory

// What unit u keeps of each micro-batch until its backward.
static int64_t kept_of(const shape *s, int u, int64_t *boundary) {
    const tr_unit_figures *unit = unit_of(s, u);
    bool below = u > 0 && unit_of(s, u - 1)->keeps_output;
    bool stays = (unit->keeps_input || is_again(s, u) || below) && !input_leaves(s, u);
    *boundary = stays ? unit->input : 0;
    return is_again(s, u) || saved_leave(s, u) ? 0 : unit->saved;
}

// At the backward of each unit live what the units below keep, of the whole wave, and
// its own work on the first micro-batch.
static int64_t passing_device(const shape *s) {
    int64_t below = 0, most = s->class->passing[TR_SPACE_DEVICE];
    for (int u = 0; u < s->units; u++) {
        const tr_unit_figures *unit = unit_of(s, u);
        bool last = u == s->units - 1;
        if (!unit->backward) { // nothing in it, or below, is kept
            continue;
        }
        int64_t boundary = 0, kept = kept_of(s, u, &boundary);
        int64_t work = last && s->twice ? 0 : unit->backward_workspace;
        int64_t here = below + s->wave * boundary + work;
        bool one = last || is_again(s, u) || saved_leave(s, u);
        here += one ? unit->saved : s->wave * unit->saved;
        here += last ? 0 : s->wave * unit->output;
        here += input_leaves(s, u) && unit->keeps_input ? unit->input : 0; // is back
        here += s->class->moved[u];
        most = tr__max_i64(most, here);
        below += s->wave * (kept + boundary);
    }
    return most;
}

// ---- what leaves

// Of a wave, what would have to come back at once stays (plan/passes/away.c): no more
// values than this.
enum { STAY_MOST = 4 };

// Bytes of a wave's values that are away at the same time.
static int64_t bytes_away(const shape *s) {
    int64_t sum = 0, largest = 0;
    for (int u = 0; u < s->units; u++) {
        int64_t bytes = leaving(s, u);
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
static double seconds_away(const shape *s, const tr_machine *m, tr_stream on) {
    bool back = on == TR_STREAM_COPY;
    bool leaves = s->discrete ? on == TR_STREAM_COPY_OUT : back;
    double most = 0, all = 0, waves = (double)tr__ceil_div(s->steps, s->wave);
    for (int u = 0; u < s->units; u++) {
        double bytes = (double)leaving(s, u);
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

static double computing(const shape *s, bool cached) {
    double seconds = 0;
    for (int u = 0; u < s->units; u++) {
        seconds += unit_of(s, u)->seconds[cached];
    }
    const double *other = s->class->load[TR_STREAM_COMPUTE];
    return (seconds + other[1]) * (double)s->steps + other[0] - other[1];
}

// Two streams of which each slows the other while both are at work: either one after
// the other, or together as long as both have work, whichever is sooner.
static double together(double a, double b, double interference) {
    double slowed = interference / (1 - interference);
    return fmax(a, b) + fmin(a, b) * fmin(1, slowed);
}

static double of_waves(const shape *s, tr_stream stream) {
    double waves = (double)tr__ceil_div(s->steps, s->wave);
    const double *load = s->class->load[stream];
    return load[0] + (waves - 1) * load[1];
}

static double seconds_of(const shape *s, const tr_machine *m, bool cached) {
    double compute = computing(s, cached), most = compute;
    for (int i = 0; i < TR_STREAMS; i++) {
        double load =
            tr__stream_is_beside((tr_stream)i) ? of_waves(s, (tr_stream)i) : 0;
        load += seconds_away(s, m, (tr_stream)i);
        most = fmax(most,
                    together(compute, load, tr__stream_interference(m, (tr_stream)i)));
    }
    return most;
}

tr_bound tr__bound(const tr_search *search, const tr_group *group, size_t rung) {
    const tr_machine *machine = search->request->machine;
    shape s = shape_of(search, group, rung);
    tr_bound bound = {0};
    for (int space = 0; space < TR_SPACES; space++) {
        bound.bytes[space] = s.class->always[space] + s.class->passing[space];
    }
    bound.bytes[TR_SPACE_HOST] =
        s.class->always[TR_SPACE_HOST] +
        tr__max_i64(s.class->passing[TR_SPACE_HOST], bytes_away(&s));
    // Rings of two waves for training and two micro-batches for evaluation.
    bound.bytes[TR_SPACE_DEVICE] =
        s.class->always[TR_SPACE_DEVICE] + passing_device(&s) +
        (2 * s.wave + 2) * s.kernels->slot - 4 * s.class->slot;
    bool cached = (double)bound.bytes[TR_SPACE_DEVICE] <= machine->cache_bytes;
    bound.seconds = seconds_of(&s, machine, cached);
    return bound;
}

// From below: what a plan takes at least, without making it.
#include "base/checked.h"
#include "plan/schedules/schedule.h"
#include "planner/planner.h"

#include <math.h>

tr_point tr__group_point(const tr_search *search, const tr_group *group, size_t rung) {
    tr_point point = group->point;
    tr__plan_settings[TR_DIMENSION_recomputed_units].set(&point, search->ladder[rung]);
    return point;
}

// What a point is made of, resolved as a plan resolves it. Of a pipeline, memory and
// what goes on beside computing are those of the first stage.
typedef struct shape {
    const tr_plan_request *request;
    const tr_kernels *kernels;
    const tr_class *class;
    tr_chunks chunks;
    const int *chunk; // of each unit; NULL: there is one
    // Stages are cut where the class's are; else the share of what lives always that
    // there is at least, by the parameters of the first stage.
    bool cut_alike;
    double part;
    int units;
    int64_t again;       // recomputed units
    int64_t steps, wave; // g
    // What leaves the device between forward and backward: inputs of recomputed units;
    // what the others save.
    bool inputs_leave, saved_leave;
    bool weights_later; // a backward works in less memory than that of the figures
    bool discrete;      // both ways at once
    bool twice; // in two passes: when the last unit's loss is at work, nothing is kept
} shape;

static int chunk_of(const shape *s, int u) {
    return s->chunk ? s->chunk[u] : 0;
}

static int64_t stage_of(const shape *s, int u) {
    return tr__chunk_stage(&s->chunks, chunk_of(s, u));
}

static bool is_own(const shape *s, int u) {
    return stage_of(s, u) == 0;
}

static void compare_cuts(shape *s) {
    double here = 0, there = 0;
    s->cut_alike = true;
    for (int u = 0; u < s->units && s->chunk; u++) {
        double bytes = (double)s->kernels->units[u].parameters;
        here += is_own(s, u) ? bytes : 0;
        there += s->class->own[u] ? bytes : 0;
        s->cut_alike = s->cut_alike && is_own(s, u) == s->class->own[u];
    }
    s->part = s->cut_alike || here >= there ? 1 : here / there;
}

// Sizes of parts of parameters are rounded.
enum { ROUNDED = 1 << 16 };

static int64_t always(const shape *s, int space) {
    double bytes = s->part * (double)s->class->always[space];
    return s->cut_alike ? s->class->always[space]
                        : tr__max_i64(0, (int64_t)bytes - ROUNDED);
}

static int64_t passing(const shape *s, int space) {
    return s->cut_alike ? s->class->passing[space] : 0;
}

static shape shape_of(const tr_search *search, const tr_group *group, size_t rung) {
    const tr_plan_request *r = &group->point.plan;
    shape s = {.request = r,
               .kernels = group->kernels,
               .chunks = tr__pipeline_chunks(r),
               .weights_later = tr__weights_come_later(r),
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
    s.chunk =
        tr__kernels_cut(group->kernels, s.units, tr__chunk_count(&s.chunks), s.again);
    compare_cuts(&s);
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

// Forwards of the first stage for which a wave is away on the others. (Where gradients
// of weights come later, a backward may be much shorter than a unit's cost says.)
static double forwards_away(const shape *s) {
    double forward = 0, others = 0;
    for (int u = 0; u < s->units; u++) {
        const tr_unit_figures *unit = unit_of(s, u);
        forward += is_own(s, u) ? unit->forward_cost : 0;
        others += is_own(s, u) ? 0 : s->weights_later ? unit->forward_cost : unit->cost;
    }
    return others / forward;
}

// What the first stage keeps, when its first backward begins, of waves and chunks that
// this backward is not of.
static int64_t kept_beside(const shape *s, int chunk) {
    int64_t waves = tr__ceil_div(s->steps, s->wave), bytes = 0;
    double away = s->chunk ? forwards_away(s) : 0;
    for (int u = 0; u < s->units && s->chunk; u++) {
        if (is_own(s, u) && unit_of(s, u)->backward) {
            int64_t boundary = 0, kept = kept_of(s, u, &boundary);
            int64_t of = chunk_of(s, u);
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
static int last_own_chunk(const shape *s) {
    return s->chunk ? tr__stage_chunk(&s->chunks, 0, s->chunks.each - 1) : 0;
}

// At the backward of each unit live what the units below keep, of the whole wave, and
// its own work on the first micro-batch.
static int64_t passing_device(const shape *s) {
    int chunk = last_own_chunk(s);
    int64_t below = kept_beside(s, chunk), most = passing(s, TR_SPACE_DEVICE);
    for (int u = 0; u < s->units; u++) {
        const tr_unit_figures *unit = unit_of(s, u);
        bool last = u == s->units - 1;
        if (!unit->backward || chunk_of(s, u) != chunk) { // nothing of it is kept
            continue;
        }
        int64_t boundary = 0, kept = kept_of(s, u, &boundary);
        bool less = s->weights_later || (last && s->twice);
        int64_t work = less ? 0 : unit->backward_workspace;
        int64_t here = below + s->wave * boundary + work;
        bool one = last || is_again(s, u) || saved_leave(s, u);
        here += one ? unit->saved : s->wave * unit->saved;
        here += last ? 0 : s->wave * unit->output;
        here += input_leaves(s, u) && unit->keeps_input ? unit->input : 0; // is back
        here += s->chunk ? 0 : s->class->moved[u]; // stages move in another order
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
        int64_t bytes = is_own(s, u) ? leaving(s, u) : 0;
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
        double bytes = is_own(s, u) ? (double)leaving(s, u) : 0;
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

// Of a micro-batch in a unit. With a wave of one, nothing of units computes while a
// forward waits for other ranks.
static double waiting(const shape *s, int u) {
    return s->wave == 1 ? unit_of(s, u)->messages : 0;
}

static double computing(const shape *s, bool cached) {
    double seconds = 0, messages = 0, steps = (double)s->steps;
    for (int u = 0; u < s->units; u++) {
        seconds += is_own(s, u) ? unit_of(s, u)->seconds[cached] : 0;
        messages += is_own(s, u) ? waiting(s, u) : 0;
    }
    const double *other = s->class->load[TR_STREAM_COMPUTE];
    return seconds * steps +
           fmax(messages * steps, s->part * (other[1] * (steps - 1) + other[0]));
}

// Of a pipeline: each stage is at work on all micro-batches, and none before the first
// one has been through the stages before it, nor do these end before the last one is
// back.
static double of_stages(const shape *s, bool cached) {
    bool follow = !s->weights_later; // a backward is one turn
    double most = 0;
    for (int64_t stage = 0; stage < s->chunks.stages && s->chunk; stage++) {
        double own = 0, before = 0;
        for (int u = 0; u < s->units; u++) {
            const tr_unit_figures *unit = unit_of(s, u);
            double here = unit->seconds[cached] + waiting(s, u);
            own += stage_of(s, u) == stage ? here : 0;
            if (chunk_of(s, u) < stage) { // what is recomputed is when others wait
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

static double of_waves(const shape *s, tr_stream stream) {
    double waves = (double)tr__ceil_div(s->steps, s->wave);
    const double *load = s->class->load[stream];
    return s->part * (load[0] + (waves - 1) * load[1]);
}

static double seconds_of(const shape *s, const tr_machine *m, bool cached) {
    double compute = computing(s, cached), most = fmax(compute, of_stages(s, cached));
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
        bound.bytes[space] = always(&s, space) + passing(&s, space);
    }
    bound.bytes[TR_SPACE_HOST] =
        always(&s, TR_SPACE_HOST) +
        tr__max_i64(passing(&s, TR_SPACE_HOST), bytes_away(&s));
    // Rings of two waves for training and two micro-batches for evaluation.
    bound.bytes[TR_SPACE_DEVICE] = always(&s, TR_SPACE_DEVICE) + passing_device(&s) +
                                   (2 * s.wave + 2) * s.kernels->slot -
                                   4 * s.class->slot;
    bool cached = (double)bound.bytes[TR_SPACE_DEVICE] <= machine->cache_bytes;
    bound.seconds = seconds_of(&s, machine, cached);
    return bound;
}

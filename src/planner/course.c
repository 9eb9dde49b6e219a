// A closer bound of a pipeline. Its stages take the turns that the plan gives them, in
// their order. None begins before the stage is free, and before what it waits for has
// come. Each takes as long as its kernels alone; messages between stages take no time.
// A stage keeps what it has taken forward and not yet backward.
#include "base/checked.h"
#include "base/memory.h"
#include "plan/schedules/schedule.h"
#include "planner/outline.h"

#include <math.h>

// Seconds of a micro-batch in a chunk, with kernels alone.
typedef struct chunk_seconds {
    double turn[TR_TURN_KINDS];
    double again;  // before a backward, and perhaps before that can begin
    double behind; // what ranks exchange before a forward is handed on
} chunk_seconds;

// When a turn has handed on its first micro-batch, and its last.
typedef struct handed {
    double first, last;
} handed;

typedef struct pipeline {
    const tr_outline *s;
    const tr_turn_figures *later; // [units]; NULL: a backward is one turn
    int chunks;
    int *first; // [chunks + 1] units
    tr_turns turns;
    chunk_seconds *seconds; // [chunks]
    handed *handed;         // [TR_TURN_KINDS][chunks][waves]
    double *free;           // [stages] when the turns that it has taken have ended
    int64_t *kept;          // [chunks] bytes of a micro-batch, until its backward
    int64_t *under_way;     // [chunks] micro-batches that are forward and not backward
    int64_t steps;
} pipeline;

// ---- what turns take

static double cost_of(const pipeline *p, int u, tr_turn_kind kind) {
    const tr_outline *s = p->s;
    const tr_unit_figures *unit =
        u < s->again ? &s->kernels->again[u] : &s->kernels->units[u];
    double again = u < s->again ? unit->forward_cost : 0;
    return p->later                   ? p->later[u].cost[kind]
           : kind == TR_TURN_FORWARD  ? unit->forward_cost
           : kind == TR_TURN_BACKWARD ? unit->backward_cost + again
                                      : 0;
}

// As the plan reckons (plan/passes/cut_stages.c).
static bool reckon_turns(const pipeline *p, int64_t *takes) {
    int units = p->s->units, last = units - 1;
    double *cost = tr__calloc(TR_TURN_KINDS * (size_t)units, sizeof *cost);
    for (int i = 0; cost && i < TR_TURN_KINDS * units; i++) {
        cost[i] = cost_of(p, i % units, (tr_turn_kind)(i / units));
    }
    if (cost) {
        cost[last] += cost[TR_TURN_BACKWARD * units + last];
        cost[TR_TURN_BACKWARD * units + last] = 0;
        tr__turns_take(cost, units, p->first, p->chunks, takes);
    }
    tr__free(cost);
    return cost != NULL;
}

static void add_unit(const pipeline *p, int u, bool cached, chunk_seconds *to) {
    const tr_outline *s = p->s;
    const tr_unit_figures *unit = tr__outline_unit(s, u);
    double forward = unit->forward[cached], backward = unit->backward_seconds[cached];
    double weights = 0;
    if (p->later) {
        forward = p->later[u].seconds[cached][TR_TURN_FORWARD];
        backward = p->later[u].seconds[cached][TR_TURN_BACKWARD];
        weights = p->later[u].seconds[cached][TR_TURN_WEIGHTS];
    } else {
        to->again += unit->seconds[cached] - unit->forward[cached] -
                     unit->backward_seconds[cached];
    }
    to->turn[TR_TURN_FORWARD] += forward + tr__outline_waiting(s, u);
    // The model's last unit turns micro-batches around at once.
    to->turn[u == s->units - 1 ? TR_TURN_FORWARD : TR_TURN_BACKWARD] += backward;
    to->turn[TR_TURN_WEIGHTS] += weights;
}

static void find_seconds(pipeline *p, bool cached) {
    for (int c = 0; c < p->chunks; c++) {
        p->seconds[c] = (chunk_seconds){.again = 0};
        for (int u = p->first[c]; u < p->first[c + 1]; u++) {
            add_unit(p, u, cached, &p->seconds[c]);
        }
        int last = p->first[c + 1] - 1;
        p->seconds[c].behind =
            c + 1 < p->chunks ? tr__outline_waiting_behind(p->s, last) : 0;
    }
}

// ---- the course of a step

static int64_t micro_batches(const pipeline *p, tr_pipeline_turn turn) {
    int64_t first = turn.wave * p->s->wave;
    return tr__min_i64(p->s->wave, p->steps - first);
}

static handed *handed_by(const pipeline *p, tr_pipeline_turn turn) {
    return &p->handed[tr__pipeline_turn_index(&p->turns, turn)];
}

// What lets the turn begin, beside the stage. A last chunk of one unit hands on its
// gradient in its forward.
static handed awaited(const pipeline *p, tr_pipeline_turn turn) {
    int last = p->chunks - 1;
    tr_pipeline_turn before = turn;
    before.chunk += turn.kind == TR_TURN_FORWARD ? -1 : 1;
    if (turn.kind == TR_TURN_WEIGHTS || before.chunk < 0 || before.chunk > last) {
        return (handed){0, 0};
    }
    if (before.chunk == last && p->first[last + 1] - p->first[last] == 1) {
        before.kind = TR_TURN_FORWARD;
    }
    return *handed_by(p, before);
}

static void take_turn(pipeline *p, tr_pipeline_turn turn) {
    const chunk_seconds *seconds = &p->seconds[turn.chunk];
    double *free = &p->free[tr__chunk_stage(&p->turns.chunks, turn.chunk)];
    double one = seconds->turn[turn.kind], count = (double)micro_batches(p, turn);
    double again = turn.kind == TR_TURN_BACKWARD ? seconds->again : 0;
    double behind = turn.kind == TR_TURN_FORWARD ? seconds->behind : 0;
    handed from = awaited(p, turn);
    double end = fmax(*free + count * (again + one), from.first + count * one);
    end = fmax(end, from.last + one);
    double first = fmax(*free + again + one, from.first + one);
    *handed_by(p, turn) = (handed){first + behind, end + behind};
    *free = end;
}

static double walk(pipeline *p) {
    double end = 0;
    for (int64_t i = 0; i < p->turns.chunks.stages; i++) {
        p->free[i] = 0;
    }
    for (int64_t i = 0; i < p->turns.count; i++) {
        take_turn(p, p->turns.turn[i]);
    }
    for (int64_t i = 0; i < p->turns.chunks.stages; i++) {
        end = fmax(end, p->free[i]);
    }
    return end;
}

// ---- what stages keep

static int64_t kept_of_chunk(const pipeline *p, int chunk) {
    int64_t bytes = 0;
    for (int u = p->first[chunk]; u < p->first[chunk + 1]; u++) {
        if (tr__outline_unit(p->s, u)->backward) {
            int64_t boundary = 0, kept = tr__outline_kept(p->s, u, &boundary);
            bytes += kept + boundary;
        }
    }
    return bytes;
}

// At the backward of a whole wave.
static void note_backward(const pipeline *p, tr_pipeline_turn turn, int64_t count,
                          tr_course *course) {
    const tr_chunks *chunks = &p->turns.chunks;
    int64_t stage = tr__chunk_stage(chunks, turn.chunk);
    int64_t bytes = -count * p->kept[turn.chunk];
    for (int64_t i = 0; i < chunks->each && count == p->s->wave; i++) {
        int chunk = tr__stage_chunk(chunks, stage, i);
        bytes += p->under_way[chunk] * p->kept[chunk];
    }
    course->beside[turn.chunk] = tr__max_i64(course->beside[turn.chunk], bytes);
}

static void find_kept(pipeline *p, tr_course *course) {
    for (int c = 0; c < p->chunks; c++) {
        p->kept[c] = kept_of_chunk(p, c);
    }
    for (int64_t k = 0; k < p->turns.count; k++) {
        tr_pipeline_turn turn = p->turns.turn[k];
        int64_t count = micro_batches(p, turn);
        if (turn.kind == TR_TURN_FORWARD) {
            p->under_way[turn.chunk] += count;
        } else if (turn.kind == TR_TURN_BACKWARD) {
            note_backward(p, turn, count, course);
            p->under_way[turn.chunk] -= count;
        }
    }
}

// ----

static bool find_turns(pipeline *p) {
    tr_error err = {0};
    int64_t *takes = tr__calloc(TR_TURN_KINDS * (size_t)p->chunks, sizeof *takes);
    tr_pipeline_place at = {.chunks = p->s->chunks,
                            .waves = tr__ceil_div(p->steps, p->s->wave),
                            .stage = -1,
                            .takes = takes};
    bool good = takes && reckon_turns(p, takes) &&
                tr__pipeline_turns(tr__pipeline_schedule(p->s->request->pipeline_order),
                                   &at, &p->turns, &err) == TR_OK;
    tr__free(takes);
    return good;
}

static void note_units(pipeline *p) {
    for (int u = p->s->units - 1; u >= 0; u--) {
        p->first[tr__outline_chunk(p->s, u)] = u;
    }
    p->first[p->chunks] = p->s->units;
}

static bool begin(pipeline *p) {
    size_t chunks = (size_t)p->chunks;
    int64_t waves = tr__ceil_div(p->steps, p->s->wave);
    p->first = tr__calloc(chunks + 1, sizeof *p->first);
    p->seconds = tr__calloc(chunks, sizeof *p->seconds);
    p->handed = tr__calloc(TR_TURN_KINDS * chunks * (size_t)waves, sizeof *p->handed);
    p->free = tr__calloc((size_t)p->s->chunks.stages, sizeof *p->free);
    p->kept = tr__calloc(chunks, sizeof *p->kept);
    p->under_way = tr__calloc(chunks, sizeof *p->under_way);
    if (!p->first || !p->seconds || !p->handed || !p->free || !p->kept ||
        !p->under_way) {
        return false;
    }
    note_units(p);
    return find_turns(p);
}

static void end(pipeline *p) {
    tr__free(p->first);
    tr__free(p->seconds);
    tr__free(p->handed);
    tr__free(p->free);
    tr__free(p->kept);
    tr__free(p->under_way);
    tr__turns_clear(&p->turns);
}

// Of a plan that is told by one of fewer waves only the bytes are that one's.
static bool find_course(const tr_outline *s, const tr_turn_figures *later,
                        int64_t steps, tr_course *course) {
    pipeline p = {
        .s = s, .later = later, .chunks = tr__chunk_count(&s->chunks), .steps = steps};
    bool good = begin(&p);
    if (good) {
        find_kept(&p, course);
    }
    for (int cached = 0; cached < 2 && good && steps == s->steps; cached++) {
        find_seconds(&p, cached);
        course->seconds[cached] = walk(&p);
    }
    end(&p);
    return good;
}

tr_bound tr__bound_close(const tr_search *search, const tr_group *group, size_t rung) {
    const tr_machine *machine = search->request->machine;
    tr_outline s = tr__outline_of(search, group, rung);
    tr_bound bound = tr__bound_of(&s, machine, NULL);
    // Units whose gradients of weights come later are not recomputed (tr__group_rungs),
    // unless the run file says so.
    if (!s.chunk || s.twice || (s.weights_later && s.again > 0)) {
        return bound;
    }
    tr_plan_request made;
    size_t chunks = (size_t)tr__chunk_count(&s.chunks);
    tr_course course = {.beside = tr__calloc(chunks, sizeof *course.beside)};
    const tr_turn_figures *later =
        s.weights_later ? tr__kernels_later(search, &group->point, group->kernels)
                        : NULL;
    (void)tr__search_shortens(search, s.request, &made);
    if (course.beside && !s.weights_later == !later &&
        find_course(&s, later, made.accumulation_steps, &course)) {
        bound = tr__bound_of(&s, machine, &course);
    }
    tr__free(course.beside);
    return bound;
}

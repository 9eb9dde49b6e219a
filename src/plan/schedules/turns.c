// What each stage of a pipeline does when: its schedule says what goes forward and
// backward next. A stage takes the next forward where that can go and the stage may
// have one more under way, else the next backward, else gradients of weights that it
// has put off. Messages take no time.
#include "plan/schedules/schedule.h"

#include "base/checked.h"
#include "base/memory.h"

#include <string.h>

// What a stage has done.
typedef struct lane {
    tr_pipeline_place at;
    int64_t taken[TR_TURN_KINDS];
    int64_t *of_chunk;     // [TR_TURN_KINDS][each] the same, chunk by chunk
    int64_t most, kept;    // under way; whose activations are kept
    int64_t free;          // from then on
    tr_pipeline_turn last; // taken
    bool woken;            // something may go on
} lane;

typedef struct timeline {
    const tr_pipeline_schedule *schedule;
    lane *lanes; // [stages]
    int64_t *of_chunks;
    int64_t now;
    int64_t own;                   // the stage whose turns are noted; -1: all are
    const tr_turn_choice *choices; // NULL: the schedule says what is next
    bool evaluates;                // waves go forward alone
    int chunks;                    // of all stages
    // Of each chunk the stage, and which of the stage's it is; and the other way round:
    // [stages][each].
    int *stage_of, *place_of, *chunk_at;
    tr_turns *out;
} timeline;

static size_t index_of(const timeline *c, tr_pipeline_turn turn) {
    int64_t first = (int64_t)turn.kind * c->chunks + turn.chunk;
    return (size_t)(first * c->out->waves + turn.wave);
}

// Before a turn has been taken its end is 0.
static bool is_done(const timeline *c, tr_pipeline_turn turn) {
    int64_t end = c->out->ends[index_of(c, turn)];
    return end > 0 && end <= c->now;
}

static bool can_go(const timeline *c, tr_pipeline_turn turn) {
    int last = c->chunks - 1;
    tr_pipeline_turn before = turn;
    if (turn.kind == TR_TURN_FORWARD) {
        before.chunk--;
        return turn.chunk == 0 || is_done(c, before);
    }
    if (turn.kind == TR_TURN_WEIGHTS) {
        before.kind = TR_TURN_BACKWARD;
        return is_done(c, before);
    }
    before.chunk++;
    tr_pipeline_turn forward = {TR_TURN_FORWARD, turn.chunk, turn.wave};
    return is_done(c, forward) && (turn.chunk == last || is_done(c, before));
}

static void take(timeline *c, lane *of, tr_pipeline_turn turn) {
    int64_t chunk = c->place_of[turn.chunk];
    of->taken[turn.kind]++;
    of->of_chunk[turn.kind * c->out->chunks.each + chunk]++;
    of->free = c->now + c->out->takes[(int64_t)turn.kind * c->chunks + turn.chunk];
    of->last = turn;
    c->out->ends[index_of(c, turn)] = of->free;
    if (c->own < 0 || of->at.stage == c->own) {
        c->out->turn[c->out->count++] = turn;
    }
}

// Where waves go forward one by one, a wave's data come when those before it are
// through the stage.
static bool is_brought(const lane *of, tr_turn_kind kind, tr_chunk_wave next) {
    int64_t each = of->at.chunks.each;
    bool begins = kind == TR_TURN_FORWARD && next.chunk == 0;
    return !begins || !of->at.one_by_one ||
           of->of_chunk[TR_TURN_FORWARD * each + each - 1] >= next.wave;
}

static bool take_if(timeline *c, lane *of, tr_turn_kind kind, tr_chunk_wave next) {
    int chunk = c->chunk_at[of->at.stage * of->at.chunks.each + next.chunk];
    tr_pipeline_turn turn = {kind, chunk, next.wave};
    bool goes =
        next.wave < of->at.waves && is_brought(of, kind, next) && can_go(c, turn);
    if (goes) {
        take(c, of, turn);
    }
    return goes;
}

static bool take_of(timeline *c, lane *of, tr_turn_kind kind, int64_t chunk) {
    int64_t wave = of->of_chunk[kind * of->at.chunks.each + chunk];
    return take_if(c, of, kind, (tr_chunk_wave){chunk, wave});
}

static bool take_any(timeline *c, lane *of, tr_turn_kind kind) {
    bool taken = false;
    for (int64_t i = 0; i < of->at.chunks.each && !taken; i++) {
        taken = take_of(c, of, kind, i);
    }
    return taken;
}

// The k-th turn of its kind, where the schedule has an order of them.
static tr_chunk_wave in_order(const timeline *c, const lane *of, tr_turn_kind kind,
                              int64_t k) {
    int64_t each = of->at.chunks.each;
    if (kind == TR_TURN_FORWARD && of->at.one_by_one) {
        return (tr_chunk_wave){k % each, k / each};
    }
    return (kind == TR_TURN_FORWARD ? c->schedule->forward
                                    : c->schedule->backward)(&of->at, k);
}

static bool take_next(timeline *c, lane *of, tr_turn_kind kind) {
    int64_t all = of->at.chunks.each * of->at.waves;
    if (of->taken[kind] == all) {
        return false;
    }
    return c->schedule->forward
               ? take_if(c, of, kind, in_order(c, of, kind, of->taken[kind]))
               : take_any(c, of, kind);
}

static bool may_forward(const lane *of) {
    const int64_t *taken = of->taken;
    return taken[TR_TURN_FORWARD] - taken[TR_TURN_BACKWARD] < of->most &&
           taken[TR_TURN_FORWARD] - taken[TR_TURN_WEIGHTS] < of->kept;
}

static bool may_backward(const timeline *c, const lane *of) {
    return !c->schedule->flushes ||
           of->taken[TR_TURN_FORWARD] == of->at.chunks.each * of->at.waves;
}

static bool take_choice(timeline *c, lane *of) {
    bool taken = false;
    for (int i = 0; i < TR_TURN_CHOICES && !taken; i++) {
        const tr_turn_choice *at = &c->choices[i];
        taken = (at->kind != TR_TURN_FORWARD || may_forward(of)) &&
                take_of(c, of, at->kind, at->chunk);
    }
    return taken;
}

// Nobody waits for more than the next chunk. Where any order will do, what is further
// on its way goes first, so that its data can go.
static void take_forward(timeline *c, lane *of) {
    bool taken = c->schedule->forward && take_next(c, of, TR_TURN_FORWARD);
    for (int64_t i = of->at.chunks.each - 1; i >= 0 && !taken && !c->schedule->forward;
         i--) {
        taken = take_of(c, of, TR_TURN_FORWARD, i);
    }
}

// The first of what the stage can do.
static void go(timeline *c, lane *of) {
    if (c->evaluates) {
        take_forward(c, of);
    } else if (c->choices) {
        if (!take_choice(c, of)) {
            take_any(c, of, TR_TURN_WEIGHTS);
        }
    } else if (!(may_forward(of) && take_next(c, of, TR_TURN_FORWARD)) &&
               !(may_backward(c, of) && take_next(c, of, TR_TURN_BACKWARD)) &&
               c->schedule->weights_later) {
        take_next(c, of, TR_TURN_WEIGHTS);
    }
}

// Those that were woken take what they can.
static void work(timeline *c) {
    for (int64_t s = 0; s < c->out->chunks.stages; s++) {
        lane *of = &c->lanes[s];
        if (of->woken && of->free <= c->now) {
            go(c, of);
        }
        of->woken = false;
    }
}

// Where few waves are left, the bound may keep all stages from what they wait for.
static bool exceed(timeline *c) {
    bool goes = false;
    for (int64_t s = c->out->chunks.stages - 1; s >= 0 && !goes; s--) {
        goes = take_next(c, &c->lanes[s], TR_TURN_FORWARD);
    }
    return goes;
}

// A turn has ended: its stage goes on, and so may the one that waits for it.
static void wake(timeline *c, lane *of) {
    int next = of->last.chunk + (of->last.kind == TR_TURN_FORWARD ? 1 : -1);
    of->woken = true;
    if (of->last.kind != TR_TURN_WEIGHTS && next >= 0 && next < c->chunks) {
        c->lanes[c->stage_of[next]].woken = true;
    }
}

// To when the next turn ends; false: none is under way.
static bool go_on(timeline *c) {
    int64_t next = INT64_MAX;
    for (int64_t s = 0; s < c->out->chunks.stages; s++) {
        int64_t ends = c->lanes[s].free;
        next = ends > c->now ? tr__min_i64(next, ends) : next;
    }
    for (int64_t s = 0; s < c->out->chunks.stages && next < INT64_MAX; s++) {
        if (c->lanes[s].free == next) {
            wake(c, &c->lanes[s]);
        }
    }
    c->now = next < INT64_MAX ? next : c->now;
    return next < INT64_MAX;
}

static void begin(timeline *c, const tr_pipeline_place *at) {
    const tr_pipeline_schedule *schedule = c->schedule;
    int64_t chunks = tr__chunk_count(&at->chunks);
    memset(c->of_chunks, 0, (size_t)(TR_TURN_KINDS * chunks) * sizeof *c->of_chunks);
    memset(c->out->ends, 0,
           (size_t)(TR_TURN_KINDS * chunks * at->waves) * sizeof *c->out->ends);
    c->out->count = c->now = 0;
    for (int64_t s = 0; s < at->chunks.stages; s++) {
        lane *of = &c->lanes[s];
        *of = (lane){.at = *at,
                     .of_chunk = c->of_chunks + s * TR_TURN_KINDS * at->chunks.each,
                     .woken = true};
        of->at.stage = s;
        of->most = schedule->under_way(&of->at);
        of->kept = schedule->kept ? schedule->kept(&of->at) : INT64_MAX;
    }
}

// Returns when all stages are done.
static int64_t run(timeline *c, const tr_pipeline_place *at,
                   const tr_turn_choice *choices) {
    c->choices = choices;
    begin(c, at);
    do {
        work(c);
    } while (go_on(c) || exceed(c));
    return c->now;
}

static void run_best(timeline *c, const tr_pipeline_place *at) {
    const tr_pipeline_schedule *schedule = c->schedule;
    int64_t soonest = INT64_MAX;
    int best = 0, tried = 0;
    for (; tried < schedule->try_count && !c->evaluates; tried++) {
        int64_t end = run(c, at, schedule->tries[tried]);
        best = end < soonest ? tried : best;
        soonest = tr__min_i64(soonest, end);
    }
    if (tried == 0 || best + 1 < tried) {
        run(c, at, tried ? schedule->tries[best] : NULL);
    }
}

// Of each chunk, where it is.
static bool find_places(timeline *c) {
    const tr_chunks *chunks = &c->out->chunks;
    c->stage_of = tr__calloc(3 * (size_t)c->chunks, sizeof *c->stage_of);
    if (!c->stage_of) {
        return false;
    }
    c->place_of = c->stage_of + c->chunks;
    c->chunk_at = c->place_of + c->chunks;
    for (int i = 0; i < c->chunks; i++) {
        c->stage_of[i] = (int)tr__chunk_stage(chunks, i);
        c->place_of[i] = (int)(i / chunks->stages);
        c->chunk_at[c->stage_of[i] * chunks->each + c->place_of[i]] = i;
    }
    return true;
}

static tr_status find_turns(const tr_pipeline_schedule *schedule,
                            const tr_pipeline_place *at, bool evaluates, tr_turns *out,
                            tr_error *err) {
    size_t chunks = (size_t)tr__chunk_count(&at->chunks), waves = (size_t)at->waves;
    size_t noted = at->stage < 0 ? chunks : (size_t)at->chunks.each;
    size_t own = TR_TURN_KINDS * noted * waves;
    *out = (tr_turns){
        .chunks = at->chunks,
        .waves = at->waves,
        .turn = tr__calloc(own, sizeof *out->turn),
        .takes = tr__calloc(TR_TURN_KINDS * chunks, sizeof *out->takes),
        .ends = tr__calloc(TR_TURN_KINDS * chunks * waves, sizeof *out->ends)};
    timeline c = {.schedule = schedule,
                  .lanes = tr__calloc((size_t)at->chunks.stages, sizeof *c.lanes),
                  .of_chunks = tr__calloc(TR_TURN_KINDS * chunks, sizeof(int64_t)),
                  .own = at->stage,
                  .evaluates = evaluates,
                  .chunks = (int)chunks,
                  .out = out};
    bool good = out->turn && out->takes && out->ends && c.lanes && c.of_chunks &&
                find_places(&c);
    if (good) {
        memcpy(out->takes, at->takes, TR_TURN_KINDS * chunks * sizeof *out->takes);
        run_best(&c, at);
    } else {
        tr__turns_clear(out);
    }
    tr__free(c.lanes);
    tr__free(c.of_chunks);
    tr__free(c.stage_of);
    return good ? TR_OK : tr_fail(err, TR_MEMORY, "no memory for a schedule");
}

tr_status tr__pipeline_turns(const tr_pipeline_schedule *schedule,
                             const tr_pipeline_place *at, tr_turns *out,
                             tr_error *err) {
    return find_turns(schedule, at, false, out, err);
}

tr_status tr__pipeline_forwards(const tr_pipeline_schedule *schedule,
                                const tr_pipeline_place *at, tr_turns *out,
                                tr_error *err) {
    return find_turns(schedule, at, true, out, err);
}

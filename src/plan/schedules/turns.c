// What each stage of a pipeline does when: its schedule says what goes forward and
// backward next. A stage takes the next forward where that can go and the stage may
// have one more under way, else the next backward. Messages take no time.
#include "plan/schedules/schedule.h"

#include "base/checked.h"
#include "base/memory.h"

#include <string.h>

// What a stage has done.
typedef struct lane {
    tr_pipeline_place at;
    int64_t taken[TR_TURN_KINDS];
    int64_t most;          // under way
    int64_t free;          // from then on
    tr_pipeline_turn last; // taken
    bool woken;            // something may go on
} lane;

typedef struct timeline {
    const tr_pipeline_schedule *schedule;
    lane *lanes; // [stages]
    int64_t now;
    int64_t own; // the stage whose turns are noted
    tr_turns *out;
} timeline;

// Before a turn has been taken its end is 0.
static bool is_done(const timeline *c, tr_pipeline_turn turn) {
    int64_t end = tr__pipeline_turn_end(c->out, turn);
    return end > 0 && end <= c->now;
}

static tr_pipeline_turn next_of(const timeline *c, const lane *of, tr_turn_kind kind) {
    const tr_pipeline_schedule *schedule = c->schedule;
    tr_chunk_wave next = kind == TR_TURN_FORWARD
                             ? schedule->forward(&of->at, of->taken[kind])
                             : schedule->backward(&of->at, of->taken[kind]);
    int chunk = tr__stage_chunk(&of->at.chunks, of->at.stage, next.chunk);
    return (tr_pipeline_turn){kind, chunk, next.wave};
}

static bool can_go(const timeline *c, tr_pipeline_turn turn) {
    int last = tr__chunk_count(&c->out->chunks) - 1;
    tr_pipeline_turn before = turn;
    if (turn.kind == TR_TURN_FORWARD) {
        before.chunk--;
        return turn.chunk == 0 || is_done(c, before);
    }
    before.chunk++;
    tr_pipeline_turn forward = {TR_TURN_FORWARD, turn.chunk, turn.wave};
    return is_done(c, forward) && (turn.chunk == last || is_done(c, before));
}

static void take(timeline *c, lane *of, tr_pipeline_turn turn) {
    of->taken[turn.kind]++;
    of->free = c->now + tr__pipeline_turn_takes(c->out, turn);
    of->last = turn;
    c->out->ends[tr__pipeline_turn_index(c->out, turn)] = of->free;
    if (of->at.stage == c->own) {
        c->out->turn[c->out->count++] = turn;
    }
}

static bool take_next(timeline *c, lane *of, tr_turn_kind kind) {
    int64_t all = of->at.chunks.each * of->at.waves;
    if (of->taken[kind] == all) {
        return false;
    }
    tr_pipeline_turn turn = next_of(c, of, kind);
    bool goes = can_go(c, turn);
    if (goes) {
        take(c, of, turn);
    }
    return goes;
}

static bool may_forward(const lane *of) {
    return of->taken[TR_TURN_FORWARD] - of->taken[TR_TURN_BACKWARD] < of->most;
}

static bool may_backward(const timeline *c, const lane *of) {
    return !c->schedule->flushes ||
           of->taken[TR_TURN_FORWARD] == of->at.chunks.each * of->at.waves;
}

// Those that were woken take what they can.
static void work(timeline *c) {
    for (int64_t s = 0; s < c->out->chunks.stages; s++) {
        lane *of = &c->lanes[s];
        if (of->woken && of->free <= c->now &&
            !(may_forward(of) && take_next(c, of, TR_TURN_FORWARD)) &&
            may_backward(c, of)) {
            take_next(c, of, TR_TURN_BACKWARD);
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
    const tr_chunks *chunks = &c->out->chunks;
    int next = of->last.chunk + (of->last.kind == TR_TURN_FORWARD ? 1 : -1);
    of->woken = true;
    if (next >= 0 && next < tr__chunk_count(chunks)) {
        c->lanes[tr__chunk_stage(chunks, next)].woken = true;
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

static void run(timeline *c) {
    do {
        work(c);
    } while (go_on(c) || exceed(c));
}

static void begin(const tr_pipeline_schedule *schedule, const tr_pipeline_place *at,
                  lane *lanes) {
    for (int64_t s = 0; s < at->chunks.stages; s++) {
        lanes[s] = (lane){.at = *at, .woken = true};
        lanes[s].at.stage = s;
        lanes[s].most = schedule->under_way(&lanes[s].at);
    }
}

tr_status tr__pipeline_turns(const tr_pipeline_schedule *schedule,
                             const tr_pipeline_place *at, tr_turns *out,
                             tr_error *err) {
    size_t chunks = (size_t)tr__chunk_count(&at->chunks), waves = (size_t)at->waves;
    size_t own = TR_TURN_KINDS * (size_t)at->chunks.each * waves;
    *out = (tr_turns){
        .chunks = at->chunks,
        .waves = at->waves,
        .turn = tr__calloc(own, sizeof *out->turn),
        .takes = tr__calloc(TR_TURN_KINDS * chunks, sizeof *out->takes),
        .ends = tr__calloc(TR_TURN_KINDS * chunks * waves, sizeof *out->ends)};
    timeline c = {.schedule = schedule,
                  .lanes = tr__calloc((size_t)at->chunks.stages, sizeof *c.lanes),
                  .own = at->stage,
                  .out = out};
    bool good = out->turn && out->takes && out->ends && c.lanes;
    if (good) {
        memcpy(out->takes, at->takes, TR_TURN_KINDS * chunks * sizeof *out->takes);
        begin(schedule, at, c.lanes);
        run(&c);
    } else {
        tr__turns_clear(out);
    }
    tr__free(c.lanes);
    return good ? TR_OK : tr_fail(err, TR_MEMORY, "no memory for a schedule");
}

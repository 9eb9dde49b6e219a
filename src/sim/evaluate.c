// How long an evaluation takes: walks through the plan's sequence of it, as the engine
// makes them (train/engine/evaluate.c). Most of these are alike, so each kind of walk
// is simulated once.
#include "base/arguments.h"
#include "base/checked.h"
#include "base/memory.h"
#include "plan/flow/evaluation.h"
#include "plan/flow/passes.h"
#include "sim/simulate.h"
#include "sim/stages.h"

// Parameters are made the same on all ranks; a whole walk; the last walk of a round,
// and that of the last round.
enum { PARTS = 4 };

typedef struct walks {
    tr_tape_part part[PARTS];
    int64_t times[PARTS];
    int count;
    int64_t stages;
    tr_tape *tapes;  // [PARTS][stages]
    tr_sim_walk *at; // [stages]
    tr_error *err;
} walks;

// ---- which walks there are

static void add_walks(walks *w, tr_tape_part part, int64_t times) {
    int i = 0;
    while (i < w->count &&
           (w->part[i].kind != part.kind || w->part[i].micros != part.micros)) {
        i++;
    }
    if (times > 0) {
        w->count = i == w->count ? i + 1 : w->count;
        w->part[i] = part;
        w->times[i] += times;
    }
}

// Rounds in which each rank takes so many micro-batches, by as many at a time as the
// sequence has.
static void add_rounds(walks *w, int64_t micros, int64_t most, int64_t rounds) {
    int64_t left = micros % most;
    add_walks(w, (tr_tape_part){TR_SEQUENCE_EVALUATE, 0}, rounds * (micros / most));
    add_walks(w, (tr_tape_part){TR_SEQUENCE_EVALUATE, left}, left > 0 ? rounds : 0);
}

static void find_walks(const tr_plan *plan, int64_t samples, walks *w) {
    tr_evaluation_deal deal = tr__evaluation_deal(plan, samples);
    int64_t rounds = tr__ceil_div(deal.micros, deal.round);
    bool differ = plan->sequences[TR_SEQUENCE_SYNC_PARAMETERS].count > 0;
    add_walks(w, (tr_tape_part){TR_SEQUENCE_SYNC_PARAMETERS, 0}, differ);
    add_rounds(w, deal.share, plan->evaluated, rounds - 1);
    add_rounds(w, tr__evaluation_share(&deal, (rounds - 1) * deal.round),
               plan->evaluated, 1);
}

// ---- how long they take

static tr_status read_plan(const tr_plan *plan, const tr_machine *machine,
                           int64_t stage, walks *w) {
    tr_status status = TR_OK;
    for (int i = 0; i < w->count && status == TR_OK; i++) {
        status = tr__tape_make(plan, w->part[i], machine,
                               &w->tapes[i * w->stages + stage], w->err);
    }
    return status;
}

// One plan at a time is there beside the own.
static tr_status read_stage(const tr_simulated *s, int64_t stage, walks *w) {
    tr_plan *other = NULL;
    if (stage == s->plan->request.mesh.at[TR_AXIS_PIPELINE]) {
        return read_plan(s->plan, s->machine, stage, w);
    }
    tr_status status = tr__plan_of_stage(s->plan, stage, &other, w->err);
    status = status == TR_OK ? read_plan(other, s->machine, stage, w) : status;
    tr_plan_destroy(other);
    return status;
}

// A walk ends when all stages have ended theirs.
static tr_status walk(walks *w, int part, double *seconds) {
    double end = 0;
    for (int64_t i = 0; i < w->stages; i++) {
        tr__walk_begin(&w->at[i], &w->tapes[part * w->stages + i], false);
    }
    tr_status status = tr__walk_stages(w->at, (size_t)w->stages, w->err);
    for (int64_t i = 0; i < w->stages; i++) {
        end = w->at[i].now > end ? w->at[i].now : end;
        tr__walk_clear(&w->at[i]);
    }
    *seconds += (double)w->times[part] * end;
    return status;
}

static tr_status walk_all(const tr_simulated *s, walks *w, double *seconds) {
    tr_status status = TR_OK;
    for (int64_t i = 0; i < w->stages && status == TR_OK; i++) {
        status = read_stage(s, i, w);
    }
    for (int i = 0; i < w->count && status == TR_OK; i++) {
        status = walk(w, i, seconds);
    }
    return status;
}

static tr_status evaluate(const tr_simulated *s, int64_t samples, double *seconds,
                          tr_error *err) {
    int64_t stages = s->plan->request.mesh.size[TR_AXIS_PIPELINE];
    size_t tapes = PARTS * (size_t)stages;
    walks w = {.stages = stages,
               .tapes = tr__calloc(tapes, sizeof *w.tapes),
               .at = tr__calloc((size_t)stages, sizeof *w.at),
               .err = err};
    tr_status status = TR_MEMORY;
    *seconds = 0;
    if (w.tapes && w.at) {
        find_walks(s->plan, samples, &w);
        status = walk_all(s, &w, seconds);
    } else {
        tr_fail(err, TR_MEMORY, "no memory for a simulation");
    }
    for (size_t i = 0; w.tapes && i < tapes; i++) {
        tr__tape_clear(&w.tapes[i]);
    }
    tr__free(w.tapes);
    tr__free(w.at);
    return status;
}

tr_status tr_simulated_evaluate(tr_simulated *simulated, int64_t samples,
                                tr_error *err) {
    static const char name[] = "tr_simulated_evaluate";
    tr_status status = tr__need(simulated, name, "simulated", err);
    double seconds = 0;
    if (status != TR_OK) {
        return status;
    }
    if (samples < 1) {
        return tr_fail(err, TR_USAGE, "%s: samples is %lld: give 1 or more", name,
                       (long long)samples);
    }
    if (simulated->plan->hands_out) {
        return tr_fail(err, TR_USAGE,
                       "%s: the model has outputs and no loss, so its caller evaluates",
                       name);
    }
    status = evaluate(simulated, samples, &seconds, err);
    if (status == TR_OK) {
        simulated->result.evaluation_samples = samples;
        simulated->result.evaluation_seconds = seconds;
    }
    return status;
}

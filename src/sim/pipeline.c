#include "sim/pipeline.h"

#include "base/memory.h"
#include "plan/flow/model_flops.h"
#include "plan/flow/passes.h"

#include <string.h>

static void add_flops(tr_model_flops *sum, const tr_model_flops *more) {
    sum->full += more->full;
    sum->causal += more->causal;
    sum->full_again += more->full_again;
    sum->causal_again += more->causal_again;
}

static tr_status read_plan(const tr_plan *plan, const tr_machine *machine, size_t stage,
                           tr_pipeline *out, tr_error *err) {
    tr_stage_figures *figures = &out->figures[stage];
    tr_model_flops flops = tr_plan_model_flops(plan);
    tr_status status = tr__simulate_check(plan, machine, err);
    figures->flops = plan->flops;
    memcpy(figures->bytes, plan->ledger.total, sizeof figures->bytes);
    add_flops(&out->literature, &flops);
    return status == TR_OK ? tr__tape_make(plan, (tr_tape_part){TR_SEQUENCE_TRAIN, 0},
                                           machine, &out->tapes[stage], err)
                           : status;
}

// One plan at a time is there beside the own.
static tr_status read_stage(const tr_plan *plan, const tr_machine *machine,
                            size_t stage, tr_pipeline *out, tr_error *err) {
    tr_plan *other = NULL;
    if (stage == out->own) {
        return read_plan(plan, machine, stage, out, err);
    }
    tr_status status = tr__plan_of_stage(plan, (int64_t)stage, &other, err);
    if (status == TR_OK) {
        status = read_plan(other, machine, stage, out, err);
    }
    tr_plan_destroy(other);
    return status;
}

// The i-th stage that is read: the own one, the last, the others.
static size_t stage_at(const tr_pipeline *p, size_t i) {
    size_t last = p->count - 1, other = i - 1;
    bool ends = p->own == last;
    if (i == 0) {
        return p->own;
    }
    if (!ends && i == 1) {
        return last;
    }
    other -= ends ? 0 : 1;
    return other < p->own ? other : other + 1;
}

static tr_status read_stages(const tr_plan *plan, const tr_machine *machine,
                             const tr_stage_watch *watch, tr_pipeline *out,
                             tr_error *err) {
    tr_status status = TR_OK;
    for (size_t i = 0; i < out->count && status == TR_OK && !out->stopped; i++) {
        size_t stage = stage_at(out, i);
        status = read_stage(plan, machine, stage, out, err);
        out->stopped = status == TR_OK && watch &&
                       !watch->goes_on(watch->user, out->figures[stage].bytes);
    }
    return status;
}

tr_status tr__pipeline_walk(const tr_plan *plan, const tr_machine *machine,
                            bool all_spans, const tr_stage_watch *watch,
                            tr_pipeline *out, tr_error *err) {
    const tr_mesh *mesh = &plan->request.mesh;
    size_t count = (size_t)mesh->size[TR_AXIS_PIPELINE];
    *out = (tr_pipeline){.count = count,
                         .own = (size_t)mesh->at[TR_AXIS_PIPELINE],
                         .tapes = tr__calloc(count, sizeof *out->tapes),
                         .walks = tr__calloc(count, sizeof *out->walks),
                         .figures = tr__calloc(count, sizeof *out->figures)};
    if (!out->tapes || !out->walks || !out->figures) {
        return tr_fail(err, TR_MEMORY, "no memory for a simulation");
    }
    tr_status status = read_stages(plan, machine, watch, out, err);
    if (status != TR_OK || out->stopped) {
        return status;
    }
    for (size_t i = 0; i < count; i++) {
        tr__walk_begin(&out->walks[i], &out->tapes[i], all_spans || i == out->own);
    }
    return tr__walk_stages(out->walks, count, err);
}

void tr__pipeline_clear(tr_pipeline *pipeline) {
    for (size_t i = 0; i < pipeline->count; i++) {
        if (pipeline->tapes) {
            tr__tape_clear(&pipeline->tapes[i]);
        }
        if (pipeline->walks) {
            tr__walk_clear(&pipeline->walks[i]);
        }
    }
    tr__free(pipeline->tapes);
    tr__free(pipeline->walks);
    tr__free(pipeline->figures);
    *pipeline = (tr_pipeline){.count = 0};
}

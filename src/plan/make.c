// How a plan is made: its passes, in their order; and what ends it.
#include "backend/backend.h"
#include "base/arguments.h"
#include "base/memory.h"
#include "graph/model.h"
#include "plan/flow/passes.h"
#include "plan/flow/request.h"
#include "plan/flow/residency.h"
#include "plan/proof/check.h"
#include "plan/proof/prove.h"

#include <string.h>

// What a request can ask for that one pass provides.
enum {
    ALWAYS,
    TWICE,
    OUTSIDE,
    SUMS,
    STAGING,
    RECOMPUTATION,
    EXCHANGES,
    STAGES,
    INPUTS_AWAY,
    SAVED_AWAY,
    PROVIDED
};

static bool goes_twice(const tr_plan *plan) {
    return plan->request.passes > 1;
}

static bool recomputes(const tr_plan *plan) {
    return plan->request.recomputed_units > 0;
}

static bool inputs_leave(const tr_plan *plan) {
    return plan->request.boundary_placement != TR_SPACE_DEVICE;
}

static bool saved_leaves(const tr_plan *plan) {
    return plan->request.saved_placement != TR_SPACE_DEVICE;
}

static bool has_stages(const tr_plan *plan) {
    return tr__has_stages(&plan->request);
}

static bool hands_out(const tr_plan *plan) {
    return plan->hands_out;
}

static const struct {
    bool (*is_asked)(const tr_plan *plan);
    const char *what;
} provided[PROVIDED] = {
    [TWICE] = {goes_twice, "go through a batch in two passes"},
    [OUTSIDE] = {hands_out, "train a model without a loss"},
    [SUMS] = {tr__plan_accumulates, "sum gradients in another type than f32"},
    [STAGING] = {tr__plan_uses_nvme, "keep anything on NVMe"},
    [RECOMPUTATION] = {recomputes, "recompute units"},
    [EXCHANGES] = {tr__plan_exchanges_inside, "let ranks exchange inside of units"},
    [STAGES] = {has_stages, "pass a micro-batch from stage to stage"},
    [INPUTS_AWAY] = {inputs_leave, "let inputs of recomputed units wait on the host"},
    [SAVED_AWAY] = {saved_leaves, "let saved activations wait on the host"},
};

static const struct {
    tr_status (*run)(tr_plan *plan, tr_error *err);
    int provides;
} passes[] = {
    {tr__pass_compile, ALWAYS},
    {tr__pass_cut_stages, ALWAYS},
    {tr__pass_partition, ALWAYS},
    {tr__pass_choose_wave, ALWAYS},
    {tr__pass_turns, ALWAYS},
    {tr__pass_statistics, ALWAYS},
    {tr__pass_kept, ALWAYS},
    {tr__pass_order, ALWAYS},
    {tr__pass_two_passes, TWICE},
    {tr__pass_hand_out, OUTSIDE},
    {tr__pass_pipeline, STAGES},
    {tr__pass_accumulate, SUMS},
    {tr__pass_recompute, RECOMPUTATION},
    {tr__pass_alternate, ALWAYS},
    {tr__pass_exchange, EXCHANGES},
    {tr__pass_micro_norm, ALWAYS},
    {tr__pass_communicate, ALWAYS},
    {tr__pass_tied, ALWAYS},
    {tr__pass_stage, STAGING},
    {tr__pass_defer, ALWAYS},
    {tr__pass_boundary, INPUTS_AWAY},
    {tr__pass_saved, SAVED_AWAY},
    {tr__pass_number, ALWAYS},
    {tr__pass_schedule, ALWAYS},
    {tr__pass_offsets, ALWAYS},
    {tr__pass_reuse, ALWAYS},
    {tr__pass_kernels, ALWAYS},
    {tr__pass_traffic, ALWAYS},
    {tr__pass_ledger, ALWAYS},
};
enum { PASSES = sizeof passes / sizeof *passes };

static bool is_provided(int what) {
    size_t i = 0;
    while (i < PASSES && passes[i].provides != what) {
        i++;
    }
    return i < PASSES;
}

static tr_status check_provided(const tr_plan *plan, tr_error *err) {
    for (int what = ALWAYS + 1; what < PROVIDED; what++) {
        if (provided[what].is_asked(plan) && !is_provided(what)) {
            return tr_fail(err, TR_USAGE, "this build cannot %s", provided[what].what);
        }
    }
    return TR_OK;
}

// Sketched: until all steps are there.
static tr_status run_passes(tr_plan *plan, bool sketched, tr_error *err) {
    tr_status status = TR_OK;
    for (size_t i = 0; i < PASSES && status == TR_OK; i++) {
        if (sketched && passes[i].run == tr__pass_number) {
            break;
        }
        status = passes[i].run(plan, err);
        if (status == TR_OK && passes[i].run == tr__pass_compile) {
            status = check_provided(plan, err); // what the model asks for is known now
        }
    }
    for (int s = 0; s < TR_SEQUENCES; s++) {
        tr__unit_values_clear(plan, (tr_sequence_kind)s);
        tr__turns_clear(&plan->turns[s]);
    }
    return status;
}

static void resolve(tr_plan *plan) {
    tr_plan_request *r = &plan->request;
    plan->target = tr__request_target(r);
    plan->host = tr__request_host(r);
    r->attention = plan->target.attention > 0 ? plan->target.attention : -1;
    r->discrete = r->discrete || tr__backend(r->backend)->discrete;
    plan->asked = r->measure;
    r->measure = TR_MEASURE_NEVER; // unless a pass plans it
    r->compute = r->compute == TR_NONE ? TR_F32 : r->compute;
    r->sums = r->reproducible ? TR_I64 : r->sums == TR_NONE ? TR_F32 : r->sums;
    r->threads = plan->host.workers;
    r->alternating = r->alternating > 0 ? r->alternating : TR_ALTERNATING_MOST;
    r->passes = r->passes > 1 && r->accumulation_steps > 1 && !r->inference ? 2 : 1;
    if (r->reference_kernels) {
        plan->target.level = plan->host.level = -1;
    }
    if (r->recomputed_units < 0 || r->recomputed_units > r->model->unit_count - 1) {
        r->recomputed_units = r->model->unit_count - 1;
    }
    if (r->recomputed_ops == 0) {
        r->recomputed_ops = TR_RECOMPUTE_DEFAULT;
    }
    if (r->recomputed_ops_units == 0 ||
        r->recomputed_ops_units > r->model->unit_count) {
        r->recomputed_ops_units = r->model->unit_count;
    }
    plan->batch = r->model->batch;
    plan->unit_count = r->model->unit_count;
    plan->chunks = (tr_chunks){.stages = 1, .each = 1}; // until they are cut
    plan->logits = plan->exchange = -1;
    if (r->optimizer_placement != TR_SPACE_DEVICE &&
        r->grad_placement == TR_SPACE_DEVICE) {
        r->grad_placement = TR_SPACE_HOST;
    }
}

// Without a proof.
static tr_status make(const tr_plan_request *request, bool sketched, tr_plan **out,
                      tr_error *err) {
    tr_status status = tr__request_check(request, err);
    if (status != TR_OK) {
        return status;
    }
    tr_plan *plan = tr__calloc(1, sizeof *plan);
    if (!plan) {
        return tr_fail(err, TR_MEMORY, "no memory for a plan");
    }
    plan->request = *request;
    resolve(plan);
    plan->rows[0] = tr__part_rows(&plan->request, false);
    plan->rows[1] = tr__part_rows(&plan->request, true);
    status = run_passes(plan, sketched, err);
    if (status != TR_OK) {
        tr_plan_destroy(plan);
        return status;
    }
    *out = plan;
    return TR_OK;
}

// Of the plans of all stages, which stand for their ranks.
static tr_status note_stages(tr_plan *plan, const tr_plan *const *plans, size_t count,
                             tr_error *err) {
    int64_t stages = plan->request.mesh.size[TR_AXIS_PIPELINE];
    if (stages == 1) {
        return TR_OK;
    }
    plan->stages = tr__calloc((size_t)stages, sizeof *plan->stages);
    for (size_t i = 0; i < count && plan->stages; i++) {
        tr_stage_figures *to =
            &plan->stages[plans[i]->request.mesh.at[TR_AXIS_PIPELINE]];
        to->flops = plans[i]->flops;
        memcpy(to->bytes, plans[i]->ledger.total, sizeof to->bytes);
    }
    return plan->stages ? TR_OK : tr_fail(err, TR_MEMORY, "no memory for a plan");
}

tr_status tr__plan_of_stage(const tr_plan *plan, int64_t stage, tr_plan **out,
                            tr_error *err) {
    tr_plan_request request = plan->request;
    request.mesh.at[TR_AXIS_PIPELINE] = stage;
    request.measure = plan->asked;
    return make(&request, false, out, err);
}

// The plan fits those of all other ranks. One rank stands for those of its stage, which
// compare their digests when a run begins (tr_plan_digest).
static tr_status match_ranks(tr_plan *plan, tr_error *err) {
    const tr_axes axes = TR_ON_PIPELINE;
    const tr_mesh *mesh = &plan->request.mesh;
    size_t count = (size_t)tr__mesh_members(mesh, axes);
    int64_t own = tr__mesh_member(mesh, axes);
    tr_status status = TR_OK;
    const tr_plan **plans = tr__calloc(count, sizeof *plans);
    if (!plans) {
        return tr_fail(err, TR_MEMORY, "no memory to compare the plans of ranks");
    }
    for (size_t i = 0; i < count && status == TR_OK; i++) {
        tr_plan *other = NULL;
        status = (int64_t)i == own ? TR_OK
                                   : tr__plan_of_stage(plan, (int64_t)i, &other, err);
        plans[i] = (int64_t)i == own ? plan : other;
    }
    if (status == TR_OK) {
        status = tr__plans_match(plans, count, err);
    }
    status = status == TR_OK ? note_stages(plan, plans, count, err) : status;
    for (size_t i = 0; i < count; i++) {
        tr_plan_destroy(plans[i] == plan ? NULL : (tr_plan *)(uintptr_t)plans[i]);
    }
    tr__free(plans);
    return status;
}

tr_status tr__plan_build(const tr_plan_request *request, tr_plan **out, tr_error *err) {
    tr_plan *plan = NULL;
    tr_status status = make(request, false, &plan, err);
    status = status == TR_OK ? tr__plan_check(plan, err) : status;
    status = status == TR_OK ? match_ranks(plan, err) : status;
    if (status != TR_OK) {
        tr_plan_destroy(plan);
        return status;
    }
    *out = plan;
    return TR_OK;
}

tr_status tr_plan_make(const tr_plan_request *request, tr_plan **out, tr_error *err) {
    static const char name[] = "tr_plan_make";
    tr_status status = tr__need(request, name, "request", err);
    status = status == TR_OK ? tr__need(out, name, "out", err) : status;
    status = status == TR_OK ? tr__model_need(request->model, name, err) : status;
    return status == TR_OK ? tr__plan_build(request, out, err) : status;
}

tr_status tr__plan_draft(const tr_plan_request *request, tr_plan **out, tr_error *err) {
    return make(request, false, out, err);
}

tr_status tr__plan_sketch(const tr_plan_request *request, tr_plan **out,
                          tr_error *err) {
    return make(request, true, out, err);
}

void tr_plan_destroy(tr_plan *plan) {
    if (!plan) {
        return;
    }
    tr__plan_destroy_programs(plan);
    for (size_t i = 0; i < plan->param_count; i++) {
        tr__free(plan->params[i].name);
    }
    for (size_t i = 0; i < plan->state_count; i++) {
        tr__free(plan->states[i].name);
    }
    for (size_t f = 0; f < plan->flat_count; f++) {
        tr__free(plan->flats[f].own_name);
        tr__axes_clear(&plan->flats[f].axes);
    }
    tr__free(plan->chunk_first);
    tr__free(plan->chunk_takes);
    tr__free(plan->stages);
    tr__free(plan->states);
    for (int s = 0; s < TR_SEQUENCES; s++) {
        tr__free(plan->sequences[s].steps);
        tr__free(plan->sequences[s].limits);
    }
    tr__free(plan->operands);
    tr__free(plan->launches);
    tr__free(plan->prepared);
    tr__free(plan->prepared_by_hash);
    tr__free(plan->units);
    tr__free(plan->flats);
    tr__free(plan->params);
    tr__free(plan->buffers);
    tr__free(plan->norms.runs);
    tr__free(plan->statistics.runs);
    tr__free(plan->why_wave);
    tr__free(plan);
}

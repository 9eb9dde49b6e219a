#include "plan/plan.h"

#include "backend/backend.h"
#include "base/batch.h"
#include "base/checked.h"
#include "base/half.h"
#include "base/memory.h"
#include "base/text.h"
#include "ops/optimizer.h"
#include "plan/passes.h"
#include "plan/proof/prove.h"
#include "plan/residency.h"

#include <stdlib.h>

enum { STEPS_MOST = 1 << 24 };

int tr__plan_buffer(tr_plan *plan, tr_buffer buffer, tr_error *err) {
    if (!tr__grow((void **)&plan->buffers, &plan->buffer_capacity,
                  plan->buffer_count + 1, sizeof *plan->buffers)) {
        tr_fail(err, TR_MEMORY, "no memory for the plan's buffers");
        return -1;
    }
    plan->buffers[plan->buffer_count] = buffer;
    return (int)plan->buffer_count++;
}

tr_status tr__plan_operand(tr_plan *plan, tr_step_operand operand, tr_error *err) {
    if (!tr__grow((void **)&plan->operands, &plan->operand_capacity,
                  plan->operand_count + 1, sizeof *plan->operands)) {
        return tr_fail(err, TR_MEMORY, "no memory for the plan's operands");
    }
    plan->operands[plan->operand_count++] = operand;
    return TR_OK;
}

tr_space tr__plan_shared_space(const tr_plan *plan) {
    return plan->request.discrete ? TR_SPACE_HOST : TR_SPACE_DEVICE;
}

bool tr__plan_runs(const tr_plan *plan, int unit) {
    return unit >= plan->runs.first && unit < plan->runs.end;
}

int64_t tr__data_ranks(const tr_plan_request *request) {
    return request->mesh.size[TR_AXIS_DATA];
}

int64_t tr__data_rank(const tr_plan_request *request) {
    return request->mesh.at[TR_AXIS_DATA];
}

int tr__plan_stage(const tr_plan *plan) {
    return tr__data_ranks(&plan->request) > 1 ? plan->request.stage : 0;
}

// ---- requests

// Nothing is split along these axes yet: their ranks would all do the same work.
static tr_status check_axes(const tr_mesh *mesh, tr_error *err) {
    static const char *const keys[TR_AXES] = {
        [TR_AXIS_TENSOR] = "tensor_parallel.size",
        [TR_AXIS_PIPELINE] = "pipeline.stages",
    };
    for (int axis = 0; axis < TR_AXES; axis++) {
        if (keys[axis] && mesh->size[axis] > 1) {
            return tr_fail(err, TR_USAGE,
                           "%s is %lld, which is not yet supported: set it to 1",
                           keys[axis], (long long)mesh->size[axis]);
        }
    }
    return TR_OK;
}

static tr_status check_batch(const tr_plan_request *r, tr_error *err) {
    int64_t most = 0;
    if (r->micro_batch < 1 || r->train_batch_size < 1 || r->accumulation_steps < 1) {
        return tr_fail(err, TR_USAGE,
                       "batch sizes and accumulation steps must be 1 or more");
    }
    if (tr__mul_i64(r->micro_batch, r->accumulation_steps, &most) &&
        tr__mul_i64(most, tr__data_ranks(r), &most) && r->train_batch_size > most) {
        return tr_fail(err, TR_USAGE,
                       "a batch of %lld samples is more than %lld accumulation step%s "
                       "of %lld on %lld rank%s",
                       (long long)r->train_batch_size, (long long)r->accumulation_steps,
                       tr__plural(r->accumulation_steps), (long long)r->micro_batch,
                       (long long)tr__data_ranks(r), tr__plural(tr__data_ranks(r)));
    }
    if (r->wave < 0 || r->wave > r->accumulation_steps) {
        return tr_fail(err, TR_USAGE,
                       "execution.wave is %lld; it must be 1 to the %lld accumulation "
                       "step%s, or \"auto\"",
                       (long long)r->wave, (long long)r->accumulation_steps,
                       tr__plural(r->accumulation_steps));
    }
    return TR_OK;
}

// The steps of a plan are a list: beyond some length it is a mistake.
static tr_status check_length(const tr_plan_request *r, tr_error *err) {
    int64_t steps = 0;
    if (!tr__mul_i64(r->accumulation_steps, r->model->unit_count, &steps) ||
        steps > STEPS_MOST / 2) {
        return tr_fail(err, TR_USAGE,
                       "%lld accumulation step%s through %d unit%s make a plan of more "
                       "than %d steps: make the micro-batch larger",
                       (long long)r->accumulation_steps,
                       tr__plural(r->accumulation_steps), r->model->unit_count,
                       tr__plural(r->model->unit_count), STEPS_MOST);
    }
    return TR_OK;
}

// Sizes that something on NVMe is cut and staged in.
static tr_status check_staging(const tr_plan_request *r, tr_error *err) {
    if (r->update_elements < 0 || r->update_elements % TR_SHARD_ELEMENTS != 0) {
        return tr_fail(err, TR_USAGE,
                       "an update of %lld elements at a time; it must be a multiple of "
                       "%d",
                       (long long)r->update_elements, TR_SHARD_ELEMENTS);
    }
    if (r->update_slots < 0 || r->update_slots == 1 ||
        r->update_slots > TR_UPDATE_SLOTS_MAX) {
        return tr_fail(err, TR_USAGE,
                       "%d slots to stage the update in; 2 to %d are possible",
                       r->update_slots, TR_UPDATE_SLOTS_MAX);
    }
    return TR_OK;
}

static tr_status check_placements(const tr_plan_request *r, tr_error *err) {
    bool update_here = r->optimizer_placement == TR_SPACE_DEVICE;
    if (update_here ? r->grad_placement != TR_SPACE_DEVICE
                    : r->grad_placement > r->optimizer_placement) {
        return tr_fail(err, TR_USAGE,
                       "gradients are placed on the %s, but optimizer state on the %s: "
                       "place the optimizer state there, too",
                       tr_space_name(r->grad_placement),
                       tr_space_name(r->optimizer_placement));
    }
    bool nvme =
        r->param_placement == TR_SPACE_NVME || r->optimizer_placement == TR_SPACE_NVME;
    if (!(r->optimizer_stays >= 0 && r->optimizer_stays < 1)) {
        return tr_fail(err, TR_USAGE,
                       "%g of the optimizer is to stay on the device: this share must "
                       "be at least 0 and below 1",
                       r->optimizer_stays);
    }
    if (r->optimizer_stays > 0 && nvme) {
        return tr_fail(
            err, TR_USAGE,
            "zero_optimization.offload_optimizer.ratio below 1 is not yet supported "
            "with parameters or optimizer state on NVMe: set it to 1");
    }
    if (r->param_placement != TR_SPACE_DEVICE && tr__data_ranks(r) > 1 &&
        r->stage < 3) {
        return tr_fail(err, TR_USAGE,
                       "zero_optimization.offload_param on %lld ranks needs "
                       "zero_optimization.stage 3; it is %d",
                       (long long)tr__data_ranks(r), r->stage);
    }
    return TR_OK;
}

static tr_status check_recomputed(const tr_plan_request *r, tr_error *err) {
    if (r->boundary_placement > TR_SPACE_HOST) {
        return tr_fail(err, TR_USAGE,
                       "inputs of recomputed units on NVMe are not yet supported");
    }
    if (r->saved_placement > TR_SPACE_HOST) {
        return tr_fail(err, TR_USAGE,
                       "saved activations on NVMe are not yet supported");
    }
    uint32_t known = TR_RECOMPUTE_ALL | TR_RECOMPUTE_NOTHING;
    bool both = (r->recomputed_ops & TR_RECOMPUTE_NOTHING) &&
                (r->recomputed_ops & TR_RECOMPUTE_ALL);
    if ((r->recomputed_ops & ~known) || both || r->recomputed_ops_units < 0) {
        return tr_fail(err, TR_USAGE,
                       "the plan cannot recompute the classes 0x%x of tensors in the "
                       "first %lld units: no such classes or units exist",
                       (unsigned)r->recomputed_ops, (long long)r->recomputed_ops_units);
    }
    return TR_OK;
}

static tr_status check_fp8(const tr_plan_request *r, tr_error *err) {
    if (r->fp8.first_blocks_bf16 < 0 || r->fp8.last_blocks_bf16 < 0) {
        return tr_fail(err, TR_USAGE,
                       "fp8: a number of blocks in bf16 that is below 0");
    }
    return !r->fp8.enabled || r->compute == TR_BF16
               ? TR_OK
               : tr_fail(err, TR_USAGE,
                         "products of 8 bits are for units that compute in bf16, not "
                         "in %s",
                         tr_dtype_name(r->compute));
}

// A request that a plan has resolved names the integers of reproducible mode.
static tr_status check_sums(const tr_plan_request *r, tr_error *err) {
    bool half = tr__dtype_is_half(r->sums), open = r->sums == TR_NONE;
    if (r->reproducible && half) {
        return tr_fail(err, TR_USAGE,
                       "execution.reproducible sums gradients in integers, and "
                       "data_types.grad_accum_dtype asks for %s: leave one of them out",
                       tr__half_name(r->sums));
    }
    if (!half && !open && r->sums != TR_F32 &&
        !(r->reproducible && r->sums == TR_I64)) {
        return tr_fail(err, TR_USAGE,
                       "gradients are summed in f32, bf16 or f16, not "
                       "in %s",
                       tr_dtype_name(r->sums));
    }
    return TR_OK;
}

static tr_status check_cache(const tr_plan_request *r, tr_error *err) {
    int64_t positions = r->cache_positions;
    if (positions < 0 || (positions > 0 && !r->inference)) {
        return tr_fail(err, TR_USAGE,
                       "the plan has a cache of %lld positions, but only an inference "
                       "plan may have a cache",
                       (long long)positions);
    }
    const tr_shape *sample = &tr_batch_input(&r->model->batch)->desc.shape;
    if (positions > 0 && (sample->rank != 1 || sample->dim[0] > positions)) {
        return tr_fail(err, TR_USAGE,
                       "the cache has %lld positions, but the plan's samples have more",
                       (long long)positions);
    }
    return TR_OK;
}

static tr_status check_request(const tr_plan_request *r, tr_error *err) {
    if (!r->model || r->model->unit_count < 1) {
        return tr_fail(err, TR_USAGE, "a plan needs a model of at least one unit");
    }
    tr_status status = tr__batch_check(&r->model->batch, "a model", err);
    if (status != TR_OK) {
        return status;
    }
    if (r->stage < 0 || r->stage > 3) {
        return tr_fail(err, TR_USAGE,
                       "zero_optimization.stage is %d; it must be 0 to 3", r->stage);
    }
    if (r->optimizer_states < 0 || r->optimizer_states > TR_OPTIMIZER_STATES) {
        return tr_fail(err, TR_USAGE,
                       "an optimizer of %d states a parameter; 0 to %d are possible",
                       r->optimizer_states, TR_OPTIMIZER_STATES);
    }
    if (r->compute != TR_NONE && r->compute != TR_F32 &&
        !tr__dtype_is_half(r->compute)) {
        return tr_fail(err, TR_USAGE, "units compute in f32, bf16 or f16, not in %s",
                       tr_dtype_name(r->compute));
    }
    status = check_sums(r, err);
    status = status == TR_OK ? check_fp8(r, err) : status;
    status = status == TR_OK ? tr__mesh_check(&r->mesh, err) : status;
    status = status == TR_OK ? check_batch(r, err) : status;
    status = status == TR_OK ? check_placements(r, err) : status;
    status = status == TR_OK ? check_staging(r, err) : status;
    status = status == TR_OK ? check_recomputed(r, err) : status;
    status = status == TR_OK ? check_cache(r, err) : status;
    return status == TR_OK ? check_length(r, err) : status;
}

static bool has_rank_outputs(const tr_graph *graph) {
    bool some = false;
    for (size_t i = 0; i < graph->node_count; i++) {
        some = some || graph->nodes[i].op->rank_outputs;
    }
    return some;
}

// A unit with an op over the whole wave, which needs every micro-batch of the step in
// it; NULL: none. *own: over the rank's alone.
static const char *find_barrier(const tr_plan *plan, bool *own) {
    const char *barrier = NULL;
    for (int u = 0; u < plan->unit_count; u++) {
        const tr_unit_program *program = plan->units[u].program;
        if (tr__graph_barriers(program->graph, 1, program->segments) > 0) {
            barrier = plan->request.model->units[u].name;
            *own = has_rank_outputs(program->graph);
        }
    }
    return barrier;
}

// Gradients that are evicted more than once in a step would be added up in another
// order than those that stay, and residency must not change a bit; only integers have
// no order. On NVMe nothing is added up.
static bool evicts_sums(const tr_plan *plan) {
    const tr_plan_request *r = &plan->request;
    bool once = !r->reproducible || r->grad_placement == TR_SPACE_NVME;
    return r->optimizer_placement != TR_SPACE_DEVICE && once &&
           tr__plan_grads_pass(plan);
}

static tr_status take_whole(tr_plan *plan, char *why, tr_error *err) {
    tr_plan_request *r = &plan->request;
    plan->why_wave = why;
    if (why && r->wave && r->wave != r->accumulation_steps) {
        return tr_fail(err, TR_USAGE,
                       "execution.wave is %lld, but %s: set it to %lld or \"auto\"",
                       (long long)r->wave, why, (long long)r->accumulation_steps);
    }
    r->wave = r->accumulation_steps;
    return why ? TR_OK : tr_fail(err, TR_MEMORY, "no memory for a plan");
}

static tr_status choose_wave(tr_plan *plan, tr_error *err) {
    tr_plan_request *r = &plan->request;
    bool own = false;
    const char *barrier = find_barrier(plan, &own);
    if (barrier) {
        const char *over =
            own ? "all micro-batches of a rank" : "the whole effective batch";
        return take_whole(plan, tr__format("unit %s has an op over %s", barrier, over),
                          err);
    }
    if (evicts_sums(plan) && tr__plan_slices(plan) > 1) {
        return tr_fail(err, TR_USAGE,
                       "execution.vocabulary_slices with an offloaded optimizer is not "
                       "yet supported, except in reproducible mode with gradients on "
                       "the host: set it to 1");
    }
    if (evicts_sums(plan)) {
        return take_whole(
            plan,
            tr__format("gradients go to %s once a step",
                       r->grad_placement == TR_SPACE_NVME ? "NVMe" : "the host"),
            err);
    }
    r->wave = r->wave ? r->wave : 1;
    return TR_OK;
}

// What a request can ask for that one pass provides.
enum { ALWAYS = 0, SUMS = 1, STAGING = 2 };

static const struct {
    tr_status (*run)(tr_plan *plan, tr_error *err);
    unsigned provides;
} passes[] = {
    {tr__pass_compile, ALWAYS},    {tr__pass_partition, ALWAYS},
    {choose_wave, ALWAYS},         {tr__pass_statistics, ALWAYS},
    {tr__pass_kept, ALWAYS},       {tr__pass_order, ALWAYS},
    {tr__pass_accumulate, SUMS},   {tr__pass_recompute, ALWAYS},
    {tr__pass_micro_norm, ALWAYS}, {tr__pass_communicate, ALWAYS},
    {tr__pass_stage, STAGING},     {tr__pass_defer, ALWAYS},
    {tr__pass_boundary, ALWAYS},   {tr__pass_saved, ALWAYS},
    {tr__pass_number, ALWAYS},     {tr__pass_schedule, ALWAYS},
    {tr__pass_offsets, ALWAYS},    {tr__pass_reuse, ALWAYS},
    {tr__pass_kernels, ALWAYS},    {tr__pass_traffic, ALWAYS},
    {tr__pass_ledger, ALWAYS},
};
enum { PASSES = sizeof passes / sizeof *passes };

static tr_status check_provided(const tr_plan *plan, tr_error *err) {
    unsigned missing = (tr__plan_accumulates(plan) ? SUMS : 0) |
                       (tr__plan_uses_nvme(plan) ? STAGING : 0);
    for (size_t i = 0; i < PASSES; i++) {
        missing &= ~passes[i].provides;
    }
    return missing ? tr_fail(err, TR_USAGE, "this build cannot %s",
                             missing & SUMS ? "sum gradients in another type than f32"
                                            : "keep anything on NVMe")
                   : TR_OK;
}

static tr_status run_passes(tr_plan *plan, tr_error *err) {
    tr_status status = check_provided(plan, err);
    for (size_t i = 0; i < PASSES && status == TR_OK; i++) {
        status = passes[i].run(plan, err);
    }
    for (int s = 0; s < TR_SEQUENCES; s++) {
        tr__unit_values_clear(plan, (tr_sequence_kind)s);
    }
    return status;
}

static void limit_level(const tr_plan_request *r, tr_target *target) {
    if (r->level_limit > 0 && r->level_limit - 1 < target->level) {
        target->level = r->level_limit - 1;
    }
}

tr_target tr__request_host(const tr_plan_request *r) {
    tr_target target = tr__backend(TR_BACKEND_HOST)->here(0);
    if (r->backend == TR_BACKEND_HOST) {
        limit_level(r, &target);
    }
    target.workers = r->threads > 0 ? r->threads : target.workers;
    return target;
}

tr_target tr__request_target(const tr_plan_request *r) {
    if (r->backend == TR_BACKEND_HOST) {
        return tr__request_host(r);
    }
    tr_target target = tr__backend(r->backend)->here(r->device);
    limit_level(r, &target);
    return target;
}

static void resolve(tr_plan *plan) {
    tr_plan_request *r = &plan->request;
    plan->target = tr__request_target(r);
    plan->host = tr__request_host(r);
    r->discrete = r->discrete || tr__backend(r->backend)->discrete;
    plan->asked = r->measure;
    r->measure = TR_MEASURE_NEVER; // unless a pass plans it
    r->compute = r->compute == TR_NONE ? TR_F32 : r->compute;
    r->sums = r->reproducible ? TR_I64 : r->sums == TR_NONE ? TR_F32 : r->sums;
    r->threads = plan->host.workers;
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
    plan->runs = tr__stage_units(&r->mesh, plan->unit_count);
    plan->logits = plan->exchange = -1;
    if (r->optimizer_placement != TR_SPACE_DEVICE &&
        r->grad_placement == TR_SPACE_DEVICE) {
        r->grad_placement = TR_SPACE_HOST;
    }
}

// Without a proof.
static tr_status make(const tr_plan_request *request, tr_plan **out, tr_error *err) {
    tr_status status = check_request(request, err);
    if (status != TR_OK) {
        return status;
    }
    tr_plan *plan = tr__calloc(1, sizeof *plan);
    if (!plan) {
        return tr_fail(err, TR_MEMORY, "no memory for a plan");
    }
    plan->request = *request;
    resolve(plan);
    status = run_passes(plan, err);
    if (status != TR_OK) {
        tr_plan_destroy(plan);
        return status;
    }
    *out = plan;
    return TR_OK;
}

// The plan fits those of all other ranks. One rank stands for those that differ from it
// on the data axis alone.
static tr_status match_ranks(const tr_plan *plan, tr_error *err) {
    const tr_axes axes = TR_ON_TENSOR | TR_ON_PIPELINE;
    const tr_mesh *mesh = &plan->request.mesh;
    size_t count = (size_t)tr__mesh_members(mesh, axes);
    int64_t own = tr__mesh_member(mesh, axes);
    tr_status status = TR_OK;
    const tr_plan **plans = tr__calloc(count, sizeof *plans);
    if (!plans) {
        return tr_fail(err, TR_MEMORY, "no memory to compare the plans of ranks");
    }
    for (size_t i = 0; i < count && status == TR_OK; i++) {
        tr_plan_request request = plan->request;
        tr_plan *other = NULL;
        request.mesh = tr__mesh_of_rank(mesh, tr__mesh_rank_of(mesh, axes, (int64_t)i));
        request.measure = plan->asked;
        status = (int64_t)i == own ? TR_OK : make(&request, &other, err);
        plans[i] = (int64_t)i == own ? plan : other;
    }
    if (status == TR_OK) {
        status = tr__plans_match(plans, count, err);
    }
    for (size_t i = 0; i < count; i++) {
        tr_plan_destroy(plans[i] == plan ? NULL : (tr_plan *)(uintptr_t)plans[i]);
    }
    tr__free(plans);
    return status;
}

tr_status tr__plan_build(const tr_plan_request *request, tr_plan **out, tr_error *err) {
    tr_plan *plan = NULL;
    tr_status status = make(request, &plan, err);
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
    tr_status status = check_axes(&request->mesh, err);
    return status == TR_OK ? tr__plan_build(request, out, err) : status;
}

tr_status tr__plan_draft(const tr_plan_request *request, tr_plan **out, tr_error *err) {
    tr_status status = check_axes(&request->mesh, err);
    return status == TR_OK ? make(request, out, err) : status;
}

void tr_plan_destroy(tr_plan *plan) {
    if (!plan) {
        return;
    }
    for (int u = 0; plan->units && u < plan->unit_count; u++) {
        if (plan->units[u].owns_program) {
            tr__unit_program_destroy(plan->units[u].program);
        }
    }
    for (size_t i = 0; i < plan->param_count; i++) {
        tr__free(plan->params[i].name);
    }
    for (size_t i = 0; i < plan->state_count; i++) {
        tr__free(plan->states[i].name);
    }
    for (size_t f = 0; f < plan->flat_count; f++) {
        tr__free(plan->flats[f].own_name);
    }
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
    tr__free(plan->why_wave);
    tr__free(plan);
}

const tr_ledger *tr_plan_ledger(const tr_plan *plan) {
    return &plan->ledger;
}

double tr_plan_flops(const tr_plan *plan) {
    return plan->flops;
}

// Those of all owners.
static int64_t elements_of(const tr_plan *plan, const tr_plan_param *param) {
    tr_axes split = plan->flats[param->flat].axes.split;
    return param->count * tr__mesh_members(&plan->request.mesh, split);
}

int64_t tr_plan_parameters(const tr_plan *plan) {
    int64_t count = 0;
    for (size_t i = 0; i < plan->param_count; i++) {
        count += elements_of(plan, &plan->params[i]);
    }
    return count;
}

int64_t tr_plan_trained(const tr_plan *plan) {
    int64_t count = 0;
    for (size_t i = 0; i < plan->param_count; i++) {
        const tr_plan_param *param = &plan->params[i];
        count += plan->flats[param->flat].frozen ? 0 : elements_of(plan, param);
    }
    return count;
}

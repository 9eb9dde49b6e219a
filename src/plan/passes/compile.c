// Pass: one program for each kind of unit, and each choice of what it recomputes.
#include "base/checked.h"
#include "base/memory.h"
#include "graph/rewrite.h"
#include "plan/flow/fp8.h"
#include "plan/flow/passes.h"
#include "plan/flow/plan.h"
#include "plan/schedules/schedule.h"
#include "plan/units/apart.h"
#include "plan/units/freeze.h"
#include "plan/units/unit_graph.h"

#include <string.h>

// The classes of tensors that the unit recomputes. One that is recomputed from its
// boundary recomputes only what is cheap: the rest would be computed twice.
static uint32_t recomputed_of(const tr_plan_request *r, int unit) {
    uint32_t asked = r->recomputed_ops & TR_RECOMPUTE_ALL;
    if (unit < r->recomputed_units) {
        return asked & TR_RECOMPUTE_DEFAULT;
    }
    return unit < r->recomputed_ops_units ? asked : TR_RECOMPUTE_DEFAULT;
}

// An earlier unit of the same kind of which the same is trained, -1: none.
static int same_kind(const tr_plan *plan, int unit, const tr_compile_request *request,
                     uint64_t hash) {
    const tr_model_unit *units = plan->request.model->units;
    for (int u = 0; u < unit; u++) {
        const tr_unit_program *program = plan->units[u].program;
        if (plan->units[u].owns_program && program->recomputed == request->recomputed &&
            program->graph_hash == hash &&
            plan->units[u].fp8 == plan->units[unit].fp8 &&
            strcmp(units[u].kind, units[unit].kind) == 0 &&
            units[u].build == units[unit].build &&
            memcmp(program->graph->input_fixed, request->input_fixed,
                   sizeof request->input_fixed) == 0 &&
            memcmp(program->graph->input_cut, request->input_cut,
                   sizeof request->input_cut) == 0 &&
            (!request->last || (tr__cut_tokens_of(&plan->request) == 0 &&
                                !tr__weights_come_later(&plan->request))) &&
            tr__freezes_alike(&plan->request, &units[unit], program->graph) &&
            tr__apart_alike(&plan->request, &units[unit], program->graph)) {
            return u;
        }
    }
    return -1;
}

// What the unit hands on to the next one, which of it has no gradient.
static void outputs_of(const tr_unit_program *program, tr_tensor_desc *desc, int *count,
                       tr_compile_request *next) {
    const tr_graph *graph = program->graph;
    memset(next->input_fixed, 0, sizeof next->input_fixed);
    memcpy(next->input_cut, graph->output_cut, sizeof next->input_cut);
    for (int i = 0; i < graph->output_count; i++) {
        desc[i] = tr_graph_desc(graph, graph->output[i]);
        next->input_fixed[i] =
            next->train && program->derived.output_grad[i] == TR_NO_VALUE;
    }
    *count = graph->output_count;
}

// What is trained at all.
static tr_status check_trained(const tr_plan *plan, tr_error *err) {
    for (int u = 0; u < plan->unit_count; u++) {
        const tr_graph *graph = plan->units[u].program->graph;
        for (size_t i = 0; i < graph->param_count; i++) {
            if (!graph->params[i].frozen) {
                return TR_OK;
            }
        }
    }
    if (plan->request.model->adapter) {
        return tr_fail(err, TR_USAGE,
                       "adapter.target_modules names no linear layer of the model; "
                       "tranche inspect FOLDER lists its tensors");
    }
    return plan->request.frozen_count == 0
               ? TR_OK
               : tr_fail(err, TR_USAGE,
                         "freeze: its patterns match every parameter of the model, so "
                         "nothing would be trained: leave some of them out");
}

static tr_status same_inputs(const tr_graph *graph, const tr_tensor_desc *inputs,
                             int count, const char *name, tr_error *err) {
    bool same = graph->input_count == count;
    for (int i = 0; same && i < count; i++) {
        same = graph->inputs[i].dtype == inputs[i].dtype &&
               tr_shape_equal(graph->inputs[i].shape, inputs[i].shape);
    }
    return same ? TR_OK
                : tr_fail(err, TR_USAGE,
                          "unit %s has inputs of other shapes than the first unit of "
                          "its kind",
                          name);
}

// A loss outside of the model needs outputs that something trained leads to.
static tr_status check_outputs(const tr_plan *plan, int u, tr_error *err) {
    const tr_unit_program *program = plan->units[u].program;
    const char *name = plan->request.model->units[u].name;
    if (plan->request.inference) {
        return tr_fail(err, TR_USAGE,
                       "unit %s is the last and has no loss, so this model has no "
                       "logits: tr_engine_forward gives its outputs",
                       name);
    }
    if (program->graph->output_count == 0) {
        return tr_fail(err, TR_USAGE,
                       "unit %s is the last and has no loss: give it one, or outputs, "
                       "of which the caller makes a loss",
                       name);
    }
    return program->output_grad_bytes > 0
               ? TR_OK
               : tr_fail(err, TR_USAGE,
                         "unit %s is the last, and nothing that is trained leads to "
                         "its outputs",
                         name);
}

// The last unit ends with the loss or with outputs, and no other has a loss.
static tr_status check_loss(const tr_plan *plan, int u, tr_error *err) {
    bool loss = plan->units[u].program->graph->has_loss;
    bool last = u + 1 == plan->unit_count;
    if (loss == last) {
        return TR_OK;
    }
    return last ? check_outputs(plan, u, err)
                : tr_fail(err, TR_USAGE, "unit %s has a loss and is not the last",
                          plan->request.model->units[u].name);
}

// The most positions that a plan with this cache computes at once.
static int64_t piece_of(const tr_plan_request *r) {
    const tr_shape *sample = &tr_batch_input(&r->model->batch)->desc.shape;
    return r->cache_positions > 0 ? tr__max_i64(r->cache_piece, sample->dim[0]) : 0;
}

// What rows of the model make of the unit, which may differ between units of one kind;
// 0 where it has none.
static tr_status rewritten_hash(const tr_plan *plan, int u,
                                const tr_compile_request *request,
                                const tr_tensor_desc *inputs, int input_count,
                                uint64_t *hash, tr_error *err) {
    tr_graph *graph = NULL;
    const tr_model *model = plan->request.model;
    *hash = 0;
    if (!model->rewrites && !model->adapter) {
        return TR_OK;
    }
    tr_status status = tr__unit_graph(request, &model->units[u], inputs, input_count,
                                      &plan->batch, &graph, err);
    *hash = status == TR_OK ? tr__graph_hash(graph) : 0;
    tr__graph_destroy(graph);
    return status;
}

// The program of unit u behind these inputs: that of an earlier unit of its kind, or a
// new one.
static tr_status compile_one(tr_plan *plan, int u, const tr_compile_request *request,
                             const tr_tensor_desc *inputs, int input_count,
                             tr_error *err) {
    const tr_model_unit *unit = &plan->request.model->units[u];
    uint64_t hash = 0;
    tr_status status =
        rewritten_hash(plan, u, request, inputs, input_count, &hash, err);
    int twin = status == TR_OK ? same_kind(plan, u, request, hash) : -1;
    if (status != TR_OK) {
        return status;
    }
    if (twin >= 0) {
        plan->units[u].program = plan->units[twin].program;
        status = same_inputs(plan->units[u].program->graph, inputs, input_count,
                             unit->name, err);
    } else {
        status = tr__unit_compile(request, unit, inputs, input_count, &plan->batch,
                                  &plan->units[u].program, err);
        plan->units[u].owns_program = status == TR_OK;
    }
    if (status == TR_OK && twin < 0) {
        plan->units[u].program->graph_hash = hash;
    }
    return status == TR_OK ? check_loss(plan, u, err) : status;
}

// ---- tied tensors

// A unit before this one that has the tied tensor lies otherwise on the ranks?
static bool lies_otherwise(const tr_plan *plan, int unit, const tr_param_info *param) {
    for (int u = 0; u < unit; u++) {
        const tr_graph *graph = plan->units[u].program->graph;
        for (size_t i = 0; i < graph->param_count; i++) {
            const tr_param_info *other = &graph->params[i];
            if (other->shared && strcmp(other->name, param->name) == 0) {
                return other->split != param->split ||
                       !tr__stride_same(&other->lies, &param->lies);
            }
        }
    }
    return false;
}

// Can some unit not cut a tied tensor as another one does?
static bool ties_differ(const tr_plan *plan) {
    for (int u = 0; u < plan->unit_count; u++) {
        const tr_graph *graph = plan->units[u].program->graph;
        for (size_t i = 0; i < graph->param_count; i++) {
            const tr_param_info *param = &graph->params[i];
            if (param->shared && lies_otherwise(plan, u, param)) {
                return true;
            }
        }
    }
    return false;
}

void tr__plan_destroy_programs(tr_plan *plan) {
    for (int u = 0; plan->units && u < plan->unit_count; u++) {
        if (plan->units[u].owns_program) {
            tr__unit_program_destroy(plan->units[u].program);
        }
        plan->units[u].program = NULL;
        plan->units[u].owns_program = false;
    }
}

// ---- all units

static tr_status compile_units(tr_plan *plan, bool cuts_tied, tr_error *err) {
    const tr_plan_request *r = &plan->request;
    tr_compile_request request = {.micro_batch = r->micro_batch,
                                  .many = r->accumulation_steps > 1,
                                  .cuts_tied = cuts_tied,
                                  .train = !r->inference,
                                  .finite = r->compute == TR_F16 && !r->inference,
                                  .all_rows = r->all_positions,
                                  .cache_positions = r->cache_positions,
                                  .cache_piece = piece_of(r),
                                  .recompute = r->recomputed_units > 0 || r->passes > 1,
                                  .target = plan->target,
                                  .real = r->compute,
                                  .params_come = !tr__plan_params_stay(plan),
                                  .packs = r->accumulation_steps > 1 && !r->fp8.repack,
                                  .plan = r};
    tr_tensor_desc inputs[TR_GRAPH_IO_MAX];
    int input_count = 0;
    bool later = tr__weights_come_later(r);
    tr_status status = TR_OK;
    for (int u = 0; u < plan->unit_count && status == TR_OK; u++) {
        request.recomputed = recomputed_of(r, u);
        request.fp8 = plan->units[u].fp8;
        request.last = u == plan->unit_count - 1;
        request.weights_later = later && !request.last;
        // The last unit is the head.
        request.quantization =
            u < plan->unit_count - 1 ? r->quantization : TR_QUANTIZED_NOT;
        status = compile_one(plan, u, &request, inputs, input_count, err);
        if (status == TR_OK) {
            outputs_of(plan->units[u].program, inputs, &input_count, &request);
        }
    }
    return status;
}

// How many of the ranks have a head of keys alike, in all units; 1: each has its own.
static tr_status find_repeats(const tr_plan *plan, int64_t *repeats, tr_error *err) {
    *repeats = 1;
    for (int u = 0; u < plan->unit_count; u++) {
        const tr_graph *graph = plan->units[u].program->graph;
        for (size_t i = 0; i < graph->param_count; i++) {
            const tr_param_info *param = &graph->params[i];
            int64_t own = param->split && param->repeats > 1 ? param->repeats : 1;
            if (own > 1 && *repeats > 1 && own != *repeats) {
                return tr_fail(err, TR_USAGE,
                               "tensor_parallel.size is %lld, and heads of keys would "
                               "be on %lld ranks each in some layers, on %lld in "
                               "others (%s): choose a size that divides those of all "
                               "layers",
                               (long long)plan->request.mesh.size[TR_AXIS_TENSOR],
                               (long long)*repeats, (long long)own, param->name);
            }
            *repeats = own > 1 ? own : *repeats;
        }
    }
    return TR_OK;
}

tr_status tr__pass_compile(tr_plan *plan, tr_error *err) {
    const tr_plan_request *r = &plan->request;
    bool shared = r->mesh.size[TR_AXIS_TENSOR] > 1 && !r->inference;
    plan->units = tr__calloc((size_t)plan->unit_count, sizeof *plan->units);
    if (!plan->units) {
        return tr_fail(err, TR_MEMORY, "no memory for the plan's units");
    }
    tr_status status = tr__fp8_units(plan, err);
    if (status == TR_OK) {
        status = compile_units(plan, shared, err);
    }
    if (status == TR_OK && shared && ties_differ(plan)) {
        tr__plan_destroy_programs(plan);
        status = compile_units(plan, false, err);
    }
    if (status == TR_OK) {
        status = find_repeats(plan, &plan->request.mesh.repeats, err);
    }
    if (status == TR_OK) {
        plan->hands_out = !plan->units[plan->unit_count - 1].program->graph->has_loss;
        status = check_trained(plan, err);
    }
    return status;
}

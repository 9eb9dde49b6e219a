// Changes of a run that may let a plan fit, and that only its user can make: they cost
// more than time.
#include "calibrate/calibrate.h"
#include "models/models.h"
#include "plan/flow/passes.h"
#include "run/run.h"

#include <stdio.h>
#include <string.h>

static tr_planner_lever *take(tr_planner_lever *out, size_t *count,
                              const tr_planner_request *request) {
    tr_planner_lever *lever = &out[(*count)++];
    lever->request = *request;
    lever->request.levers = NULL;
    return lever;
}

// All that could go to a disk passes in pieces of megabytes: of so much a plan is not
// made for a message alone.
static const int64_t disk_most = (int64_t)1 << 40;

static bool is_for_disk(const tr_plan_request *request) {
    tr_plan *plan = NULL;
    tr_error why = {0};
    bool fits = tr__plan_draft(request, &plan, &why) == TR_OK &&
                tr_plan_parameters(plan) <= disk_most / (int64_t)sizeof(float) /
                                                (2 + request->optimizer_states);
    tr_plan_destroy(plan);
    return fits;
}

// A disk: by a machine of the usual proportions, since nobody has measured it.
static void add_nvme(tr_run_levers *l, const tr_planner_request *request,
                     tr_planner_lever *out, size_t *count) {
    unsigned optimizer = 1u << TR_DIMENSION_optimizer_placement;
    unsigned places = optimizer | 1u << TR_DIMENSION_param_placement;
    if (tr__run_nvme_folder(l->run) || !is_for_disk(&request->plan) ||
        tr__calibrate_nominal(&request->plan, &l->machine, NULL) != TR_OK) {
        return;
    }
    tr_planner_lever *lever = take(out, count, request);
    lever->request.machine = l->machine;
    lever->request.budget[TR_SPACE_NVME] = TR_UNLIMITED;
    lever->request.free |= places | 1u << TR_DIMENSION_grad_placement;
    snprintf(lever->words, sizeof lever->words,
             "memory.nvme.path, a folder on a disk%s",
             request->free & optimizer
                 ? ""
                 : ", with zero_optimization.offload_optimizer.device \"nvme\"");
}

static void add_halves(const tr_planner_request *request, tr_planner_lever *out,
                       size_t *count) {
    bool f32 = request->plan.compute == TR_F32 || request->plan.compute == TR_NONE;
    bool sums = request->plan.sums == TR_F32 || request->plan.sums == TR_NONE;
    if (f32) {
        tr_planner_lever *lever = take(out, count, request);
        lever->request.plan.compute = TR_BF16;
        snprintf(lever->words, sizeof lever->words, "bf16.enabled true");
    }
    if (sums && !request->plan.reproducible) {
        tr_planner_lever *lever = take(out, count, request);
        lever->request.plan.sums = TR_BF16;
        snprintf(lever->words, sizeof lever->words,
                 "data_types.grad_accum_dtype \"bf16\"");
    }
}

// Optimizers with fewer states than the run's. (SGD has none without momentum.)
static void add_optimizers(const tr_planner_request *request, tr_planner_lever *out,
                           size_t *count) {
    static const struct {
        const char *type;
        int states;
    } fewer[] = {{"Lion", 1}, {"SGD", 0}};
    for (size_t i = 0; i < sizeof fewer / sizeof *fewer; i++) {
        if (fewer[i].states < request->plan.optimizer_states) {
            tr_planner_lever *lever = take(out, count, request);
            lever->request.plan.optimizer_states = fewer[i].states;
            lever->request.plan.tensor_norms = false;
            lever->request.plan.apart = TR_APART_NOTHING;
            lever->request.plan.matrices = false;
            memset(lever->request.plan.states, 0, sizeof lever->request.plan.states);
            snprintf(lever->words, sizeof lever->words, "optimizer.type \"%s\"",
                     fewer[i].type);
        }
    }
}

static void add_shorter(tr_run_levers *l, const tr_planner_request *request,
                        tr_planner_lever *out, size_t *count) {
    const tr_model *model = l->run->own_model;
    if (!model || !tr__model_type_reads_tokens(model->type) ||
        tr_model_targets(model) < 2) {
        return;
    }
    int64_t length = tr_model_targets(model) / 2;
    l->shorter = *model; // all but the length is shared
    tr__model_set_length(&l->shorter, length, tr_batch_positions(&model->batch));
    tr_planner_lever *lever = take(out, count, request);
    lever->request.plan.model = &l->shorter;
    snprintf(lever->words, sizeof lever->words, "data.max_length %lld",
             (long long)length);
}

// All layers, which share the beginning of their names: "transformer.h.*".
static bool find_layers(const tr_model *model, char *dst, size_t size) {
    for (int u = 0; u < model->unit_count; u++) {
        const char *prefix = model->units[u].prefix, *zero = strstr(prefix, ".0.");
        if (zero) {
            snprintf(dst, size, "%.*s.*", (int)(zero - prefix), prefix);
            return true;
        }
    }
    return false;
}

static void add_freeze(tr_run_levers *l, const tr_planner_request *request,
                       tr_planner_lever *out, size_t *count) {
    if (request->plan.frozen_count > 0 ||
        !find_layers(request->plan.model, l->layers, sizeof l->layers)) {
        return;
    }
    tr_planner_lever *lever = take(out, count, request);
    l->frozen = l->layers;
    lever->request.plan.frozen = &l->frozen;
    lever->request.plan.frozen_count = 1;
    snprintf(lever->words, sizeof lever->words, "freeze [\"%.64s\"], or fewer layers",
             l->layers);
}

size_t tr__run_levers(void *user, const tr_planner_request *request,
                      tr_planner_lever *out) {
    tr_run_levers *l = user;
    size_t count = 0;
    add_nvme(l, request, out, &count);
    add_halves(request, out, &count);
    add_optimizers(request, out, &count);
    add_shorter(l, request, out, &count);
    add_freeze(l, request, out, &count);
    return count;
}

void tr__run_levers_end(tr_run_levers *levers) {
    tr_machine_close(levers->machine);
    levers->machine = NULL;
}

// Pass: the wave, where the request leaves it open, and whether it can be as asked.
#include "base/memory.h"
#include "plan/flow/passes.h"
#include "plan/flow/residency.h"

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

// The caller makes a loss of one micro-batch after the other, and each is told of the
// next one's data only then.
static tr_status take_one(tr_plan *plan, const char *barrier, tr_error *err) {
    tr_plan_request *r = &plan->request;
    bool several = r->accumulation_steps > 1;
    if (r->wave > 1) {
        return tr_fail(
            err, TR_USAGE,
            "execution.wave is %lld, but the loss is computed outside of the "
            "model, for one micro-batch at a time: set it to 1 or \"auto\"",
            (long long)r->wave);
    }
    if (barrier && several) {
        return tr_fail(err, TR_USAGE,
                       "unit %s has an op over all micro-batches, but the loss is "
                       "computed outside of the model, for one at a time: set "
                       "gradient_accumulation_steps to 1",
                       barrier);
    }
    if (several && tr__plan_grads_pass(plan) &&
        r->optimizer_placement != TR_SPACE_DEVICE &&
        r->grad_placement == TR_SPACE_NVME) {
        return tr_fail(
            err, TR_USAGE,
            "gradients go to NVMe once a step, but the loss is computed "
            "outside of the model, for one micro-batch at a time: keep "
            "gradients on the host, or set gradient_accumulation_steps to 1");
    }
    plan->why_wave = tr__format("the loss is computed outside of the model");
    r->wave = 1;
    return plan->why_wave ? TR_OK : tr_fail(err, TR_MEMORY, "no memory for a plan");
}

static tr_status check_sums(const tr_plan *plan, tr_error *err) {
    return plan->request.reproducible
               ? tr_fail(err, TR_USAGE,
                         "execution.reproducible: the loss is computed outside of the "
                         "model, for each micro-batch by itself, so the result depends "
                         "on how the batch is cut: leave it out, or give the model a "
                         "loss")
               : TR_OK;
}

tr_status tr__pass_choose_wave(tr_plan *plan, tr_error *err) {
    tr_plan_request *r = &plan->request;
    bool own = false;
    const char *barrier = find_barrier(plan, &own);
    if (plan->hands_out) {
        tr_status status = check_sums(plan, err);
        return status == TR_OK ? take_one(plan, barrier, err) : status;
    }
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

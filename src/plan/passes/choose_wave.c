// Pass: the wave, where the request leaves it open, and whether it can be as asked.
#include "base/memory.h"
#include "plan/flow/passes.h"
#include "plan/flow/residency.h"
#include "plan/passes/two_passes.h"

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
static bool evicts_once(const tr_plan *plan) {
    const tr_plan_request *r = &plan->request;
    bool once = !r->reproducible || r->grad_placement == TR_SPACE_NVME;
    return once && tr__plan_evicts_scopes(plan);
}

// Only the last unit waits for other micro-batches, at one place, and the units below
// can run a second time: they change nothing but what they hand on.
static bool can_repeat(const tr_plan *plan) {
    const tr_unit_program *last = plan->units[plan->unit_count - 1].program;
    bool can = !plan->hands_out && plan->unit_count > 1 &&
               tr__graph_barriers(last->graph, 1, last->segments) == 1;
    for (int u = 0; u + 1 < plan->unit_count; u++) {
        const tr_unit_program *program = plan->units[u].program;
        can = can && program->segments == 1 && program->wave_bytes == 0;
    }
    return can;
}

// Flat buffers of the last unit of which it makes gradients in the segments [from, to).
static uint32_t makes(const tr_unit_program *unit, int from, int to) {
    uint32_t flats = 0;
    for (int s = from; s < to; s++) {
        flats |= tr__segment_flats(unit, TR_VARIANT_BACKWARD, s, TR_PLACE_PARAM_GRAD);
    }
    return flats;
}

// Are gradients handed on wave by wave that are made both with the loss and behind it?
static bool leaves_twice(const tr_plan *plan) {
    const tr_plan_unit *last = &plan->units[plan->unit_count - 1];
    const tr_unit_program *unit = last->program;
    int barrier = tr__loss_barrier(plan);
    uint32_t both = makes(unit, 0, barrier) & makes(unit, barrier, unit->segments);
    bool leaves = false;
    for (int f = 0; f < unit->flat_count; f++) {
        leaves =
            leaves || ((both >> f & 1) && tr__flat_grads_pass(plan, last->flats[f]));
    }
    return leaves;
}

// The wave is of the units below the loss.
static tr_status take_passes(tr_plan *plan, tr_error *err) {
    tr_plan_request *r = &plan->request;
    if (evicts_once(plan)) {
        return tr_fail(
            err, TR_USAGE,
            "contrastive.passes is 2, but gradients go to %s once a step, "
            "which needs all micro-batches in one wave: set it to 1, or turn "
            "execution.reproducible on, where gradients may go there in "
            "parts",
            r->grad_placement == TR_SPACE_NVME ? "NVMe" : "the host");
    }
    if (leaves_twice(plan)) {
        return tr_fail(err, TR_USAGE,
                       "contrastive.passes is 2, but parameters of unit %s are used "
                       "before the loss and by it, and their gradients leave wave by "
                       "wave: set it to 1, or use zero_optimization.stage 0 or 1",
                       r->model->units[plan->unit_count - 1].name);
    }
    r->wave = r->wave ? r->wave : 1;
    return TR_OK;
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
    if (several && tr__plan_evicts_scopes(plan) && r->grad_placement == TR_SPACE_NVME) {
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
    r->passes = r->passes > 1 && can_repeat(plan) ? 2 : 1;
    if (plan->hands_out) {
        tr_status status = check_sums(plan, err);
        return status == TR_OK ? take_one(plan, barrier, err) : status;
    }
    if (r->passes > 1) {
        return take_passes(plan, err);
    }
    if (barrier) {
        const char *over =
            own ? "all micro-batches of a rank" : "the whole effective batch";
        return take_whole(plan, tr__format("unit %s has an op over %s", barrier, over),
                          err);
    }
    if (evicts_once(plan) && tr__plan_slices(plan) > 1) {
        return tr_fail(err, TR_USAGE,
                       "execution.vocabulary_slices with an offloaded optimizer is not "
                       "yet supported, except in reproducible mode with gradients on "
                       "the host: set it to 1");
    }
    if (evicts_once(plan)) {
        return take_whole(
            plan,
            tr__format("gradients go to %s once a step",
                       r->grad_placement == TR_SPACE_NVME ? "NVMe" : "the host"),
            err);
    }
    r->wave = r->wave ? r->wave : 1;
    return TR_OK;
}

#include "plan/threads.h"

#include <string.h>

// One core's arithmetic and traffic in a second, as usual servers have them. Not
// measured: the same choice everywhere, each time.
static const double flops_rate = 1e11, bytes_rate = 2e10;

// The time of one core that a launch of a kernel must have for each thread, on average:
// about what it takes threads to begin and end together. It takes much longer where
// another process is on one of the cores (bench/busy.sh).
static const double worth = 4e-6;

typedef struct work {
    double flops, bytes;
    size_t launches;
} work;

static void add(work *w, const tr_unit_program *unit, tr_variant role) {
    for (int i = 0; i < tr__unit_pieces(unit, role); i++) {
        const tr_program *program = tr__unit_piece(unit, role, i);
        w->flops += program->cost.flops;
        w->bytes += program->cost.bytes + program->cost.prepare;
        w->launches += program->count;
    }
}

static work of_micro_batch(const tr_plan *plan) {
    work w = {0, 0, 0};
    for (int u = tr__plan_next(plan, 0); u < plan->unit_count;
         u = tr__plan_next(plan, u + 1)) {
        const tr_unit_program *unit = plan->units[u].program;
        add(&w, unit, TR_VARIANT_FORWARD);
        add(&w, unit, TR_VARIANT_BACKWARD);
    }
    return w;
}

// The same micro-batch by itself, with everything kept and in its place.
static tr_plan_request alone(const tr_plan_request *r) {
    return (tr_plan_request){.model = r->model,
                             .train_batch_size = r->micro_batch,
                             .micro_batch = r->micro_batch,
                             .accumulation_steps = 1,
                             .mesh = tr_mesh_of_data(1, 0),
                             .recomputed_ops = TR_RECOMPUTE_NOTHING,
                             .compute = r->compute,
                             .fp8 = r->fp8,
                             .threads = 1,
                             .level_limit = r->level_limit,
                             .reference_kernels = r->reference_kernels};
}

tr_status tr__threads_that_pay(const tr_plan_request *request, int cores, int *threads,
                               tr_error *err) {
    tr_plan_request one = alone(request);
    memcpy(one.states, request->states, sizeof one.states);
    memcpy(one.apart_states, request->apart_states, sizeof one.apart_states);
    one.optimizer_states = request->optimizer_states;
    one.apart_state_count = request->apart_state_count;
    one.apart = request->apart;
    one.apart_rules = request->apart_rules;
    one.apart_rule_count = request->apart_rule_count;
    one.matrices = request->matrices;
    tr_plan *plan = NULL;
    tr_status status = tr_plan_make(&one, &plan, err);
    if (status != TR_OK) {
        return status;
    }
    work w = of_micro_batch(plan);
    tr_plan_destroy(plan);
    double seconds = w.flops / flops_rate + w.bytes / bytes_rate;
    double paid = seconds / ((double)w.launches * worth);
    *threads = paid < 1 ? 1 : paid < cores ? (int)paid : cores;
    return TR_OK;
}

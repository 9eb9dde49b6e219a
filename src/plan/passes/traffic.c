// Pass: how many bytes a rank moves in a step, and how much it computes.
#include "plan/flow/model_flops.h"
#include "plan/flow/passes.h"
#include "plan/flow/work.h"

static void count_transfer(tr_plan *plan, const tr_plan_step *step) {
    tr_transfer transfer;
    if (tr__step_transfer(plan, step, &transfer)) {
        bool gather = transfer.kind == TR_COMM_GATHER;
        *(gather ? &plan->traffic.gather : &plan->traffic.reduce) +=
            tr__transfer_sent(&transfer);
        plan->traffic.between += tr__transfer_between(&transfer);
        plan->traffic.exchanges[transfer.algorithm] += !transfer.pair;
    }
}

static void count_step(tr_plan *plan, const tr_plan_step *step) {
    count_transfer(plan, step);
    tr_reach reach = tr__step_reach(plan, step);
    plan->traffic.device_host += tr__step_copied(plan, step);
    plan->traffic.reached += reach.read + reach.written;
    plan->traffic.nvme += tr__step_stored(plan, step);
}

// An evaluation is not of the step.
static void count_flops(tr_plan *plan) {
    for (int kind = 0; kind < TR_SEQUENCES; kind++) {
        const tr_sequence *sequence = &plan->sequences[kind];
        for (size_t i = 0; i < sequence->count && kind != TR_SEQUENCE_EVALUATE; i++) {
            const tr_program *program = tr__payload_program(&sequence->steps[i]);
            plan->flops += program ? program->cost.flops : 0;
        }
    }
}

tr_status tr__pass_traffic(tr_plan *plan, tr_error *err) {
    const tr_sequence *train = &plan->sequences[TR_SEQUENCE_TRAIN];
    (void)err;
    count_flops(plan);
    plan->model_flops = tr__count_model_flops(plan);
    // What may be done in one of two places is counted in the second.
    for (size_t i = 0; i < train->count; i++) {
        if (train->steps[i].guard != TR_GUARD_DEFERRED) {
            count_step(plan, &train->steps[i]);
        }
    }
    return TR_OK;
}

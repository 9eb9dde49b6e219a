// Operations as the literature counts those of a model.
#include "plan/flow/model_flops.h"

static tr_model_flops of_program(const tr_program *program) {
    tr_model_flops sum = {0, 0, 0, 0};
    for (size_t i = 0; i < program->count && !program->exchange; i++) {
        const tr_instruction *at = &program->instructions[i];
        tr_cost cost = {0};
        if (at->kernel->cost) {
            at->kernel->cost(&at->desc, &cost);
        }
        *(at->again ? &sum.full_again : &sum.full) += cost.model + cost.unseen;
        *(at->again ? &sum.causal_again : &sum.causal) += cost.model;
    }
    return sum;
}

static void add(tr_model_flops *sum, const tr_model_flops *more) {
    sum->full += more->full;
    sum->causal += more->causal;
    sum->full_again += more->full_again;
    sum->causal_again += more->causal_again;
}

// Most steps of a variant run the same program as the last.
tr_model_flops tr__count_model_flops(const tr_plan *plan) {
    tr_model_flops sum = {0, 0, 0, 0}, known[TR_VARIANTS];
    const tr_program *of[TR_VARIANTS] = {NULL};
    const tr_sequence *train = &plan->sequences[TR_SEQUENCE_TRAIN];
    for (size_t i = 0; i < train->count; i++) {
        const tr_program *program = tr__payload_program(&train->steps[i]);
        if (!program) {
            continue;
        }
        tr_variant variant = program->variant;
        if (of[variant] != program) {
            of[variant] = program;
            known[variant] = of_program(program);
        }
        add(&sum, &known[variant]);
    }
    return sum;
}

tr_model_flops tr_plan_model_flops(const tr_plan *plan) {
    return plan ? plan->model_flops : (tr_model_flops){0, 0, 0, 0};
}

// Kernels of a plan, each on operands that lie where the step before would have left
// them: parameters, gradients and what is kept in memory, the rest in the cache.
#include "machine.h"

#include <string.h>

enum { COLD = 128 << 20 }; // more than a cache has

static size_t room(tr_tensor_desc desc) {
    return ((size_t)tr_tensor_bytes(desc) + BENCH_PAGE - 1) / BENCH_PAGE * BENCH_PAGE;
}

static bool is_cold(tr_place place) {
    return place == TR_PLACE_PARAM || place == TR_PLACE_PARAM_GRAD ||
           place == TR_PLACE_SAVED;
}

static void *place_of(bench *b, const tr_operand *operand, tr_tensor_desc desc,
                      size_t *warm_at) {
    size_t bytes = room(desc), at = *warm_at;
    if (operand->place == TR_PLACE_NONE) {
        return NULL;
    }
    if (desc.dtype == TR_I32) { // ids, targets
        return tr__arena_view(b->zeros, 0, bytes);
    }
    if (!is_cold(operand->place)) {
        *warm_at += bytes;
        return tr__arena_view(b->warm, at, bytes);
    }
    at = b->cold_at + bytes > b->cold_bytes ? 0 : b->cold_at;
    b->cold_at = at + bytes;
    return tr__arena_view(b->cold, at, bytes);
}

void bench_run_kernel(void *what) {
    const bench_launch *w = what;
    const tr_instruction *at = w->instruction;
    tr_run_context run = {.loss_seed = 1};
    tr_launch args = {.run = &run, .accumulate = at->desc.accumulate};
    size_t warm_at = 0;
    for (int i = 0; i < at->desc.in_count; i++) {
        args.in[i] = place_of(w->b, &at->in[i], at->desc.in[i], &warm_at);
    }
    for (int i = 0; i < at->desc.out_count; i++) {
        args.out[i] = place_of(w->b, &at->out[i], at->desc.out[i], &warm_at);
    }
    args.accumulate &= ~at->desc.fresh;
    args.workspace = tr__arena_view(w->b->warm, warm_at, 0);
    at->kernel->launch(&at->desc, at->state, &args);
}

static void note(bench *b, const char *name, double flops, double seconds) {
    int i = 0;
    while (i < b->op_count && strcmp(b->ops[i].name, name) != 0) {
        i++;
    }
    if (i == BENCH_OPS_MAX) {
        return;
    }
    b->op_count = i == b->op_count ? i + 1 : b->op_count;
    b->ops[i].name = name;
    b->ops[i].flops += flops;
    b->ops[i].seconds += seconds;
}

static void measure_program(bench *b, const tr_program *program) {
    for (size_t i = 0; i < program->count; i++) {
        const tr_instruction *at = &program->instructions[i];
        tr_cost cost = {0};
        if (at->kernel->cost) {
            at->kernel->cost(&at->desc, &cost);
        }
        if (cost.flops == 0) {
            continue;
        }
        bench_together(b);
        double seconds =
            bench_median(bench_run_kernel, &(bench_launch){b, at}) - b->launch;
        if (seconds > 0) {
            note(b, at->desc.op->name, cost.flops, seconds);
        }
    }
}

void bench_kernels(bench *b) {
    for (int u = 0; u < b->plan->unit_count; u++) {
        const tr_plan_unit *unit = &b->plan->units[u];
        for (int s = 0; unit->owns_program && s < unit->program->segments; s++) {
            measure_program(b, &unit->program->forward[s]);
            measure_program(b, &unit->program->backward[s]);
        }
    }
}

static size_t operands_room(const tr_program *program) {
    size_t most = 0;
    for (size_t i = 0; i < program->count; i++) {
        const tr_instruction *at = &program->instructions[i];
        size_t bytes = (size_t)program->temp_bytes;
        for (int k = 0; k < at->desc.in_count; k++) {
            bytes += room(at->desc.in[k]);
        }
        for (int k = 0; k < at->desc.out_count; k++) {
            bytes += room(at->desc.out[k]);
        }
        most = bytes > most ? bytes : most;
    }
    return most;
}

void bench_take_memory(bench *b) {
    tr_error err = {0};
    size_t most = 0;
    for (int u = 0; u < b->plan->unit_count; u++) {
        const tr_unit_program *unit = b->plan->units[u].program;
        for (int s = 0; s < unit->segments; s++) {
            size_t forward = operands_room(&unit->forward[s]);
            size_t backward = operands_room(&unit->backward[s]);
            most = forward > most ? forward : most;
            most = backward > most ? backward : most;
        }
    }
    b->cold_bytes = most + COLD;
    bench_check(tr__arena_create("warm", most, &b->warm, &err), &err);
    bench_check(tr__arena_create("zeros", most, &b->zeros, &err), &err);
    bench_check(tr__arena_create("cold", b->cold_bytes, &b->cold, &err), &err);
    bench_fill(b->warm, most);
    bench_fill(b->cold, b->cold_bytes);
}

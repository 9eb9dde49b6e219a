// Steps on flat buffers: gradients accumulated, their norms, the update.
#include "backend/cpu/half.h"
#include "exec/walk.h"
#include "plan/flat_launch.h"
#include "plan/residency.h"

static void *at_location(const tr_executor *ex, tr_location at) {
    char *memory = tr__memory(ex, at.buffer);
    return memory ? memory + at.offset : NULL;
}

static void launch_one(const tr_executor *ex, const tr_run_context *run,
                       const tr_flat_launch *flat) {
    tr_launch launch = {.run = run, .workspace = at_location(ex, flat->workspace)};
    for (int i = 0; i < flat->desc.in_count; i++) {
        launch.in[i] = at_location(ex, flat->in[i]);
    }
    for (int i = 0; i < flat->desc.out_count; i++) {
        launch.out[i] = at_location(ex, flat->out[i]);
    }
    launch.accumulate = flat->desc.accumulate;
    flat->kernel->launch(&flat->desc, NULL, &launch);
}

void tr__launch_flat(const tr_executor *ex, const tr_run_context *run,
                     const tr_plan_step *step) {
    tr_flat_launch launch;
    size_t next = 0;
    while (tr__flat_launch_next(ex->plan, step, &next, &launch)) {
        launch_one(ex, run, &launch);
    }
}

void tr__round_copy(const tr_executor *ex, const tr_flat *flat, int64_t first,
                    int64_t count) {
    bool here = !tr__copy_is_in_file(ex->plan, flat);
    if (tr__plan_is_half(ex->plan) && here && count > 0) {
        tr__half_narrow(
            ex->plan->request.compute, tr__kept_f32(ex, &flat->master, first), count,
            ex->plan->request.threads, tr__kept_param(ex, &flat->copy, first));
    }
}

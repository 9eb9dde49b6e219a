// Steps on flat buffers: gradients accumulated, their norms, the update.
#include "exec/walk.h"
#include "plan/flat_launch.h"

static void *at_location(const tr_executor *ex, tr_location at) {
    char *memory = tr__memory(ex, at.buffer);
    return memory ? memory + at.offset : NULL;
}

static void launch_one(const tr_executor *ex, tr_device_queue *queue,
                       const tr_run_context *run, const tr_flat_launch *flat) {
    tr_launch launch = {.run = run, .workspace = at_location(ex, flat->workspace)};
    for (int i = 0; i < flat->desc.in_count; i++) {
        launch.in[i] = at_location(ex, flat->in[i]);
    }
    for (int i = 0; i < flat->desc.out_count; i++) {
        launch.out[i] = at_location(ex, flat->out[i]);
    }
    launch.accumulate = flat->desc.accumulate;
    tr__launch_kernel(ex, queue,
                      &(tr_device_work){.kernel = flat->kernel,
                                        .desc = &flat->desc,
                                        .launch = &launch});
}

void tr__launch_flat(const tr_executor *ex, tr_device_queue *queue,
                     const tr_run_context *run, const tr_plan_step *step) {
    tr_flat_launch launch;
    size_t next = 0;
    while (tr__flat_launch_next(ex->plan, step, &next, &launch)) {
        launch_one(ex, queue, run, &launch);
    }
}

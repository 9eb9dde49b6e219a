// Steps on flat buffers: gradients accumulated, their norms, the update.
#include "exec/walk.h"
#include "ops/cast/cast.h"
#include "plan/flat_launch.h"
#include "plan/residency.h"

#include <string.h>

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
    tr__backend_launch(ex->backend, flat->kernel, &flat->desc, NULL, &launch);
}

void tr__launch_flat(const tr_executor *ex, const tr_run_context *run,
                     const tr_plan_step *step) {
    tr_flat_launch launch;
    size_t next = 0;
    while (tr__flat_launch_next(ex->plan, step, &next, &launch)) {
        launch_one(ex, run, &launch);
    }
}

// Rounding is the cast of these elements, by the kernels of units (not the plain ones,
// which need working memory for it).
static tr_op_desc rounding(const tr_plan *plan, int64_t count) {
    tr_shape shape = {.rank = 1, .dim = {count}};
    tr_cast_attr attr = {(int32_t)plan->request.compute};
    tr_op_desc desc = {.op = &tr__op_cast,
                       .in_count = 1,
                       .out_count = 1,
                       .in = {{TR_F32, shape}},
                       .out = {{plan->request.compute, shape}},
                       .target = plan->target};
    desc.target.level = desc.target.level < 0 ? 0 : desc.target.level;
    memcpy(desc.attr, &attr, sizeof attr);
    return desc;
}

void tr__round_copy(const tr_executor *ex, const tr_flat *flat, int64_t first,
                    int64_t count) {
    if (tr__plan_is_half(ex->plan) && !tr__copy_is_in_file(ex->plan, flat) &&
        count > 0) {
        tr_run_context run = {0};
        tr_op_desc desc = rounding(ex->plan, count);
        tr_launch launch = {.in = {tr__kept_f32(ex, &flat->master, first)},
                            .out = {tr__kept_param(ex, &flat->copy, first)},
                            .run = &run};
        tr__backend_launch(ex->backend, tr__kernel_find(&desc), &desc, NULL, &launch);
    }
}

#include "backend/cpu/half.h"
#include "ops/flat/cast/cast.h"

extern const tr_kernel tr__cast_kernel;

// One of the two is f32; what is added to goes the longer way (tr__widened).
static bool supports(const tr_op_desc *desc) {
    bool narrows = desc->in[0].dtype == TR_F32;
    tr_dtype other = narrows ? desc->out[0].dtype : desc->in[0].dtype;
    bool widens = desc->out[0].dtype == TR_F32;
    return tr__dtype_is_half(other) && narrows != widens && !(desc->accumulate & 1);
}

static void launch_cast(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    int64_t count = tr_shape_count(desc->in[0].shape);
    if (desc->in[0].dtype == TR_F32) {
        tr__half_narrow(desc->out[0].dtype, launch->in[0], count, desc->target.workers,
                        launch->out[0]);
    } else {
        tr__half_widen(desc->in[0].dtype, launch->in[0], count, desc->target.workers,
                       launch->out[0]);
    }
}

const tr_kernel tr__cast_kernel = {
    .name = "cast.cpu",
    .supports = supports,
    .cost = tr__cast_cost,
    .launch = launch_cast,
};

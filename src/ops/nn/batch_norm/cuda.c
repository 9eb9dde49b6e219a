#include "ops/nn/batch_norm/cuda.h"

#include "backend/cuda/kernels.h"
#include "base/checked.h"
#include "base/half.h"
#include "ops/nn/batch_norm/operands.h"

extern const tr_cuda_kernels tr__cuda_kernels_batch_norm[];
extern tr_cuda_function tr__cuda_function_batch_stat_parts;
extern tr_cuda_function tr__cuda_function_batch_stat;
extern tr_cuda_function tr__cuda_function_batch_track;
extern tr_cuda_function tr__cuda_function_batch_norm;
extern tr_cuda_function tr__cuda_function_batch_norm_backward;
extern tr_cuda_function tr__cuda_function_batch_norm_sums;
extern tr_cuda_function tr__cuda_function_batch_slope;

enum { PARTS_MOST = 256, PART_LEAST = 128 }; // parts of the pixels; pixels of one

static tr_cuda_pixels pixels_of(tr_tensor_desc x, int64_t pixels) {
    int64_t part = tr__ceil_div(tr__pixels(x.shape), PARTS_MOST);
    return (tr_cuda_pixels){.pixels = pixels,
                            .channels = tr__shape_width(x.shape),
                            .part = tr__max_i64(part, PART_LEAST),
                            .real = (int32_t)x.dtype};
}

static int64_t parts_of(const tr_cuda_pixels *s) {
    return tr__ceil_div(s->pixels, s->part);
}

static tr_cuda_grid pixel_grid(const tr_cuda_pixels *s) {
    return tr__cuda_columns(s->channels, parts_of(s));
}

// Of the two sums of each part; x: an image of the op.
static size_t parts_bytes(tr_tensor_desc x) {
    tr_cuda_pixels s = pixels_of(x, tr__pixels(x.shape));
    return (size_t)(parts_of(&s) * 2 * s.channels) * sizeof(double);
}

// ---- statistics

static size_t stat_workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    return parts_bytes(desc->in[0]);
}

static void launch_stat(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    int64_t there = tr__pixels_there(launch, desc->in[0].shape);
    tr_cuda_batch_stat_args args = {.s = pixels_of(desc->in[0], there),
                                    .x = launch->in[0],
                                    .parts = launch->workspace,
                                    .stat = launch->out[0],
                                    .other =
                                        desc->out_count > 1 ? launch->out[1] : NULL,
                                    .add_stat = launch->accumulate & 1,
                                    .add_other = launch->accumulate >> 1 & 1};
    args.part_count = parts_of(&args.s);
    tr__cuda_launch(launch, &tr__cuda_function_batch_stat_parts, pixel_grid(&args.s),
                    &args, sizeof args);
    tr__cuda_launch(launch, &tr__cuda_function_batch_stat,
                    tr__cuda_each(args.s.channels), &args, sizeof args);
}

static void launch_slope(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_shape shape = desc->in[1].shape;
    tr_cuda_batch_slope_args args = {.s = pixels_of(desc->in[1], tr__pixels(shape)),
                                     .there = tr__pixels_there(launch, shape),
                                     .dstat = launch->in[0],
                                     .x = launch->in[1],
                                     .stat = launch->in[2],
                                     .dx = launch->out[0],
                                     .add = launch->accumulate & 1};
    tr__cuda_launch(launch, &tr__cuda_function_batch_slope, pixel_grid(&args.s), &args,
                    sizeof args);
}

static void launch_track(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_batch_stat_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    tr_cuda_batch_track_args args = {.channels = tr__shape_width(desc->in[0].shape),
                                     .stat = launch->in[0],
                                     .mean = launch->out[0],
                                     .variance = launch->out[1],
                                     .tracked = launch->out[2],
                                     .momentum = attr.momentum};
    tr__cuda_launch(launch, &tr__cuda_function_batch_track,
                    tr__cuda_each(args.channels), &args, sizeof args);
}

// ---- the batch normalized

static void launch_norm(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_batch_norm_attr attr = tr__batch_norm_attr(desc);
    bool residual = desc->in_count > 4 && desc->in[4].dtype != TR_NONE;
    tr_shape shape = desc->in[0].shape;
    tr_cuda_batch_norm_args args = {.s = pixels_of(desc->in[0], tr__pixels(shape)),
                                    .x = launch->in[0],
                                    .stat = launch->in[1],
                                    .weight = launch->in[2],
                                    .bias = launch->in[3],
                                    .residual = residual ? launch->in[4] : NULL,
                                    .mean = attr.running ? launch->in[5] : NULL,
                                    .variance = attr.running ? launch->in[6] : NULL,
                                    .y = launch->out[0],
                                    .epsilon = attr.epsilon,
                                    .relu = attr.relu,
                                    .add = launch->accumulate & 1};
    tr__cuda_launch(launch, &tr__cuda_function_batch_norm, pixel_grid(&args.s), &args,
                    sizeof args);
}

static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    (void)state;
    uint32_t add = launch->accumulate;
    tr_cuda_batch_norm_backward_args args = {
        .s = pixels_of(desc->in[0], tr__pixels(desc->in[0].shape)),
        .dy = launch->in[0],
        .x = launch->in[1],
        .y = desc->in[2].dtype != TR_NONE ? launch->in[2] : NULL,
        .stat = launch->in[3],
        .weight = launch->in[4],
        .parts = launch->workspace,
        .dx = launch->out[0],
        .dresidual = launch->out[1],
        .dstat = launch->out[2],
        .dweight = launch->out[3],
        .dbias = launch->out[4],
        .epsilon = tr__batch_norm_attr(desc).epsilon,
        .add_dx = add & 1,
        .add_dresidual = add >> 1 & 1,
        .add_dstat = add >> 2 & 1,
        .add_dweight = add >> 3 & 1,
        .add_dbias = add >> 4 & 1,
    };
    args.part_count = parts_of(&args.s);
    tr__cuda_launch(launch, &tr__cuda_function_batch_norm_backward, pixel_grid(&args.s),
                    &args, sizeof args);
    if (args.dstat || args.dweight || args.dbias) {
        tr__cuda_launch(launch, &tr__cuda_function_batch_norm_sums,
                        tr__cuda_each(args.s.channels), &args, sizeof args);
    }
}

// ---- what they support and need

// x: of the op's inputs
static bool fits(const tr_op_desc *desc, int x) {
    tr_dtype real = desc->in[x].dtype;
    return tr__dtype_is_real(real) && tr__statistic_supports_real(desc, real);
}

static bool supports(const tr_op_desc *desc) {
    return fits(desc, 0);
}

static bool supports_slope(const tr_op_desc *desc) {
    return fits(desc, 1);
}

static bool supports_track(const tr_op_desc *desc) {
    return desc->in[0].dtype == TR_F64;
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 5, out);
}

static const tr_kernel stat = {.name = "batch_stat.cuda",
                               .supports = supports,
                               .cost = cost,
                               .workspace = stat_workspace,
                               .launch = launch_stat};
static const tr_kernel slope = {.name = "batch_stat_backward.cuda",
                                .supports = supports_slope,
                                .cost = cost,
                                .launch = launch_slope};
static const tr_kernel track = {.name = "batch_track.cuda",
                                .supports = supports_track,
                                .cost = cost,
                                .launch = launch_track};
static const tr_kernel norm = {.name = "batch_norm.cuda",
                               .supports = supports,
                               .cost = cost,
                               .launch = launch_norm};
static const tr_kernel backward = {.name = "batch_norm_backward.cuda",
                                   .supports = supports,
                                   .cost = cost,
                                   .workspace = stat_workspace,
                                   .launch = launch_backward};

const tr_cuda_kernels tr__cuda_kernels_batch_norm[] = {
    {&tr__op_batch_stat, &stat},
    {&tr__op_batch_stat_own, &stat},
    {&tr__op_batch_stat_rank, &stat},
    {&tr__op_batch_stat_backward, &slope},
    {&tr__op_batch_track, &track},
    {&tr__op_batch_norm, &norm},
    {&tr__op_batch_norm_backward, &backward},
    {NULL, NULL},
};

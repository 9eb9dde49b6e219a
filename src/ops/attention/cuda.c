#include "ops/attention/cuda.h"

#include "backend/cuda/kernels.h"
#include "ops/attention/sizes.h"
#include "ops/operand.h"

#include <math.h>

extern const tr_cuda_kernels tr__cuda_kernels_attention[];
extern tr_cuda_function tr__cuda_function_attend;
extern tr_cuda_function tr__cuda_function_attend_queries_backward;
extern tr_cuda_function tr__cuda_function_attend_keys_backward;

static tr_cuda_attention attention_of(const tr_op_desc *desc, const tr_launch *launch,
                                      int qkv, int positions) {
    tr_attention_sizes s = tr__attention_sizes(desc->in[qkv].shape, desc->attr);
    return (tr_cuda_attention){
        .batch = s.batch,
        .context = s.context,
        .heads = s.heads,
        .depth = s.depth,
        .group = s.group,
        .pairs = s.pairs,
        .width = s.width,
        .pitch = s.pitch,
        .keys = s.keys,
        .values = s.values,
        .window = s.window,
        .scale = (float)(1 / sqrt((double)s.depth)),
        .dropout = s.dropout,
        .draw_id = s.draw_id,
        .down = tr__ceil_div(s.context, TR_DRAW_ROWS),
        .across = tr__ceil_div(s.context, TR_DRAW_LANES),
        .run = *launch->run,
        .real = (int32_t)desc->in[qkv].dtype,
        .qkv = launch->in[qkv],
        .positions = launch->in[positions],
    };
}

// A warp for each token of each head.
static tr_cuda_grid grid_of(const tr_cuda_attention *a, int64_t heads) {
    return (tr_cuda_grid){{a->context, heads, a->batch}, {TR_CUDA_LANES, 1, 1}};
}

static void launch_attention(const tr_op_desc *desc, void *state,
                             const tr_launch *launch) {
    (void)state;
    tr_cuda_attend_args args = {.of = attention_of(desc, launch, 0, 1),
                                .y = launch->out[0],
                                .lse = launch->out[1],
                                .add_y = launch->accumulate & 1,
                                .add_lse = launch->accumulate >> 1 & 1};
    tr__cuda_launch(launch, &tr__cuda_function_attend, grid_of(&args.of, args.of.heads),
                    &args, sizeof args);
}

static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    (void)state;
    tr_cuda_attend_backward_args args = {.of = attention_of(desc, launch, 1, 4),
                                         .dy = launch->in[0],
                                         .y = launch->in[2],
                                         .lse = launch->in[3],
                                         .dqkv = launch->out[0],
                                         .add = launch->accumulate & 1};
    tr__cuda_launch(launch, &tr__cuda_function_attend_queries_backward,
                    grid_of(&args.of, args.of.heads), &args, sizeof args);
    tr__cuda_launch(launch, &tr__cuda_function_attend_keys_backward,
                    grid_of(&args.of, args.of.pairs), &args, sizeof args);
}

static bool fits(const tr_op_desc *desc, int qkv) {
    return tr__attention_sizes(desc->in[qkv].shape, desc->attr).depth <=
           TR_CUDA_DEPTH_MAX;
}

// lse is f32.
static bool supports(const tr_op_desc *desc) {
    return tr__desc_same_real(desc, 0, 1 << 1) && fits(desc, 0);
}

static bool supports_backward(const tr_op_desc *desc) {
    return tr__desc_same_real(desc, 1 << 3, 0) && fits(desc, 1);
}

static const tr_kernel attention = {.name = "attention.cuda",
                                    .supports = supports,
                                    .cost = tr__attention_cost,
                                    .launch = launch_attention};
static const tr_kernel backward = {.name = "attention_backward.cuda",
                                   .supports = supports_backward,
                                   .cost = tr__attention_backward_cost,
                                   .launch = launch_backward};

const tr_cuda_kernels tr__cuda_kernels_attention[] = {
    {&tr__op_attention, &attention},
    {&tr__op_attention_backward, &backward},
    {NULL, NULL},
};

#include "ops/nn/rope/cuda.h"

#include "backend/cuda/kernels.h"
#include "ops/nn/positions.h"
#include "ops/nn/rope/rope.h"
#include "ops/operand.h"

#include <math.h>
#include <string.h>

extern const tr_cuda_kernels tr__cuda_kernels_rope[];
extern tr_cuda_function tr__cuda_function_rope;
extern tr_cuda_function tr__cuda_function_rope_pass;

static tr_rope_attr attr_of(const tr_op_desc *desc) {
    tr_rope_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    return attr;
}

static void turn(const tr_op_desc *desc, const tr_launch *launch, float direction) {
    tr_rope_attr attr = attr_of(desc);
    tr_shape shape = desc->in[0].shape; // [B, S, W]
    tr_cuda_rope_args args = {.rows = shape.dim[0] * shape.dim[1],
                              .context = shape.dim[1],
                              .width = shape.dim[2],
                              .depth = attr.depth,
                              .heads = attr.heads,
                              .position = launch->run->position,
                              .positions = tr__launch_positions(desc, launch, 1),
                              .x = launch->in[0],
                              .y = launch->out[0],
                              .real = (int32_t)desc->in[0].dtype,
                              .add = launch->accumulate & 1,
                              .direction = direction};
    args.size = attr.scaling == TR_ROPE_YARN ? (float)attr.attention : 1;
    for (int64_t j = 0; j < args.depth / 2; j++) {
        args.frequency[j] = tr__rope_frequency(&attr, j) / (2 * M_PI);
    }
    int64_t rest = args.width - args.heads * args.depth;
    tr__cuda_launch(launch, &tr__cuda_function_rope,
                    tr__cuda_blocks(args.rows, TR_CUDA_ROPE_PAIRS), &args, sizeof args);
    if (rest > 0 && (args.add || args.x != args.y)) {
        tr__cuda_launch(launch, &tr__cuda_function_rope_pass,
                        tr__cuda_each(args.rows * rest), &args, sizeof args);
    }
}

static void launch_rope(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    turn(desc, launch, 1);
}

static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    (void)state;
    turn(desc, launch, -1);
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_same_real(desc, 0, 0) &&
           attr_of(desc).depth / 2 <= TR_CUDA_ROPE_PAIRS;
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 3, out);
}

static const tr_kernel rope = {
    .name = "rope.cuda", .supports = supports, .cost = cost, .launch = launch_rope};
static const tr_kernel backward = {.name = "rope_backward.cuda",
                                   .supports = supports,
                                   .cost = cost,
                                   .launch = launch_backward};

const tr_cuda_kernels tr__cuda_kernels_rope[] = {
    {&tr__op_rope, &rope},
    {&tr__op_rope_backward, &backward},
    {NULL, NULL},
};

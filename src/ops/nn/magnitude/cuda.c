#include "ops/nn/magnitude/cuda.h"

#include "backend/cuda/kernels.h"
#include "ops/nn/magnitude/magnitude.h"
#include "ops/operand.h"

extern const tr_cuda_kernels tr__cuda_kernels_magnitude[];
extern tr_cuda_function tr__cuda_function_magnitude;
extern tr_cuda_function tr__cuda_function_magnitude_gradient;

static void set_columns(const tr_magnitude_sizes *s, tr_cuda_magnitude_layer *layer) {
    for (int i = 0; i < s->attr.layers; i++) {
        layer[i].first = s->attr.first[i];
        layer[i].count = s->attr.count[i];
    }
}

static void launch_forward(const tr_op_desc *desc, void *state,
                           const tr_launch *launch) {
    tr_magnitude_sizes s = tr__magnitude_sizes(desc);
    tr_cuda_magnitude_args args = {.x = launch->in[0],
                                   .y = launch->out[0],
                                   .rows = s.rows,
                                   .width = s.width,
                                   .layers = s.attr.layers,
                                   .real = (int32_t)desc->in[0].dtype,
                                   .add = launch->accumulate & 1};
    (void)state;
    set_columns(&s, args.layer);
    for (int i = 0; i < s.attr.layers; i++) {
        args.layer[i].m = launch->in[1 + 2 * i];
        args.layer[i].squares = launch->in[2 + 2 * i];
    }
    tr__cuda_launch(launch, &tr__cuda_function_magnitude,
                    tr__cuda_each(s.rows * s.width), &args, sizeof args);
}

static void launch_gradient(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    tr_magnitude_sizes s = tr__magnitude_sizes(desc);
    tr_cuda_magnitude_gradient_args args = {.dy = launch->in[0],
                                            .x = launch->in[1],
                                            .rows = s.rows,
                                            .width = s.width,
                                            .layers = s.attr.layers,
                                            .real = (int32_t)desc->in[0].dtype};
    (void)state;
    set_columns(&s, args.layer);
    for (int i = 0; i < s.attr.layers; i++) {
        args.layer[i].squares = launch->in[TR_MAGNITUDE_S + i];
        args.layer[i].dm = launch->out[i];
        args.layer[i].add = launch->accumulate >> i & 1;
    }
    tr__cuda_launch(launch, &tr__cuda_function_magnitude_gradient,
                    tr__cuda_columns(s.width, 1), &args, sizeof args);
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_same_real(desc, TR_MAGNITUDE_PLAIN, 0);
}

static bool supports_gradient(const tr_op_desc *desc) {
    uint32_t all = ~0u;
    return tr__desc_same_real(desc, all << TR_MAGNITUDE_S, all);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 2, out);
}

static const tr_kernel forward = {.name = "magnitude.cuda",
                                  .supports = supports,
                                  .cost = cost,
                                  .launch = launch_forward};
static const tr_kernel gradient = {.name = "magnitude_gradient.cuda",
                                   .supports = supports_gradient,
                                   .cost = cost,
                                   .launch = launch_gradient};

const tr_cuda_kernels tr__cuda_kernels_magnitude[] = {
    {&tr__op_magnitude, &forward},
    {&tr__op_magnitude_gradient, &gradient},
    {NULL, NULL},
};

#include "ops/nn/row_norm/cuda.h"

#include "backend/cuda/kernels.h"
#include "base/half.h"
#include "ops/nn/row_norm/row_norm.h"
#include "ops/operand.h"

extern const tr_cuda_kernels tr__cuda_kernels_row_norm[];
extern tr_cuda_function tr__cuda_function_row_norm;

static void run(const tr_launch *launch, const tr_row_norm_sizes *s,
                tr_cuda_row_norm_args *args) {
    tr__cuda_launch(launch, &tr__cuda_function_row_norm,
                    tr__cuda_blocks(s->rows, TR_CUDA_THREADS), args, sizeof *args);
}

static void launch_norm(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    tr_row_norm_sizes s = tr__row_norm_sizes(desc);
    tr_cuda_row_norm_args args = {.w = launch->in[0],
                                  .a = launch->in[1],
                                  .b = launch->in[2],
                                  .n = launch->out[0],
                                  .first = s.attr.first,
                                  .in = s.in,
                                  .rank = s.rank,
                                  .all = s.all,
                                  .scale = s.attr.scale,
                                  .in_out = s.attr.in_out,
                                  .real = (int32_t)desc->in[1].dtype};
    (void)state;
    if (s.attr.kind != TR_QUANTIZED_NOT) {
        args.bits = tr__cuda_few_bits((int32_t)s.attr.kind,
                                      (const char *)launch->in[0] + s.attr.tensor,
                                      s.rows * s.in);
    }
    if (desc->packs && !launch->is_packed) {
        args.n = launch->packed;
        run(launch, &s, &args);
        args.n = launch->out[0];
    }
    args.kept = desc->packs ? launch->packed : NULL;
    args.add = launch->accumulate & 1;
    run(launch, &s, &args);
}

static size_t packed(const tr_op_desc *desc, const void *state) {
    (void)state;
    return (size_t)tr__row_norm_sizes(desc).rows * sizeof(float);
}

static bool supports(const tr_op_desc *desc) {
    tr_dtype real = desc->in[1].dtype;
    return tr__dtype_is_real(real) && tr__desc_real(desc, real, 0, 1 << 0);
}

static const tr_kernel norm = {.name = "row_norm.cuda",
                               .supports = supports,
                               .cost = tr__row_norm_cost,
                               .packed = packed,
                               .launch = launch_norm};

const tr_cuda_kernels tr__cuda_kernels_row_norm[] = {
    {&tr__op_row_norm, &norm},
    {NULL, NULL},
};

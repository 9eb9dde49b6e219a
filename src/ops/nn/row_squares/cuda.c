#include "ops/nn/row_squares/cuda.h"

#include "backend/cuda/kernels.h"
#include "base/half.h"
#include "ops/nn/row_squares/row_squares.h"
#include "ops/operand.h"

extern const tr_cuda_kernels tr__cuda_kernels_row_squares[];
extern tr_cuda_function tr__cuda_function_row_squares;

static void run(const tr_launch *launch, const tr_row_squares_sizes *s,
                tr_cuda_row_squares_args *args) {
    tr__cuda_launch(launch, &tr__cuda_function_row_squares,
                    tr__cuda_blocks(s->rows, TR_CUDA_THREADS), args, sizeof *args);
}

static void launch_squares(const tr_op_desc *desc, void *state,
                           const tr_launch *launch) {
    tr_row_squares_sizes s = tr__row_squares_sizes(desc);
    tr_cuda_row_squares_args args = {.w = launch->in[0],
                                     .a = launch->in[1],
                                     .b = launch->in[2],
                                     .out = launch->out[0],
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
        args.out = launch->packed;
        run(launch, &s, &args);
        args.out = launch->out[0];
    }
    args.kept = desc->packs ? launch->packed : NULL;
    args.add = launch->accumulate & 1;
    run(launch, &s, &args);
}

static size_t packed(const tr_op_desc *desc, const void *state) {
    (void)state;
    return (size_t)tr__row_squares_sizes(desc).rows * sizeof(float);
}

static bool supports(const tr_op_desc *desc) {
    tr_dtype real = desc->in[1].dtype;
    return tr__dtype_is_real(real) && tr__desc_real(desc, real, 0, 1 << 0);
}

static const tr_kernel squares = {.name = "row_squares.cuda",
                                  .supports = supports,
                                  .cost = tr__row_squares_cost,
                                  .packed = packed,
                                  .launch = launch_squares};

const tr_cuda_kernels tr__cuda_kernels_row_squares[] = {
    {&tr__op_row_squares, &squares},
    {NULL, NULL},
};

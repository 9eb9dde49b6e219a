#include "ops/flat/exact_sums/cuda.h"

#include "backend/cuda/kernels.h"
#include "base/checked.h"
#include "ops/flat/exact_sums/exact_sums.h"
#include "ops/operand.h"

extern const tr_cuda_kernels tr__cuda_kernels_exact_sums[];
extern tr_cuda_function tr__cuda_function_exact_sums, tr__cuda_function_exact_values;

static void flush(const tr_launch *launch, const tr_cuda_exact_sums_args *args,
                  int64_t *runs) {
    if (*runs > 0) {
        tr__cuda_launch(launch, &tr__cuda_function_exact_sums,
                        tr__cuda_blocks(*runs, TR_CUDA_THREADS), args, sizeof *args);
    }
    *runs = 0;
}

// A long run is several blocks'.
enum { BLOCK_PARTS = 64 * TR_CUDA_THREADS };

// One column of a run.
static void add_run(const tr_launch *launch, tr_cuda_exact_sums_args *args,
                    int64_t *runs, const tr_parts_run *run, int64_t column) {
    for (int64_t done = 0; done < run->count; done += BLOCK_PARTS) {
        int64_t left = run->count - done;
        args->runs[(*runs)++] =
            (tr_cuda_run){(run->first + done) * args->columns + column,
                          left < BLOCK_PARTS ? left : BLOCK_PARTS,
                          run->total * args->columns + column};
        if (*runs == TR_CUDA_RUNS) {
            flush(launch, args, runs);
        }
    }
}

static void launch_sums(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const tr_exact_sums_attr *attr = (const void *)desc->attr;
    int64_t runs = 0;
    tr_cuda_exact_sums_args args = {
        .parts = launch->in[0], .sums = launch->out[0], .columns = attr->columns};
    tr__cuda_clear(launch, launch->out[0], tr_tensor_bytes(desc->out[0]));
    for (int64_t i = 0; i < attr->count * attr->columns; i++) {
        add_run(launch, &args, &runs, &attr->runs[i / attr->columns],
                i % attr->columns);
    }
    flush(launch, &args, &runs);
}

static void launch_values(const tr_op_desc *desc, void *state,
                          const tr_launch *launch) {
    (void)state;
    tr_cuda_exact_values_args args = {.sums = launch->in[0],
                                      .values = launch->out[0],
                                      .count = tr_shape_count(desc->out[0].shape)};
    int64_t blocks = tr__ceil_div(args.count, TR_CUDA_LANES);
    tr__cuda_launch(launch, &tr__cuda_function_exact_values,
                    tr__cuda_blocks(blocks, TR_CUDA_LANES), &args, sizeof args);
}

static bool supports_sums(const tr_op_desc *desc) {
    return desc->in[0].dtype == TR_F64 && desc->out[0].dtype == TR_I64;
}

static bool supports_values(const tr_op_desc *desc) {
    return desc->in[0].dtype == TR_I64 && desc->out[0].dtype == TR_F64;
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 0, out);
}

static const tr_kernel sums = {.name = "exact_sums.cuda",
                               .supports = supports_sums,
                               .cost = cost,
                               .launch = launch_sums};
static const tr_kernel values = {.name = "exact_values.cuda",
                                 .supports = supports_values,
                                 .cost = cost,
                                 .launch = launch_values};

const tr_cuda_kernels tr__cuda_kernels_exact_sums[] = {
    {&tr__op_exact_sums, &sums},
    {&tr__op_exact_values, &values},
    {NULL, NULL},
};

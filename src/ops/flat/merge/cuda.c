#include "ops/flat/merge/cuda.h"

#include "backend/cuda/kernels.h"
#include "ops/flat/merge/merge.h"
#include "ops/nn/batch_norm/batch_norm.h"

extern const tr_cuda_kernels tr__cuda_kernels_merge[];
extern tr_cuda_function tr__cuda_function_merge;
extern tr_cuda_function tr__cuda_function_pack;

static const void *column(const tr_op_desc *desc, const tr_launch *launch,
                          int64_t first) {
    size_t bytes = tr_dtype_bytes(desc->in[0].dtype);
    return (const char *)launch->in[0] + (size_t)first * bytes;
}

// Parts that the op merges by a rule of its own: statistics are the only ones.
static bool are_statistics(const tr_merge_attr *attr) {
    return attr->of && attr->of->merge && attr->of->merge == tr__op_batch_stat.merge;
}

static void launch_merge(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const tr_merge_attr *attr = (const void *)desc->attr;
    bool wide = desc->out[0].dtype == TR_F64;
    tr_cuda_merge_args args = {.parts = column(desc, launch, attr->first),
                               .to = launch->out[0],
                               .rows = desc->in[0].shape.dim[0],
                               .width = desc->in[0].shape.dim[1],
                               .count = tr_shape_count(attr->shape),
                               .how = are_statistics(attr) ? TR_CUDA_MERGE_STATISTICS
                                      : wide               ? TR_CUDA_MERGE_F64
                                                           : TR_CUDA_MERGE_F32,
                               .add = launch->accumulate & 1};
    tr__cuda_launch(launch, &tr__cuda_function_merge, tr__cuda_each(args.count), &args,
                    sizeof args);
}

static bool supports_merge(const tr_op_desc *desc) {
    const tr_merge_attr *attr = (const void *)desc->attr;
    tr_dtype dtype = desc->out[0].dtype;
    bool own = attr->of && attr->of->merge;
    return dtype == desc->in[0].dtype && (own ? are_statistics(attr) && dtype == TR_F64
                                              : dtype == TR_F32 || dtype == TR_F64);
}

static void launch_pack(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const tr_pack_attr *attr = (const void *)desc->attr;
    tr_cuda_pack_args args = {.from = column(desc, launch, attr->first),
                              .to = launch->out[0],
                              .rows = desc->in[0].shape.dim[0],
                              .width = desc->in[0].shape.dim[1],
                              .count = attr->count,
                              .bytes = (int32_t)tr_dtype_bytes(desc->in[0].dtype)};
    tr__cuda_launch(launch, &tr__cuda_function_pack,
                    tr__cuda_each(args.rows * args.count), &args, sizeof args);
}

static bool supports_pack(const tr_op_desc *desc) {
    return desc->out[0].dtype == desc->in[0].dtype &&
           tr_dtype_bytes(desc->in[0].dtype) >= 4;
}

static void cost_merge(const tr_op_desc *desc, tr_cost *out) {
    tr__op_merge.reference->cost(desc, out);
}

static void cost_pack(const tr_op_desc *desc, tr_cost *out) {
    tr__op_pack.reference->cost(desc, out);
}

static const tr_kernel merge = {.name = "merge.cuda",
                                .supports = supports_merge,
                                .cost = cost_merge,
                                .launch = launch_merge};
static const tr_kernel pack = {.name = "pack.cuda",
                               .supports = supports_pack,
                               .cost = cost_pack,
                               .launch = launch_pack};

const tr_cuda_kernels tr__cuda_kernels_merge[] = {
    {&tr__op_merge, &merge},
    {&tr__op_pack, &pack},
    {NULL, NULL},
};

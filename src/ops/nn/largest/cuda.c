#include "ops/nn/largest/cuda.h"

#include "ops/flat/copy/cuda_copy.h"
#include "ops/nn/largest/largest.h"
#include "ops/nn/linear_fp8/cuda_search.h"
#include "ops/operand.h"

extern const tr_cuda_kernels tr__cuda_kernels_largest[];
extern tr_cuda_function tr__cuda_function_gather_largest;

static int64_t parts_of(const tr_op_desc *desc) {
    return tr__cuda_fp8_parts(tr_shape_count(desc->in[0].shape));
}

static size_t workspace(const tr_op_desc *desc, const void *state) {
    int64_t parts = parts_of(desc);
    (void)state;
    return parts > 1 ? (size_t)parts * sizeof(uint32_t) : 0;
}

static size_t packed(const tr_op_desc *desc, const void *state) {
    (void)desc;
    (void)state;
    return sizeof(float);
}

static void search(const tr_launch *launch, const void *x, tr_dtype real, int64_t count,
                   int64_t blocks, void *to) {
    const tr_cuda_fp8_largest_args args = {
        .x = x, .count = count, .parts = to, .real = (int32_t)real};
    tr__cuda_fp8_search(launch, &args, blocks);
}

// What blocks have found is searched by one: bits of absolute values are those of
// floats.
static void find(const tr_op_desc *desc, const tr_launch *launch, void *to) {
    int64_t parts = parts_of(desc), there = tr__largest_there(desc, launch);
    void *found = parts > 1 ? launch->workspace : to;
    search(launch, launch->in[0], desc->in[0].dtype, there, parts, found);
    if (parts > 1) {
        search(launch, found, TR_F32, parts, 1, to);
    }
}

static void launch_find(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    if (!desc->packs || !launch->is_packed) {
        find(desc, launch, desc->packs ? launch->packed : launch->out[0]);
    }
    if (desc->packs) {
        tr__cuda_copy(launch, (tr_cuda_copy_args){.x = launch->packed,
                                                  .y = launch->out[0],
                                                  .count = 1,
                                                  .real = (int32_t)TR_F32});
    }
}

static bool supports(const tr_op_desc *desc) {
    tr_dtype real = desc->in[0].dtype;
    return real == TR_F32 || real == TR_BF16 || real == TR_F16;
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    *(desc->packs ? &out->pack : &out->bytes) += (double)tr_tensor_bytes(desc->in[0]);
    out->launches = desc->packs ? 0 : parts_of(desc) > 1;
}

static void launch_put(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_cuda_gather_largest_args args = {.to = (float *)launch->out[0] +
                                              tr__gather_largest_first(desc),
                                        .count = desc->in_count};
    for (int i = 0; i < desc->in_count; i++) {
        args.in[i] = launch->in[i];
    }
    tr__cuda_launch(launch, &tr__cuda_function_gather_largest,
                    tr__cuda_blocks(1, TR_CUDA_LANES), &args, sizeof args);
}

static void cost_put(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 0, out);
}

static const tr_kernel finds = {.name = "largest.cuda",
                                .supports = supports,
                                .cost = cost,
                                .workspace = workspace,
                                .packed = packed,
                                .launch = launch_find};

static const tr_kernel gathers = {.name = "gather_largest.cuda",
                                  .supports = tr__desc_f32,
                                  .cost = cost_put,
                                  .launch = launch_put};

const tr_cuda_kernels tr__cuda_kernels_largest[] = {
    {&tr__op_largest, &finds},
    {&tr__op_gather_largest, &gathers},
    {NULL, NULL},
};

#include "ops/nn/embedding/cuda.h"

#include "backend/cuda/kernels.h"
#include "base/half.h"
#include "ops/nn/embedding/support.h"

extern const tr_cuda_kernels tr__cuda_kernels_embedding[];
extern tr_cuda_function tr__cuda_function_embed;
extern tr_cuda_function tr__cuda_function_embed_tokens_backward;
extern tr_cuda_function tr__cuda_function_embed_positions_backward;

// Input `ids` holds them; the tables follow.
static tr_cuda_embedding embedding_of(const tr_op_desc *desc, const tr_launch *launch,
                                      int ids) {
    tr_embedding_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    tr_shape shape = desc->in[ids].shape, table = desc->in[ids + 1].shape;
    bool placed = desc->in_count > ids + 2 && desc->in[ids + 2].dtype != TR_NONE;
    return (tr_cuda_embedding){
        .rows = tr_shape_count(shape),
        .length = shape.dim[1],
        .width = table.dim[1],
        .tokens = table.dim[0],
        .first = attr.first,
        .positions = placed ? desc->in[ids + 2].shape.dim[0] : 0,
        .position = launch->run->position,
        .ids = launch->in[ids],
        .places = launch->in[4],
    };
}

static void launch_embedding(const tr_op_desc *desc, void *state,
                             const tr_launch *launch) {
    (void)state;
    tr_cuda_embed_args args = {.of = embedding_of(desc, launch, 0),
                               .wte = launch->in[1],
                               .wpe = tr__embedding_adds_positions(desc) ? launch->in[2]
                                                                         : NULL,
                               .before = launch->in[3],
                               .y = launch->out[0],
                               .real = (int32_t)desc->in[1].dtype,
                               .add = launch->accumulate & 1};
    tr__cuda_launch(launch, &tr__cuda_function_embed,
                    tr__cuda_vectors(args.of.rows * args.of.width), &args, sizeof args);
}

static void add_by_id(const tr_launch *launch, tr_cuda_embed_backward_args args) {
    int64_t count = args.of.tokens * args.of.width;
    if (!args.add) {
        tr__cuda_clear(launch, args.dtable, count * (int64_t)sizeof(float));
    }
    tr__cuda_launch(launch, &tr__cuda_function_embed_tokens_backward,
                    tr__cuda_blocks(args.of.rows, TR_CUDA_THREADS), &args, sizeof args);
}

// Places that are one after the other are counted; others are ids of another table.
static void add_to_positions(const tr_launch *launch,
                             tr_cuda_embed_backward_args args) {
    if (args.of.places) {
        args.of.ids = args.of.places;
        args.of.tokens = args.of.positions;
        args.of.first = 0;
        add_by_id(launch, args);
        return;
    }
    tr__cuda_launch(launch, &tr__cuda_function_embed_positions_backward,
                    tr__cuda_each(args.of.positions * args.of.width), &args,
                    sizeof args);
}

static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    (void)state;
    tr_cuda_embed_backward_args args = {.of = embedding_of(desc, launch, 1),
                                        .dy = launch->in[0],
                                        .real = (int32_t)desc->in[0].dtype};
    if (launch->out[0]) {
        args.dtable = launch->out[0];
        args.add = launch->accumulate & 1;
        add_by_id(launch, args);
    }
    if (launch->out[1]) {
        args.dtable = launch->out[1];
        args.add = launch->accumulate >> 1 & 1;
        add_to_positions(launch, args);
    }
}

static bool supports(const tr_op_desc *desc) {
    tr_dtype real = desc->in[1].dtype;
    return tr__dtype_is_real(real) && tr__embedding_supports(desc, 0, real);
}

static bool supports_backward(const tr_op_desc *desc) {
    tr_dtype real = desc->in[0].dtype;
    return tr__dtype_is_real(real) && tr__embedding_supports(desc, 1, real);
}

static const tr_kernel embedding = {.name = "embedding.cuda",
                                    .supports = supports,
                                    .cost = tr__embedding_cost,
                                    .launch = launch_embedding};
static const tr_kernel backward = {.name = "embedding_backward.cuda",
                                   .supports = supports_backward,
                                   .cost = tr__embedding_backward_cost,
                                   .launch = launch_backward};

const tr_cuda_kernels tr__cuda_kernels_embedding[] = {
    {&tr__op_embedding, &embedding},
    {&tr__op_embedding_backward, &backward},
    {NULL, NULL},
};

#include "ops/embedding/cuda.h"

#include "backend/cuda/kernels.h"
#include "ops/embedding/support.h"

extern const tr_cuda_kernels tr__cuda_kernels_embedding[];

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
    tr_cuda_embed(embedding_of(desc, launch, 0), launch->in[1], launch->in[2],
                  launch->in[3], launch->out[0], launch->accumulate & 1, launch->queue);
}

static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    (void)state;
    tr_cuda_embedding e = embedding_of(desc, launch, 1);
    if (launch->out[0]) {
        if (!(launch->accumulate & 1)) {
            tr__cuda_clear(launch, launch->out[0],
                           e.tokens * e.width * (int64_t)sizeof(float));
        }
        tr_cuda_embed_tokens_backward(e, launch->in[0], launch->out[0], launch->queue);
    }
    if (launch->out[1]) {
        tr_cuda_embed_positions_backward(e, launch->in[0], launch->out[1],
                                         launch->accumulate & 2, launch->queue);
    }
}

static bool supports(const tr_op_desc *desc) {
    return tr__embedding_supports(desc, 0, TR_F32);
}

static bool supports_backward(const tr_op_desc *desc) {
    return tr__embedding_supports(desc, 1, TR_F32);
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

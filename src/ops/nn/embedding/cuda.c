#include "ops/nn/embedding/cuda.h"

#include "backend/cuda/kernels.h"
#include "base/checked.h"
#include "base/half.h"
#include "ops/nn/embedding/support.h"

extern const tr_cuda_kernels tr__cuda_kernels_embedding[];
extern tr_cuda_function tr__cuda_function_embed;
extern tr_cuda_function tr__cuda_function_embed_sort;
extern tr_cuda_function tr__cuda_function_embed_merge;
extern tr_cuda_function tr__cuda_function_embed_runs;
extern tr_cuda_function tr__cuda_function_embed_tokens_backward;
extern tr_cuda_function tr__cuda_function_embed_join;
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
        .padding = attr.padding,
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

// What sorting takes beside the sums of parts: keys twice, and where runs of ids are.
static size_t order_bytes(int64_t rows) {
    size_t each = 2 * sizeof(uint64_t) + sizeof(tr_cuda_embed_run);
    return (size_t)tr__round_up(rows * (int64_t)each, 64);
}

// Tables whose rows are found by id.
static int tables_by_id(const tr_op_desc *desc) {
    bool placed = desc->in_count > 4 && desc->in[4].dtype != TR_NONE;
    bool places = placed && desc->out[1].dtype != TR_NONE;
    return (desc->out[0].dtype != TR_NONE) + places;
}

static size_t backward_workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    int64_t rows = tr_shape_count(desc->in[1].shape);
    int64_t parts = tr__ceil_div(rows, TR_CUDA_EMBED_PART);
    size_t sums = (size_t)(parts * desc->in[2].shape.dim[1]) * sizeof(float);
    return tables_by_id(desc) > 0 ? order_bytes(rows) + sums : 0;
}

// Launches that merge runs until one is left.
static int merges(int64_t rows) {
    int count = 0;
    for (int64_t run = TR_CUDA_THREADS; run < rows; run *= TR_CUDA_EMBED_WAYS) {
        count++;
    }
    return count;
}

static void sort_by_id(const tr_launch *launch, tr_cuda_embed_backward_args *args) {
    int64_t rows = args->of.rows;
    uint64_t *sorted = launch->workspace, *other = sorted + rows;
    tr_cuda_embed_order_args order = {.ids = args->of.ids,
                                      .to = sorted,
                                      .rows = rows,
                                      .run = TR_CUDA_THREADS,
                                      .runs = (tr_cuda_embed_run *)(other + rows)};
    tr__cuda_launch(
        launch, &tr__cuda_function_embed_sort,
        tr__cuda_blocks(tr__ceil_div(rows, TR_CUDA_THREADS), TR_CUDA_THREADS), &order,
        sizeof order);
    for (int left = merges(rows); left > 0; left--) {
        order.from = order.to;
        order.to = order.to == sorted ? other : sorted;
        tr__cuda_launch(launch, &tr__cuda_function_embed_merge, tr__cuda_each(rows),
                        &order, sizeof order);
        order.run *= TR_CUDA_EMBED_WAYS;
    }
    order.from = order.to;
    tr__cuda_launch(launch, &tr__cuda_function_embed_runs, tr__cuda_each(rows), &order,
                    sizeof order);
    args->order = order.from;
    args->runs = order.runs;
    args->parts = (float *)((char *)launch->workspace + order_bytes(rows));
}

static void add_by_id(const tr_launch *launch, tr_cuda_embed_backward_args args) {
    int64_t count = args.of.tokens * args.of.width;
    tr_cuda_grid grid = tr__cuda_vectors(args.of.rows * args.of.width);
    if (!args.add) {
        tr__cuda_clear(launch, args.dtable, count * (int64_t)sizeof(float));
    }
    sort_by_id(launch, &args);
    tr__cuda_launch(launch, &tr__cuda_function_embed_tokens_backward, grid, &args,
                    sizeof args);
    if (args.of.rows > TR_CUDA_EMBED_PART) {
        tr__cuda_launch(launch, &tr__cuda_function_embed_join, grid, &args,
                        sizeof args);
    }
}

// Places that are one after the other are counted; others are ids of another table.
static void add_to_positions(const tr_launch *launch,
                             tr_cuda_embed_backward_args args) {
    if (args.of.places) {
        args.of.ids = args.of.places;
        args.of.tokens = args.of.positions;
        args.of.first = 0;
        args.of.padding = 0;
        add_by_id(launch, args);
        return;
    }
    tr__cuda_launch(launch, &tr__cuda_function_embed_positions_backward,
                    tr__cuda_vectors(args.of.positions * args.of.width), &args,
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

// Each table by id is cleared; its rows are sorted, by two launches and the merges,
// added and joined.
static void backward_cost(const tr_op_desc *desc, tr_cost *out) {
    int64_t rows = tr_shape_count(desc->in[1].shape);
    tr__embedding_backward_cost(desc, out);
    out->launches = tables_by_id(desc) * (5 + merges(rows));
}

static const tr_kernel embedding = {.name = "embedding.cuda",
                                    .supports = supports,
                                    .cost = tr__embedding_cost,
                                    .launch = launch_embedding};
static const tr_kernel backward = {.name = "embedding_backward.cuda",
                                   .supports = supports_backward,
                                   .cost = backward_cost,
                                   .workspace = backward_workspace,
                                   .launch = launch_backward};

const tr_cuda_kernels tr__cuda_kernels_embedding[] = {
    {&tr__op_embedding, &embedding},
    {&tr__op_embedding_backward, &backward},
    {NULL, NULL},
};

// The contrastive loss, tile by tile of logits, as on the CPU (cpu.c): the first pass
// over the candidates adds up e^logits, the second makes the logits once more, and of
// them their gradients and what these give. Products are cuBLASLt's, of the texts where
// they lie: a tile's columns are one text of groups that follow each other.
#include "ops/nn/contrastive/cuda.h"

#include "backend/cuda/driver.h"
#include "backend/cuda/kernels.h"
#include "base/checked.h"
#include "ops/nn/contrastive/operands.h"
#include "ops/nn/linear_cross_entropy/cuda_sums.h"

extern const tr_cuda_kernels tr__cuda_kernels_contrastive[];
extern tr_cuda_function tr__cuda_function_pair_begin, tr__cuda_function_pair_add,
    tr__cuda_function_pair_slopes, tr__cuda_function_pair_sums,
    tr__cuda_function_pair_scale, tr__cuda_function_pair_pool;

// A tile of logits takes 4 MiB at most.
enum { ROWS_MOST = 128, COLUMNS_MOST = 8192, ALIGNED = 256 };

typedef struct pairs {
    const tr_launch *launch;
    tr_contrastive_batch b;
    tr_contrastive_side side;
    tr_cuda_pair_tile_args tile;
    tr_cuda_row_sums *each;
    double *scale; // sum of the launch
    float *dx, *dpool;
} pairs;

static tr_shape pool_shape(const tr_op_desc *desc) {
    bool pool = tr__contrastive_has(desc, PAIRS_POOL);
    return desc->in[pool ? PAIRS_POOL : PAIRS_X].shape;
}

static int64_t rows_of(const tr_op_desc *desc) {
    return tr__min_i64(desc->in[PAIRS_X].shape.dim[0], ROWS_MOST);
}

static int64_t columns_of(const tr_op_desc *desc) {
    return tr__min_i64(pool_shape(desc).dim[0], COLUMNS_MOST);
}

// Room of so many bytes at memory + *at; NULL: there is no memory yet.
static void *take(char *memory, int64_t *at, int64_t bytes) {
    char *here = memory ? memory + *at : NULL;
    *at += tr__round_up(bytes, ALIGNED);
    return here;
}

// Returns the bytes.
static int64_t lay_out(const tr_op_desc *desc, char *memory, pairs *p) {
    int64_t at = 0, rows = rows_of(desc);
    p->tile.logits =
        take(memory, &at, rows * columns_of(desc) * (int64_t)sizeof(float));
    p->tile.totals = take(memory, &at, rows * (int64_t)sizeof *p->tile.totals);
    p->each = take(memory, &at, rows * (int64_t)sizeof *p->each);
    p->scale = take(memory, &at, sizeof *p->scale);
    return at;
}

static pairs pairs_of(const tr_op_desc *desc, const tr_launch *launch) {
    pairs p = {.launch = launch};
    bool scale = tr__contrastive_has(desc, PAIRS_SCALE);
    p.b = tr__contrastive_shape(desc, launch); // the scale is on the device
    lay_out(desc, launch->workspace, &p);
    p.tile.pool = p.b.pool;
    p.tile.number = p.b.number;
    p.tile.scale = scale ? launch->in[PAIRS_SCALE] : NULL;
    p.tile.factor = scale ? 1 : 1 / p.b.attr.temperature;
    p.tile.first_place = p.b.first;
    p.tile.groups = p.b.groups;
    p.tile.texts = p.b.texts;
    p.tile.width = p.b.width;
    p.tile.row = p.b.row;
    p.tile.marked = p.b.marked;
    p.tile.mask_equal = p.b.attr.mask_equal != 0;
    return p;
}

// ---- tiles

static void launch_rows(const pairs *p, const tr_cuda_function *function) {
    tr__cuda_launch(p->launch, function, tr__cuda_blocks(p->tile.rows, TR_CUDA_THREADS),
                    &p->tile, sizeof p->tile);
}

static int64_t at_asks(const pairs *p) {
    return (p->tile.first_row * p->b.texts + p->side.asks) * p->b.width;
}

static int64_t at_candidates(const pairs *p) {
    return (p->tile.first_group * p->b.texts + p->tile.text) * p->b.row;
}

// The products of the tile's texts.
static void multiply(const pairs *p) {
    tr__cuda_multiply(p->launch, &(tr_cuda_product){.m = p->tile.rows,
                                                    .n = p->tile.columns,
                                                    .k = p->b.width,
                                                    .a = p->b.x + at_asks(p),
                                                    .b = p->b.pool + at_candidates(p),
                                                    .c = p->tile.logits,
                                                    .real = TR_F32,
                                                    .c_real = TR_F32,
                                                    .a_row = p->b.texts * p->b.width,
                                                    .b_row = p->b.texts * p->b.row,
                                                    .c_row = p->tile.columns,
                                                    .b_transposed = true});
}

static void add_tile(pairs *p) {
    multiply(p);
    launch_rows(p, &tr__cuda_function_pair_add);
}

// What the gradients of the tile's logits give.
static void give_tile(pairs *p) {
    const tr_cuda_pair_tile_args *t = &p->tile;
    multiply(p);
    launch_rows(p, &tr__cuda_function_pair_slopes);
    tr_cuda_product to = {.n = p->b.width,
                          .a = t->logits,
                          .real = TR_F32,
                          .c_real = TR_F32,
                          .a_row = t->columns,
                          .beta = 1};
    if (p->dx) {
        to.m = t->rows;
        to.k = t->columns;
        to.b = p->b.pool + at_candidates(p);
        to.b_row = p->b.texts * p->b.row;
        to.c = p->dx + at_asks(p);
        to.c_row = p->b.texts * p->b.width;
        tr__cuda_multiply(p->launch, &to);
    }
    if (p->dpool) {
        to.m = t->columns;
        to.k = t->rows;
        to.a_transposed = true;
        to.b = p->b.x + at_asks(p);
        to.b_row = p->b.texts * p->b.width;
        to.c = p->dpool + at_candidates(p);
        to.c_row = p->b.texts * p->b.row;
        tr__cuda_multiply(p->launch, &to);
    }
}

static void each_tile(pairs *p, int64_t columns, void (*visit)(pairs *p)) {
    for (int64_t text = p->side.from; text < p->side.to; text++) {
        for (int64_t g = 0; g < p->b.groups; g += columns) {
            p->tile.text = (int32_t)text;
            p->tile.first_group = g;
            p->tile.columns = tr__min_i64(columns, p->b.groups - g);
            visit(p);
        }
    }
}

// ---- launches

static void add_sums(const pairs *p, double *sums) {
    const tr_cuda_pair_sums_args args = {.totals = p->tile.totals,
                                         .each = p->each,
                                         .scales = p->scale,
                                         .rows = p->tile.rows,
                                         .weight = p->side.weight,
                                         .anchors = p->side.asks == TR_ANCHOR};
    tr__cuda_launch(p->launch, &tr__cuda_function_pair_sums,
                    tr__cuda_blocks(1, TR_CUDA_THREADS), &args, sizeof args);
    tr__cuda_add_row_sums(p->launch, p->each, p->tile.rows, sums);
}

static void run(const tr_op_desc *desc, pairs *p, bool backward, double *sums) {
    int64_t columns = columns_of(desc);
    tr__cuda_clear(p->launch, p->scale, sizeof *p->scale);
    for (int side = 0; side < tr__contrastive_sides(&p->b); side++) {
        p->side = tr__contrastive_side(&p->b, side);
        p->tile.asks = (int32_t)p->side.asks;
        p->tile.own = (int32_t)p->side.own;
        p->tile.slope = p->side.weight * p->b.seed;
        for (int64_t r = 0; r < p->b.there; r += ROWS_MOST) {
            p->tile.first_row = r;
            p->tile.rows = tr__min_i64(ROWS_MOST, p->b.there - r);
            launch_rows(p, &tr__cuda_function_pair_begin);
            each_tile(p, columns, add_tile);
            if (backward) {
                each_tile(p, columns, give_tile);
            }
            add_sums(p, sums);
        }
    }
}

static void forward(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    pairs p = pairs_of(desc, launch);
    run(desc, &p, false, launch->out[0]);
}

// The result to add to; NULL: it is not wanted.
static float *begin(const tr_op_desc *desc, const tr_launch *launch, int i) {
    if (launch->out[i] && !(launch->accumulate >> i & 1)) {
        tr__cuda_clear(launch, launch->out[i], tr_tensor_bytes(desc->out[i]));
    }
    return launch->out[i];
}

static void backward(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    pairs p = pairs_of(desc, launch);
    p.dx = begin(desc, launch, PAIRS_DX);
    p.dpool = begin(desc, launch, PAIRS_DPOOL);
    run(desc, &p, true, launch->out[PAIRS_SUMS]);
    const tr_cuda_pair_scale_args args = {.scale = p.scale,
                                          .dscale = launch->out[PAIRS_DSCALE],
                                          .add =
                                              launch->accumulate >> PAIRS_DSCALE & 1};
    if (args.dscale) {
        tr__cuda_launch(launch, &tr__cuda_function_pair_scale, tr__cuda_blocks(1, 1),
                        &args, sizeof args);
    }
}

// ---- the pool

// x: the shape of the micro-batch's texts; number: NULL: gradients come out of the
// pool.
static void move(const tr_launch *launch, tr_shape x, int64_t groups,
                 const int32_t *number) {
    const tr_cuda_pair_pool_args args = {
        .from = launch->in[0],
        .number = number,
        .to = launch->out[0],
        .there = tr__rows_there(launch, x.dim[0]),
        .texts = x.dim[1],
        .width = x.dim[2],
        .groups = groups,
        .first_place = (int64_t)(launch->run->sample % (uint64_t)groups)};
    int64_t wide = args.width + (number ? TR_TEXT_MARK : 0);
    tr__cuda_launch(launch, &tr__cuda_function_pair_pool,
                    tr__cuda_each(args.there * args.texts * wide), &args, sizeof args);
}

static void pool(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    begin(desc, launch, 0);
    move(launch, desc->in[0].shape, desc->out[0].shape.dim[0], launch->in[1]);
}

static void pool_backward(const tr_op_desc *desc, void *state,
                          const tr_launch *launch) {
    (void)state;
    begin(desc, launch, 0);
    move(launch, desc->out[0].shape, desc->in[0].shape.dim[0], NULL);
}

// ---- kernels

static bool supports(const tr_op_desc *desc) {
    return desc->in[0].dtype == TR_F32;
}

static size_t workspace(const tr_op_desc *desc, const void *state) {
    pairs p = {0};
    (void)state;
    return (size_t)lay_out(desc, NULL, &p);
}

static void cost_pool(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 1, out);
}

static const tr_kernel loss = {.name = "contrastive.cuda",
                               .supports = supports,
                               .cost = tr__contrastive_cost,
                               .workspace = workspace,
                               .launch = forward};
static const tr_kernel loss_backward = {.name = "contrastive_backward.cuda",
                                        .supports = supports,
                                        .cost = tr__contrastive_cost,
                                        .workspace = workspace,
                                        .launch = backward};
static const tr_kernel pool_forward = {.name = "contrastive_pool.cuda",
                                       .supports = supports,
                                       .cost = cost_pool,
                                       .launch = pool};
static const tr_kernel pool_gradient = {.name = "contrastive_pool_backward.cuda",
                                        .supports = supports,
                                        .cost = cost_pool,
                                        .launch = pool_backward};

const tr_cuda_kernels tr__cuda_kernels_contrastive[] = {
    {&tr__op_contrastive, &loss},
    {&tr__op_contrastive_backward, &loss_backward},
    {&tr__op_contrastive_pool, &pool_forward},
    {&tr__op_contrastive_pool_backward, &pool_gradient},
    {NULL, NULL},
};

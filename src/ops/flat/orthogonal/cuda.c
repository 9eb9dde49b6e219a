// The two phases of an update that takes matrices as wholes. Products are cuBLASLt's,
// of the type that the iterations are rounded to, with results in f32: each is rounded
// once, with what is added to it.
#include "ops/flat/orthogonal/cuda.h"
#include "backend/cuda/driver.h"
#include "backend/cuda/kernels.h"
#include "base/checked.h"
#include "ops/flat/accumulate/accumulate.h"
#include "ops/flat/orthogonal/newton.h"
#include "ops/flat/orthogonal/orthogonal.h"
#include "ops/flat/update/cuda_pieces.h"
#include "ops/operand.h"

extern const tr_cuda_kernels tr__cuda_kernels_orthogonal[];
extern tr_cuda_function tr__cuda_function_newton_read, tr__cuda_function_newton_scale,
    tr__cuda_function_newton_combine, tr__cuda_function_newton_identity,
    tr__cuda_function_orthogonal, tr__cuda_function_put_part;

// ---- directions

static void direct_piece(const tr_update_piece *piece) {
    const tr_update_walk *walk = piece->walk;
    tr_update update = piece->update;
    update.param = (float *)walk->launch->out[0] + (piece->first - walk->attr->first);
    tr__cuda_update_piece(piece, &update, TR_CUDA_DIRECT, NULL);
}

static void launch_direction(const tr_op_desc *desc, void *state,
                             const tr_launch *launch) {
    (void)state;
    tr__cuda_update_pieces(desc, launch, NULL, direct_piece);
}

static bool supports_direction(const tr_op_desc *desc) {
    return tr__sums_are_read(desc->in[0].dtype) && desc->out[0].dtype == TR_F32 &&
           desc->out[TR_UPDATE_STATE].dtype == TR_F32;
}

static void cost_direction(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 0, out);
    for (int i = TR_UPDATE_STATE; i < desc->out_count; i++) {
        out->bytes += (double)tr_tensor_bytes(desc->out[i]);
    }
}

// ---- Newton-Schulz iterations

enum { ALIGNED = 256, MATRICES = 6 };

typedef struct newton {
    const tr_launch *launch;
    tr_dtype type;
    int64_t r, c;          // sides, r <= c
    char *place[MATRICES]; // of each tr_newton_matrix
    float *product;        // [r, c]
    float *whole;          // [r, c], what ranks share, put together; NULL: nothing
    double *parts;
} newton;

// Room of `elements` at memory + *at; NULL: there is no memory yet.
static char *take(char *memory, int64_t *at, int64_t elements, size_t bytes) {
    char *here = memory ? memory + *at : NULL;
    *at += tr__round_up(elements * (int64_t)bytes, ALIGNED);
    return here;
}

// As large as for f32, and for iterations on A alone. Returns the bytes.
static int64_t lay_out(newton *n, int64_t rows, int64_t columns, bool shared,
                       char *memory) {
    int64_t at = 0;
    n->r = tr__min_i64(rows, columns);
    n->c = tr__max_i64(rows, columns);
    for (int i = 0; i < MATRICES; i++) {
        bool large = i == TR_NEWTON_X || i == TR_NEWTON_Y;
        n->place[i] = take(memory, &at, n->r * (large ? n->c : n->r), sizeof(float));
    }
    n->product = (void *)take(memory, &at, n->r * n->c, sizeof(float));
    n->parts = (void *)take(memory, &at, TR_CUDA_NEWTON_PARTS, sizeof(double));
    n->whole = shared ? (void *)take(memory, &at, n->r * n->c, sizeof(float)) : NULL;
    return at;
}

static void multiply(void *user, const tr_newton_term *t) {
    const newton *n = user;
    bool gram = t->which == TR_NEWTON_GRAM, step = t->which == TR_NEWTON_STEP;
    const tr_cuda_product product = {.m = n->r,
                                     .n = step ? n->c : n->r,
                                     .k = gram ? n->c : n->r,
                                     .a = n->place[t->left],
                                     .b = n->place[t->right],
                                     .c = n->product,
                                     .real = n->type,
                                     .c_real = TR_F32,
                                     .a_row = gram ? n->c : n->r,
                                     .b_row = gram || step ? n->c : n->r,
                                     .c_row = step ? n->c : n->r,
                                     .b_transposed = gram};
    tr__cuda_multiply(n->launch, &product);
    const tr_cuda_newton_combine_args args = {.of = n->place[t->of],
                                              .product = n->product,
                                              .to = n->place[t->to],
                                              .count = product.m * product.n,
                                              .p = t->p,
                                              .q = t->q,
                                              .real = (int32_t)n->type};
    tr__cuda_launch(n->launch, &tr__cuda_function_newton_combine,
                    tr__cuda_each(args.count), &args, sizeof args);
}

static void copy(void *user, tr_newton_matrix from, tr_newton_matrix to) {
    const newton *n = user;
    const tr_cuda_cast_args args = {.x = n->place[from],
                                    .y = n->place[to],
                                    .count = n->r * n->r,
                                    .from = (int32_t)n->type,
                                    .to = (int32_t)n->type};
    tr__cuda_cast(n->launch, &args);
}

static void add_identity(void *user, float times, tr_newton_matrix to) {
    const newton *n = user;
    const tr_cuda_newton_identity_args args = {
        .x = n->place[to], .side = n->r, .times = times, .real = (int32_t)n->type};
    tr__cuda_launch(n->launch, &tr__cuda_function_newton_identity, tr__cuda_each(n->r),
                    &args, sizeof args);
}

static void swap(void *user) {
    newton *n = user;
    char *x = n->place[TR_NEWTON_X];
    n->place[TR_NEWTON_X] = n->place[TR_NEWTON_Y];
    n->place[TR_NEWTON_Y] = x;
}

static const tr_newton_steps steps = {multiply, copy, add_identity, swap};

// Brings x in, and divides it by its norm.
static void begin(const newton *n, const tr_orthogonal *how, const float *x,
                  int64_t rows, int64_t columns) {
    int64_t count = rows * columns;
    int64_t blocks =
        tr__min_i64(tr__ceil_div(count, TR_CUDA_THREADS), TR_CUDA_NEWTON_PARTS);
    const tr_cuda_newton_read_args read = {.x = x,
                                           .y = n->place[TR_NEWTON_X],
                                           .parts = n->parts,
                                           .rows = rows,
                                           .columns = columns,
                                           .real = (int32_t)n->type,
                                           .turns = rows > columns};
    tr__cuda_launch(n->launch, &tr__cuda_function_newton_read,
                    tr__cuda_blocks(blocks, TR_CUDA_THREADS), &read, sizeof read);
    const tr_cuda_newton_scale_args scale = {.x = n->place[TR_NEWTON_X],
                                             .parts = n->parts,
                                             .count = count,
                                             .part_count = blocks,
                                             .eps = (float)how->eps,
                                             .real = (int32_t)n->type};
    tr__cuda_launch(n->launch, &tr__cuda_function_newton_scale, tr__cuda_each(count),
                    &scale, sizeof scale);
}

// ---- the update

// The directions of a matrix: where they lie, or, of one that ranks share, put
// together.
static const float *directions_of(const tr_update_piece *piece, const newton *n) {
    const tr_update_range *range = piece->range;
    const float *all = piece->walk->launch->in[0];
    for (int i = 0; i < range->part_count; i++) {
        const tr_matrix_part *part = &range->parts[i];
        const tr_cuda_put_part_args args = {.x = all + part->offset,
                                            .y = n->whole,
                                            .count = part->count,
                                            .lies = part->lies};
        tr__cuda_launch(n->launch, &tr__cuda_function_put_part,
                        tr__cuda_each(args.count), &args, sizeof args);
    }
    return range->part_count > 0 ? n->whole : all + range->offset;
}

// A matrix, of which elements are updated here.
static void update_piece(const tr_update_piece *piece) {
    const tr_update_walk *walk = piece->walk;
    const tr_update_range *range = piece->range;
    int64_t rows = range->rows, columns = range->columns;
    tr_orthogonal how =
        piece->optimizer->matrices->orthogonal(&piece->hyper, rows, columns);
    newton n = {.launch = walk->launch, .type = how.type};
    lay_out(&n, rows, columns, range->part_count > 0, walk->launch->workspace);
    begin(&n, &how, directions_of(piece, &n), rows, columns);
    tr__newton_iterate(&how, tr__newton_gram(&how, n.r, n.c), &steps, &n);
    const tr_cuda_orthogonal_args args = {.param = piece->update.param,
                                          .o = n.place[TR_NEWTON_X],
                                          .first = piece->first - range->offset,
                                          .count = piece->update.count,
                                          .rows = rows,
                                          .columns = columns,
                                          .lies = range->lies,
                                          .keep = (float)how.keep,
                                          .step = (float)how.step,
                                          .real = (int32_t)how.type,
                                          .turned = rows > columns};
    tr__cuda_launch(walk->launch, &tr__cuda_function_orthogonal,
                    tr__cuda_each(args.count), &args, sizeof args);
}

static void launch_orthogonal(const tr_op_desc *desc, void *state,
                              const tr_launch *launch) {
    (void)state;
    tr__cuda_update_pieces(desc, launch, launch->out[0], update_piece);
    tr__cuda_round_params(desc, launch);
}

static bool supports_orthogonal(const tr_op_desc *desc) {
    return desc->in[0].dtype == TR_F32 && desc->out[0].dtype == TR_F32;
}

static size_t workspace(const tr_op_desc *desc, const void *state) {
    const tr_orthogonal_attr *attr = (const void *)desc->attr;
    newton n = {.type = TR_F32};
    (void)state;
    return (size_t)lay_out(&n, attr->rows, attr->columns, attr->shared, NULL);
}

static void cost_orthogonal(const tr_op_desc *desc, tr_cost *out) {
    const tr_orthogonal_attr *attr = (const void *)desc->attr;
    tr__desc_cost(desc, attr->flops, out);
    out->bytes += (double)tr_tensor_bytes(desc->out[0]);
}

static const tr_kernel direction = {.name = "direction.cuda",
                                    .supports = supports_direction,
                                    .cost = cost_direction,
                                    .launch = launch_direction};
static const tr_kernel orthogonal = {.name = "orthogonal.cuda",
                                     .supports = supports_orthogonal,
                                     .cost = cost_orthogonal,
                                     .workspace = workspace,
                                     .launch = launch_orthogonal};
const tr_cuda_kernels tr__cuda_kernels_orthogonal[] = {
    {&tr__op_direction, &direction},
    {&tr__op_orthogonal, &orthogonal},
    {NULL, NULL},
};

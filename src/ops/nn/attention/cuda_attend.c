#include "ops/nn/attention/cuda_attend.h"

#include "backend/cuda/kernels.h"
#include "ops/nn/attention/sizes.h"
#include "ops/nn/positions.h"
#include "ops/operand.h"

#include <math.h>

extern const tr_kernel tr__cuda_attention, tr__cuda_attention_backward;

// The kernels of a pass for bf16 and f16, in pieces of 64 and of 128.
#define HALVES(name)                                                                   \
    {&tr__cuda_function_##name##_bf16_64, &tr__cuda_function_##name##_bf16_128}, {     \
        &tr__cuda_function_##name##_f16_64, &tr__cuda_function_##name##_f16_128        \
    }
#define DECLARE_HALVES(name)                                                           \
    extern tr_cuda_function tr__cuda_function_##name##_bf16_64,                        \
        tr__cuda_function_##name##_bf16_128, tr__cuda_function_##name##_f16_64,        \
        tr__cuda_function_##name##_f16_128

// And with that for f32, which has one tile of rows, as those of a pass of few rows do.
#define PASS(name, TILES)                                                              \
    extern tr_cuda_function tr__cuda_function_##name##_f32;                            \
    DECLARE_HALVES(name);                                                              \
    static const pass name = {                                                         \
        {{&tr__cuda_function_##name##_f32, &tr__cuda_function_##name##_f32},           \
         HALVES(name)},                                                                \
        {TILES##_64, TILES##_128},                                                     \
    }

typedef struct pass {
    const tr_cuda_function *of[3][2];
    int64_t tiles[2]; // of a block's rows, of 16 bits
} pass;

PASS(attend, TR_CUDA_ATTEND_FORWARD);
PASS(attend_queries, TR_CUDA_ATTEND_QUERIES);
PASS(attend_keys, TR_CUDA_ATTEND_KEYS);
DECLARE_HALVES(attend_few);
static const pass attend_few = {
    {{&tr__cuda_function_attend_f32, &tr__cuda_function_attend_f32},
     HALVES(attend_few)},
    {1, 1},
};
extern tr_cuda_function tr__cuda_function_attend_delta;

// What a description says of the queries, keys and values of a launch.
typedef struct operands {
    tr_attention_sizes sizes;
    tr_dtype real;
    int64_t piece;
} operands;

static operands operands_of(const tr_op_desc *desc, int qkv) {
    tr_attention_sizes s = tr__attention_sizes(desc->in[qkv].shape, desc->attr);
    tr_dtype real = desc->in[qkv].dtype;
    return (operands){s, real, tr__cuda_attend_piece(real, s.depth)};
}

// The head of each sample that begins at a column of x, [batch, context, pitch].
static tr_cuda_rows rows_of(const operands *o, const void *x, int64_t column,
                            int64_t pitch) {
    const char *first = x;
    return (tr_cuda_rows){
        .first = first ? first + column * (int64_t)tr_dtype_bytes(o->real) : NULL,
        .sample = o->sizes.context * pitch,
        .head = o->sizes.depth,
        .place = pitch,
    };
}

static tr_cuda_attention attention_of(const operands *o, const tr_launch *launch,
                                      const void *qkv, const void *positions) {
    const tr_attention_sizes *s = &o->sizes;
    return (tr_cuda_attention){
        .q = rows_of(o, qkv, 0, s->pitch),
        .k = rows_of(o, qkv, s->keys, s->pitch),
        .v = rows_of(o, qkv, s->values, s->pitch),
        .queries = (int32_t)s->context,
        .depth = (int32_t)s->depth,
        .heads = (int32_t)s->heads,
        .group = (int32_t)s->group,
        .advance = 1,
        .room = INT32_MAX,
        .window = (int32_t)s->window,
        .scale = (float)(1 / sqrt((double)s->depth)),
        .dropout = s->dropout,
        .kept = tr__draw_open(launch->run, 0, s->draw_id, s->dropout).scale,
        .draw_id = s->draw_id,
        .first_head = (int32_t)s->first_head,
        .both = s->both,
        .whole = s->depth * (int64_t)tr_dtype_bytes(o->real) % 16 == 0,
        .down = (int32_t)tr__ceil_div(s->context, TR_DRAW_ROWS),
        .across = (int32_t)tr__ceil_div(s->context, TR_DRAW_LANES),
        .run = *launch->run,
        .positions = positions,
    };
}

// How many blocks a pass has: as many as its rows need, or `parts` of their keys, for
// each of `heads` heads. A block has, beside the tiles that it goes through two by two,
// `own` times its rows, and `extra` bytes.
typedef struct extent {
    int64_t queries, parts, heads, own, extra;
} extent;

static void launch_pass(const pass *of, const operands *o, const tr_launch *launch,
                        const extent *e, const void *args, size_t bytes) {
    const tr_attention_sizes *s = &o->sizes;
    int64_t row = o->piece * (int64_t)tr_dtype_bytes(o->real);
    int real = o->real == TR_F32 ? 0 : o->real == TR_BF16 ? 1 : 2, wide = o->piece > 64;
    int64_t rows = TR_CUDA_ATTEND_ROWS * (real ? of->tiles[wide] : 1);
    tr_cuda_grid grid = {
        .blocks = {e->parts > 1 ? e->parts : tr__ceil_div(e->queries, rows),
                   e->heads * tr__ceil_div(s->depth, o->piece), s->batch},
        .threads = {TR_CUDA_ATTEND_THREADS, 1, 1},
        .shared = e->own * rows * row + 4 * TR_CUDA_TILE_BYTES + e->extra,
    };
    tr__cuda_launch(launch, of->of[real][wide], grid, args, bytes);
}

// ---- forward

tr_cuda_attend_args tr__cuda_attend_args(const tr_op_desc *desc,
                                         const tr_launch *launch) {
    operands o = operands_of(desc, 0);
    return (tr_cuda_attend_args){.of = attention_of(&o, launch, launch->in[0], NULL),
                                 .y = rows_of(&o, launch->out[0], 0, o.sizes.width),
                                 .add_y = launch->accumulate & 1,
                                 .parts = 1};
}

void tr__cuda_attend(const tr_op_desc *desc, const tr_launch *launch,
                     const tr_cuda_attend_args *args) {
    operands o = operands_of(desc, 0);
    extent e = {args->of.queries, args->parts, args->of.heads, 1, 0};
    launch_pass(args->of.queries <= TR_CUDA_ATTEND_ROWS ? &attend_few : &attend, &o,
                launch, &e, args, sizeof *args);
}

static void launch_attention(const tr_op_desc *desc, void *state,
                             const tr_launch *launch) {
    (void)state;
    tr_cuda_attend_args args = tr__cuda_attend_args(desc, launch);
    args.of.positions = tr__launch_positions(desc, launch, 1);
    args.lse = launch->out[1];
    args.add_lse = launch->accumulate >> 1 & 1;
    tr__cuda_attend(desc, launch, &args);
}

// ---- backward

// dy . y of each query.
static void launch_delta(const operands *o, const tr_launch *launch) {
    const tr_attention_sizes *s = &o->sizes;
    tr_cuda_attend_delta_args args = {.dy = launch->in[0],
                                      .y = launch->in[2],
                                      .delta = launch->workspace,
                                      .rows = s->batch * s->context * s->heads,
                                      .queries = s->context,
                                      .heads = s->heads,
                                      .depth = s->depth,
                                      .real = (int32_t)o->real};
    int64_t each = TR_CUDA_THREADS / TR_CUDA_LANES;
    tr__cuda_launch(launch, &tr__cuda_function_attend_delta,
                    tr__cuda_blocks(tr__ceil_div(args.rows, each), TR_CUDA_THREADS),
                    &args, sizeof args);
}

static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    (void)state;
    operands o = operands_of(desc, 1);
    const tr_attention_sizes *s = &o.sizes;
    const int32_t *positions = tr__launch_positions(desc, launch, 4);
    char *dqkv = launch->out[0];
    int64_t bytes = (int64_t)tr_dtype_bytes(o.real);
    int64_t rows = TR_CUDA_TILE_BYTES / (o.piece * bytes);
    tr_cuda_attend_backward_args args = {
        .of = attention_of(&o, launch, launch->in[1], positions),
        .dy = rows_of(&o, launch->in[0], 0, s->width),
        .lse = launch->in[3],
        .delta = launch->workspace,
        .dq = dqkv,
        .dk = dqkv + s->keys * bytes,
        .dv = dqkv + s->values * bytes,
        .add = launch->accumulate & 1};
    launch_delta(&o, launch);
    extent queries = {s->context, 1, s->heads, 2, 0};
    extent keys = {s->context, 1, s->pairs, 2, 2 * 3 * rows * 4};
    launch_pass(&attend_queries, &o, launch, &queries, &args, sizeof args);
    launch_pass(&attend_keys, &o, launch, &keys, &args, sizeof args);
}

static size_t delta_bytes(const tr_op_desc *desc, const void *state) {
    (void)state;
    operands o = operands_of(desc, 1);
    return (size_t)(o.sizes.batch * o.sizes.heads * o.sizes.context) * sizeof(float);
}

// Places are counted in 32 bits, blocks of a grid along y and z in 16.
static bool fits(const tr_op_desc *desc, int qkv) {
    tr_shape shape = desc->in[qkv].shape;
    operands o = operands_of(desc, qkv);
    int64_t pieces = tr__ceil_div(o.sizes.depth, o.piece);
    return shape.dim[1] <= INT32_MAX / 2 && shape.dim[0] <= UINT16_MAX &&
           o.sizes.heads * pieces <= UINT16_MAX;
}

// lse is f32.
static bool supports(const tr_op_desc *desc) {
    return tr__desc_same_real(desc, 0, 1 << 1) && fits(desc, 0);
}

static bool supports_backward(const tr_op_desc *desc) {
    return tr__desc_same_real(desc, 1 << 3, 0) && fits(desc, 1);
}

const tr_kernel tr__cuda_attention = {.name = "attention.cuda",
                                      .supports = supports,
                                      .cost = tr__attention_cost,
                                      .launch = launch_attention};
const tr_kernel tr__cuda_attention_backward = {.name = "attention_backward.cuda",
                                               .supports = supports_backward,
                                               .cost = tr__attention_backward_cost,
                                               .workspace = delta_bytes,
                                               .launch = launch_backward};

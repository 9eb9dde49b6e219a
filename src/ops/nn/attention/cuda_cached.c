// Attention over a cache: what is new goes into the cache, and the queries go through
// the tiles of its keys as in the forward.
//
// Where samples have one query each, it takes as long as the cache takes to be read. So
// the heads that share keys are one block's queries, which reads the keys once for all
// of them, and a long cache is cut into parts, so that there are blocks for the whole
// GPU (Flash-Decoding: Dao, Haziza, Massa and Sizov, 2023).
#include "backend/cuda/kernels.h"
#include "ops/nn/attention/cached.h"
#include "ops/nn/attention/cuda_attend.h"
#include "ops/operand.h"

extern tr_cuda_function tr__cuda_function_attend_append, tr__cuda_function_attend_join;

enum {
    PART_LEAST = 128, // positions of a part
    PARTS_MOST = 64,
    BLOCKS_ENOUGH = 512, // that more parts are not made for
};

// Keys, or values, of the cache; `first` of them are heads of others.
static tr_cuda_rows cache_rows(const tr_attention_cached_sizes *s, void *cache,
                               tr_dtype real, int64_t first) {
    int64_t head = s->room * s->now.depth;
    return (tr_cuda_rows){
        .first = (char *)cache + first * head * (int64_t)tr_dtype_bytes(real),
        .sample = 2 * s->now.pairs * head,
        .head = head,
        .place = s->now.depth,
    };
}

static void append(const tr_attention_cached_sizes *s, tr_dtype real,
                   const tr_launch *launch) {
    const tr_attention_sizes *n = &s->now;
    tr_cuda_append_args args = {.qkv = launch->in[0],
                                .cache = launch->out[1],
                                .count =
                                    n->batch * n->context * 2 * n->pairs * n->depth,
                                .context = n->context,
                                .heads = 2 * n->pairs,
                                .depth = n->depth,
                                .pitch = n->pitch,
                                .keys = n->keys,
                                .room = s->room,
                                .position = s->position,
                                .real = (int32_t)real};
    tr__cuda_launch(launch, &tr__cuda_function_attend_append, tr__cuda_each(args.count),
                    &args, sizeof args);
}

// ---- one query of each sample

static bool is_one(const tr_attention_sizes *s) {
    return s->context == 1 && s->group <= TR_CUDA_ATTEND_ROWS;
}

// By shape alone, because the order of sums follows it. 1: the cache is not cut.
static int64_t parts_of(const tr_op_desc *desc) {
    tr_attention_sizes s = tr__attention_sizes(desc->in[0].shape, desc->attr);
    int64_t room = desc->in[1].shape.dim[2], heads = s.batch * s.pairs;
    int64_t parts = tr__min_i64(tr__ceil_div(room, PART_LEAST), PARTS_MOST);
    return is_one(&s) ? tr__min_i64(parts, tr__ceil_div(BLOCKS_ENOUGH, heads)) : 1;
}

// Of what the parts find: f32 of each, and of the highest scores behind them.
static size_t sums_bytes(const tr_op_desc *desc) {
    tr_attention_sizes s = tr__attention_sizes(desc->in[0].shape, desc->attr);
    return (size_t)(parts_of(desc) * s.batch * s.width) * sizeof(float);
}

static size_t workspace(const tr_op_desc *desc, const void *state) {
    tr_attention_sizes s = tr__attention_sizes(desc->in[0].shape, desc->attr);
    int64_t parts = parts_of(desc);
    (void)state;
    return parts > 1 ? sums_bytes(desc) +
                           (size_t)(parts * s.batch * s.heads) * 2 * sizeof(float)
                     : 0;
}

// The heads that share keys become the queries.
static void fold_heads(tr_cuda_attend_args *args) {
    tr_cuda_attention *of = &args->of;
    tr_cuda_rows *const rows[] = {&of->q, &args->y};
    for (int i = 0; i < 2; i++) {
        rows[i]->place = rows[i]->head;
        rows[i]->head *= of->group;
    }
    of->queries = of->group;
    of->heads /= of->group;
    of->group = 1;
    of->advance = 0;
}

// The keys that are seen now, in as many parts.
static void cut_keys(const tr_op_desc *desc, const tr_launch *launch,
                     tr_cuda_attend_args *args) {
    tr_dtype real = desc->in[0].dtype;
    int64_t keys = TR_CUDA_TILE_BYTES / (tr__cuda_attend_piece(real, args->of.depth) *
                                         (int64_t)tr_dtype_bytes(real));
    int64_t first = tr__max_i64(0, (int64_t)args->of.position - args->of.window + 1);
    int64_t tiles = args->of.position / keys + 1 - first / keys;
    args->parts = (int32_t)parts_of(desc);
    args->tiles = (int32_t)tr__ceil_div(tiles, args->parts);
    args->sums = launch->workspace;
    args->tops = (float *)(void *)((char *)launch->workspace + sums_bytes(desc));
}

static void join(const tr_op_desc *desc, const tr_launch *launch,
                 const tr_cuda_attend_args *of) {
    tr_cuda_attend_join_args args = {.sums = of->sums,
                                     .tops = of->tops,
                                     .y = launch->out[0],
                                     .rows = tr_shape_count(desc->out[0].shape) /
                                             of->of.depth,
                                     .queries = of->of.queries,
                                     .depth = of->of.depth,
                                     .parts = of->parts,
                                     .real = (int32_t)desc->in[0].dtype,
                                     .add = of->add_y};
    tr__cuda_launch(launch, &tr__cuda_function_attend_join,
                    tr__cuda_blocks(args.rows, TR_CUDA_JOIN_THREADS), &args,
                    sizeof args);
}

static void attend_one(const tr_op_desc *desc, const tr_launch *launch,
                       tr_cuda_attend_args *args) {
    fold_heads(args);
    if (parts_of(desc) > 1) {
        cut_keys(desc, launch, args);
    }
    tr__cuda_attend(desc, launch, args);
    if (args->parts > 1) {
        join(desc, launch, args);
    }
}

// ---- all

static void launch_cached(const tr_op_desc *desc, void *state,
                          const tr_launch *launch) {
    (void)state;
    tr_attention_cached_sizes s = tr__attention_cached_sizes(desc, launch);
    tr_dtype real = desc->in[0].dtype;
    if (!tr__attention_cached_fits(&s, launch)) {
        return;
    }
    tr_cuda_attend_args args = tr__cuda_attend_args(desc, launch);
    args.of.k = cache_rows(&s, launch->out[1], real, 0);
    args.of.v = cache_rows(&s, launch->out[1], real, s.now.pairs);
    args.of.position = (int32_t)s.position;
    args.of.room = (int32_t)s.room;
    args.of.window = (int32_t)tr__min_i64(s.window, INT32_MAX);
    append(&s, real, launch);
    if (is_one(&s.now)) {
        attend_one(desc, launch, &args);
    } else {
        tr__cuda_attend(desc, launch, &args);
    }
}

// Places are counted in 32 bits.
static bool supports(const tr_op_desc *desc) {
    return tr__desc_same_real(desc, 0, 0) && desc->in[1].shape.dim[2] <= INT32_MAX / 2;
}

const tr_kernel tr__cuda_attention_cached = {.name = "attention_cached.cuda",
                                             .supports = supports,
                                             .cost = tr__attention_cached_cost,
                                             .workspace = workspace,
                                             .launch = launch_cached};

// Attention over a cache: what is new goes into the cache, and the queries go through
// the tiles of its keys as in the forward.
#include "backend/cuda/kernels.h"
#include "ops/attention/cached.h"
#include "ops/attention/cuda_attend.h"
#include "ops/operand.h"

extern tr_cuda_function tr__cuda_function_attend_append;

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
    tr__cuda_attend(desc, launch, &args);
}

// Places are counted in 32 bits.
static bool supports(const tr_op_desc *desc) {
    return tr__desc_same_real(desc, 0, 0) && desc->in[1].shape.dim[2] <= INT32_MAX / 2;
}

const tr_kernel tr__cuda_attention_cached = {.name = "attention_cached.cuda",
                                             .supports = supports,
                                             .cost = tr__attention_cached_cost,
                                             .launch = launch_cached};

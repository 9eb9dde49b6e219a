// Attention by cuDNN, of whole samples without dropout in 16 bits. It computes faster
// than the kernels of this folder on Hopper, where its products are of tensor memory
// accelerators and of whole groups of warps.
//
// cuDNN's usual backward adds gradients of queries in whatever order its blocks end.
// The one that is taken here has one order, because it writes the gradients of all
// scores down, 2 bytes for each pair of tokens: so some samples are taken at a time.
#include "backend/cuda/attend.h"
#include "backend/cuda/driver.h"
#include "backend/cuda/kernels.h"
#include "base/half.h"
#include "ops/nn/attention/sizes.h"
#include "ops/operand.h"

#include <stdio.h>

extern const tr_kernel tr__cuda_attention_library, tr__cuda_attention_backward_library;

// Bytes of the library's: so many samples are taken at once as work in these; one
// sample may take up to as many as that.
#define AT_ONCE (((int64_t)256 << 20) + TR_CUDA_ATTEND_LEAST)
#define AT_MOST (((int64_t)1 << 30) + TR_CUDA_ATTEND_LEAST)
#define ALIGNED ((int64_t)256)

enum { LOGARITHMS = 1, QKV = 0, BACKWARD_QKV = 1 };

// All samples at once. The bytes are what a shape takes.
static tr_cuda_attend_shape whole_shape(const tr_op_desc *desc, bool backward) {
    const tr_tensor_desc *qkv = &desc->in[backward ? BACKWARD_QKV : QKV];
    tr_attention_sizes s = tr__attention_sizes(qkv->shape, desc->attr);
    return (tr_cuda_attend_shape){.batch = s.batch,
                                  .context = s.context,
                                  .depth = s.depth,
                                  .heads = s.heads,
                                  .pairs = s.pairs,
                                  .pitch = s.pitch,
                                  .width = s.width,
                                  .half = (int32_t)qkv->dtype,
                                  .backward = backward,
                                  .both = s.both,
                                  .has_lse = backward ||
                                             desc->out[LOGARITHMS].dtype != TR_NONE,
                                  .version = desc->target.attention};
}

// Fewer heads of keys, with those of queries that share them.
static void cut_heads(tr_cuda_attend_shape *shape, int64_t pairs) {
    shape->heads = shape->heads / shape->pairs * pairs;
    shape->pairs = pairs;
    shape->workspace = tr__cuda_attend_room(shape);
}

// The most samples that work in few bytes, of equal parts of the batch; where one
// sample is too many, the most of its heads. workspace -1: there are none.
static tr_cuda_attend_shape shape_of(const tr_op_desc *desc, bool backward) {
    tr_cuda_attend_shape shape = whole_shape(desc, backward);
    int64_t samples = shape.batch, pairs = shape.pairs;
    for (int64_t parts = 1; parts <= samples; parts++) {
        shape.batch = samples / parts;
        shape.workspace = tr__cuda_attend_room(&shape);
        if (samples % parts == 0 && shape.workspace <= AT_ONCE) {
            return shape;
        }
    }
    for (int64_t parts = 2; parts <= pairs && shape.workspace > AT_ONCE; parts++) {
        if (pairs % parts == 0) {
            cut_heads(&shape, pairs / parts);
        }
    }
    shape.workspace = shape.workspace <= AT_MOST ? shape.workspace : -1;
    return shape;
}

static int64_t delta_bytes(const tr_cuda_attend_shape *s) {
    int64_t rows = s->batch * s->heads * s->context;
    return s->backward ? tr__round_up(rows * (int64_t)sizeof(float), ALIGNED) : 0;
}

static size_t workspace_of(const tr_op_desc *desc, bool backward) {
    tr_cuda_attend_shape shape = shape_of(desc, backward);
    return (size_t)(ALIGNED + delta_bytes(&shape) + shape.workspace);
}

static size_t workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    return workspace_of(desc, false);
}

static size_t backward_workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    return workspace_of(desc, true);
}

// ---- what it computes

static bool has_positions(const tr_op_desc *desc, int i) {
    return i < desc->in_count && desc->in[i].dtype != TR_NONE;
}

// It writes its results, and adds them to nothing.
static bool can(const tr_op_desc *desc, bool backward) {
    const tr_tensor_desc *qkv = &desc->in[backward ? BACKWARD_QKV : QKV];
    if (desc->target.attention == 0 || desc->target.level != TR_CUDA_SM_90 ||
        desc->inference || desc->accumulate != 0 || !tr__dtype_is_half(qkv->dtype)) {
        return false;
    }
    tr_attention_sizes s = tr__attention_sizes(qkv->shape, desc->attr);
    return s.dropout == 0 && !tr__attention_windowed(&s) &&
           shape_of(desc, backward).workspace >= 0;
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_same_real(desc, 0, 1 << LOGARITHMS) && !has_positions(desc, 1) &&
           can(desc, false);
}

static bool supports_backward(const tr_op_desc *desc) {
    return tr__desc_same_real(desc, 1 << 3, 0) && !has_positions(desc, 4) &&
           can(desc, true);
}

// ---- before the first launch

static void print_version(int version, char *text, size_t size) {
    snprintf(text, size, "%d.%d", version / 100, version % 100);
}

static tr_status fail_version(const tr_op_desc *desc, int here, const char *why,
                              tr_error *err) {
    char planned[16], found[64];
    print_version(desc->target.attention, planned, sizeof planned);
    print_version(here, found, sizeof found);
    return here == 0
               ? tr_fail(err, TR_USAGE,
                         "the plan takes attention from cuDNN %s, but %s: install it, "
                         "or set \"execution\": {\"attention\": \"own\"}",
                         planned, why)
               : tr_fail(err, TR_USAGE,
                         "the plan takes attention from cuDNN %s, but this machine has "
                         "%s, which works in other memory: set \"execution\": "
                         "{\"attention\": \"auto\"} to plan with that, or \"own\"",
                         planned, found);
}

static tr_status bind_to(const tr_op_desc *desc, bool backward, tr_error *err) {
    const tr_cuda_attention_library *library = &tr__cuda_driver()->attention;
    tr_cuda_attend_shape shape = shape_of(desc, backward);
    const char *why = NULL;
    int here = library->version(&why);
    return here == desc->target.attention ? library->ready(&shape, err)
                                          : fail_version(desc, here, why, err);
}

static tr_status bind(const tr_op_desc *desc, void *state, tr_error *err) {
    (void)state;
    return bind_to(desc, false, err);
}

static tr_status bind_backward(const tr_op_desc *desc, void *state, tr_error *err) {
    (void)state;
    return bind_to(desc, true, err);
}

// ---- launches

// What a launch gives all samples, and how far apart these are.
typedef struct rows {
    char *first;
    int64_t sample; // bytes
} rows;

static rows rows_of(const void *first, int64_t sample_elements, int64_t bytes) {
    return (rows){(char *)first, sample_elements * bytes};
}

static void *at(const rows *r, int64_t sample, int64_t columns) {
    return r->first ? r->first + sample * r->sample + columns : NULL;
}

static char *aligned(void *workspace) {
    uintptr_t before = (uintptr_t)workspace % (uintptr_t)ALIGNED;
    return (char *)workspace + (before > 0 ? (uintptr_t)ALIGNED - before : 0);
}

typedef struct operands {
    tr_attention_sizes sizes;
    rows qkv, y, lse, dy, dqkv;
} operands;

// From a sample on, and from a head of keys on.
static void launch_part(const tr_cuda_attend_shape *shape, const operands *o,
                        int64_t sample, int64_t pair, const tr_launch *launch) {
    const tr_attention_sizes *s = &o->sizes;
    int64_t bytes = 2, head = pair * s->group, width = s->depth * bytes;
    int64_t keys = s->keys * bytes + pair * width;
    int64_t values = s->values * bytes + pair * width;
    char *delta = aligned(launch->workspace);
    const tr_cuda_attend part = {
        .of = *shape,
        .q = at(&o->qkv, sample, head * width),
        .k = at(&o->qkv, sample, keys),
        .v = at(&o->qkv, sample, values),
        .y = at(&o->y, sample, head * width),
        .lse = at(&o->lse, sample, head * s->context * (int64_t)sizeof(float)),
        .dy = at(&o->dy, sample, head * width),
        .delta = (float *)(void *)delta,
        .dq = at(&o->dqkv, sample, head * width),
        .dk = at(&o->dqkv, sample, keys),
        .dv = at(&o->dqkv, sample, values),
        .workspace = delta + delta_bytes(shape)};
    tr__cuda_attend_by_library(launch, &part);
}

static void launch_parts(const tr_op_desc *desc, bool backward, const operands *o,
                         const tr_launch *launch) {
    tr_cuda_attend_shape shape = shape_of(desc, backward);
    for (int64_t i = 0; i < o->sizes.batch; i += shape.batch) {
        for (int64_t pair = 0; pair < o->sizes.pairs; pair += shape.pairs) {
            launch_part(&shape, o, i, pair, launch);
        }
    }
}

static operands operands_of(const tr_op_desc *desc, int qkv, const tr_launch *launch) {
    enum { HALF_BYTES = 2 };
    tr_attention_sizes s = tr__attention_sizes(desc->in[qkv].shape, desc->attr);
    return (operands){
        .sizes = s,
        .qkv = rows_of(launch->in[qkv], s.context * s.pitch, HALF_BYTES),
    };
}

static void launch_attention(const tr_op_desc *desc, void *state,
                             const tr_launch *launch) {
    (void)state;
    operands o = operands_of(desc, QKV, launch);
    const tr_attention_sizes *s = &o.sizes;
    o.y = rows_of(launch->out[0], s->context * s->width, 2);
    o.lse = rows_of(launch->out[LOGARITHMS], s->heads * s->context, sizeof(float));
    launch_parts(desc, false, &o, launch);
}

static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    (void)state;
    operands o = operands_of(desc, BACKWARD_QKV, launch);
    const tr_attention_sizes *s = &o.sizes;
    o.dy = rows_of(launch->in[0], s->context * s->width, 2);
    o.y = rows_of(launch->in[2], s->context * s->width, 2);
    o.lse = rows_of(launch->in[3], s->heads * s->context, sizeof(float));
    o.dqkv = rows_of(launch->out[0], s->context * s->pitch, 2);
    launch_parts(desc, true, &o, launch);
}

// ---- in words

static void say(const tr_op_desc *desc, const void *state, char *dst, size_t size) {
    char version[16];
    (void)state;
    print_version(desc->target.attention, version, sizeof version);
    snprintf(dst, size, "cuDNN %s", version);
}

static void say_backward(const tr_op_desc *desc, const void *state, char *dst,
                         size_t size) {
    tr_cuda_attend_shape whole = whole_shape(desc, true), shape = shape_of(desc, true);
    char version[16];
    (void)state;
    print_version(desc->target.attention, version, sizeof version);
    snprintf(dst, size,
             "cuDNN %s, deterministic by the gradients of all scores, %lld of %lld "
             "samples and %lld of %lld heads at a time in %.1f MiB",
             version, (long long)shape.batch, (long long)whole.batch,
             (long long)shape.heads, (long long)whole.heads,
             (double)shape.workspace / (1 << 20));
}

const tr_kernel tr__cuda_attention_library = {.name = "attention.cudnn",
                                              .supports = supports,
                                              .cost = tr__attention_cost,
                                              .workspace = workspace,
                                              .bind = bind,
                                              .say = say,
                                              .launch = launch_attention};
const tr_kernel tr__cuda_attention_backward_library = {
    .name = "attention_backward.cudnn",
    .supports = supports_backward,
    .cost = tr__attention_backward_cost,
    .workspace = backward_workspace,
    .bind = bind_backward,
    .say = say_backward,
    .launch = launch_backward};

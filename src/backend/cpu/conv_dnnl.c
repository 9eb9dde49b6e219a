// Convolutions by oneDNN.
//
// Images stay as they are, channels last: oneDNN's kernels are as fast on them as on
// its own blocked layout, and the ops between convolutions read whole channels. Weights
// are brought into the layout that its kernels want in the workspace, at every run
// (less than a microsecond to ten, for up to 64 x 64 channels). Backward convolutions
// cannot add to their result: they write to the workspace, and the way back to the
// result's own layout adds.
//
// What is small is done by one thread: a region of several costs some microseconds.
#include "backend/cpu/conv.h"

#include "backend/cpu/dnnl.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/team.h"
#include "backend/cpu/unit_stride.h"

#include "base/checked.h"
#include "base/memory.h"

#include <omp.h>

enum { ALIGNMENT = 64, ARGS_MAX = 5, WAYS = 2 };

// Operations worth waking a thread for: about ten microseconds.
static const double grain_flops = 1 << 20;

// A primitive and how many threads run it.
typedef struct part {
    tr_primitive of;
    int threads;
} part;

struct tr_conv {
    tr_conv_desc desc;    // what oneDNN computes
    tr_conv_desc strided; // what was asked for
    bool picks;           // oneDNN gets a copy of the pixels that the stride leaves
    bool chosen;          // inner_layout is
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    tr_layout x_layout, y_layout, bias_layout;
    tr_layout weight_layout;                      // as files have it
    tr_layout inner_layout;                       // as the kernels want it
    tr_layout dx_layout;                          // a gradient, before it is added
    tr_layout any_weight;                         // of the output, as oneDNN likes it
    dnnl_memory_t x, y, bias, weight, inner, sum; // without memory of their own
    part ways[WAYS]; // of the convolution; index: accumulate (an output adds by itself)
    part in;         // weight to inner
    part out[WAYS];  // from the workspace to the result; index: accumulate
    bool converts;   // the two layouts of the weight differ
    // Workspace: the weight inside, or the gradient before it is added; the gradient of
    // the bias; the pixels; scratch.
    size_t inner_bytes, bias_bytes, pixel_bytes, scratch_bytes;
};

// oneDNN has bf16 everywhere, but without the instructions far slower than f32.
bool tr__conv_has(tr_dtype type) {
    return type == TR_F32 || (type == TR_BF16 && tr__cpu_has_bf16());
}

static bool is_valid(const tr_conv_desc *d) {
    return tr__conv_has(d->type) && d->batch >= 1 && d->in_h >= 1 && d->in_w >= 1 &&
           d->in_channels >= 1 && d->out_h >= 1 && d->out_w >= 1 &&
           d->out_channels >= 1 && d->kernel_h >= 1 && d->kernel_w >= 1 &&
           d->groups >= 1 && d->in_channels % d->groups == 0 &&
           d->out_channels % d->groups == 0 && d->threads >= 1 &&
           (d->fresh || d->accumulate);
}

static bool is_too_large(const tr_conv_desc *d) {
    const int64_t sides[] = {d->batch, d->in_h, d->in_w, d->in_channels,
                             d->out_channels};
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
        if (sides[i] > INT32_MAX) {
            return true;
        }
    }
    return false;
}

static tr_status refused(const tr_conv_desc *d, dnnl_status_t status, tr_error *err) {
    if (status == dnnl_out_of_memory) {
        return tr_fail(err, TR_MEMORY, "no memory to prepare a convolution");
    }
    return tr_fail(
        err, TR_INTERNAL,
        "oneDNN refused the convolution of %lld x %lld x %lld by %lld x %lld "
        "to %lld channels (status %d)",
        (long long)d->in_h, (long long)d->in_w, (long long)d->in_channels,
        (long long)d->kernel_h, (long long)d->kernel_w, (long long)d->out_channels,
        (int)status);
}

// ---- preparing
static int threads_of(const tr_conv_desc *d) {
    double pixels = (double)d->batch * (double)d->out_h * (double)d->out_w;
    int64_t weights = d->in_channels / d->groups * d->kernel_h * d->kernel_w;
    double each = 2.0 * (double)weights * (double)d->out_channels;
    return tr__threads_worth(pixels * each / grain_flops, d->threads);
}

static int threads_to_reorder(const tr_conv *p, const tr_layout *layout) {
    const tr_conv_desc *d = &p->desc;
    int64_t weights =
        d->out_channels * (d->in_channels / d->groups) * d->kernel_h * d->kernel_w;
    int64_t values = d->batch * d->in_h * d->in_w * d->in_channels;
    return tr__threads_for(layout == &p->x_layout ? values : weights, 1, d->threads);
}

static dnnl_data_type_t type_of(const tr_conv_desc *d) {
    return d->type == TR_BF16 ? dnnl_bf16 : dnnl_f32;
}

// Of the weight and the bias: their gradients are f32.
static dnnl_data_type_t weight_type(const tr_conv_desc *d) {
    return d->kind == TR_CONV_WEIGHT ? dnnl_f32 : type_of(d);
}

// Of the weight, as files have it, or (not `plain`) as oneDNN likes it.
static dnnl_status_t weight_layout(const tr_conv_desc *d, dnnl_data_type_t type,
                                   bool plain, tr_layout *out) {
    const dnnl_dims_t sizes = {d->groups, d->out_channels / d->groups,
                               d->in_channels / d->groups, d->kernel_h, d->kernel_w};
    int grouped = d->groups > 1; // the groups are its first dimension
    dnnl_format_tag_t tag = grouped ? dnnl_goihw : dnnl_oihw;
    return tr__layout_tagged(4 + grouped, sizes + !grouped, type,
                             plain ? tag : dnnl_format_tag_any, out);
}

static dnnl_status_t describe_all(tr_conv *p) {
    const tr_conv_desc *d = &p->desc;
    const dnnl_data_type_t type = type_of(d), of_weight = weight_type(d);
    const dnnl_dims_t x = {d->batch, d->in_channels, d->in_h, d->in_w};
    const dnnl_dims_t y = {d->batch, d->out_channels, d->out_h, d->out_w};
    const dnnl_dims_t bias = {d->out_channels};
    dnnl_status_t status = dnnl_engine_create(&p->engine, dnnl_cpu, 0);
    if (!status) {
        status = dnnl_stream_create(&p->stream, p->engine, dnnl_stream_default_flags);
    }
    status = status ? status : tr__layout_tagged(4, x, type, dnnl_nhwc, &p->x_layout);
    status =
        status ? status : tr__layout_tagged(4, x, dnnl_f32, dnnl_nhwc, &p->dx_layout);
    status = status ? status : tr__layout_tagged(4, y, type, dnnl_nhwc, &p->y_layout);
    status = status ? status : weight_layout(d, of_weight, true, &p->weight_layout);
    status = status ? status : weight_layout(d, type, false, &p->any_weight);
    return status ? status
                  : tr__layout_tagged(1, bias, of_weight, dnnl_a, &p->bias_layout);
}

static dnnl_status_t create_part(tr_conv *p, dnnl_status_t status,
                                 dnnl_primitive_desc_t desc, part *to) {
    status = tr__primitive_create(status, p->engine, desc, &to->of);
    if (to->of.scratch_bytes > p->scratch_bytes) {
        p->scratch_bytes = to->of.scratch_bytes;
    }
    return status;
}

// Padding behind a side: what lies past the last window is none, or less of it.
static int64_t behind(const tr_conv_desc *d, int i, int64_t windows, int64_t kernel,
                      int64_t side) {
    return (windows - 1) * d->stride[i] + d->dilation[i] * (kernel - 1) + 1 - side -
           d->padding[i];
}

static tr_conv_layouts layouts(const tr_conv *p, const tr_layout *x,
                               const tr_layout *weight) {
    const tr_conv_desc *d = &p->desc;
    return (tr_conv_layouts){
        .forward_x = &p->x_layout,
        .forward_weight = &p->any_weight,
        .x = x,
        .weight = weight,
        .y = &p->y_layout,
        .bias = d->bias ? &p->bias_layout : NULL,
        .strides = {d->stride[0], d->stride[1]},
        .dilates = {d->dilation[0] - 1, d->dilation[1] - 1},
        .before = {d->padding[0], d->padding[1]},
        .after = {behind(d, 0, d->out_h, d->kernel_h, d->in_h),
                  behind(d, 1, d->out_w, d->kernel_w, d->in_w)},
    };
}

// accumulate: the convolution adds to its result by itself
static dnnl_status_t create_convolution(tr_conv *p, const tr_layout *x, bool accumulate,
                                        part *to) {
    const tr_conv_desc *d = &p->desc;
    dnnl_query_t weights =
        d->kind == TR_CONV_WEIGHT ? dnnl_query_diff_weights_md : dnnl_query_weights_md;
    dnnl_primitive_desc_t desc = NULL;
    dnnl_primitive_attr_t attributes = NULL;
    tr_layout any = {0};
    dnnl_status_t status = tr__attributes_create(accumulate, &attributes);
    status = status ? status : weight_layout(d, weight_type(d), false, &any);
    if (!status) {
        tr_conv_layouts of = layouts(p, x, p->chosen ? &p->inner_layout : &any);
        status = tr__conv_describe(p->engine, d->kind, &of, attributes, &desc);
    }
    if (!status && !p->chosen) { // by the first way, for both
        status = tr__layout_query(desc, weights, &p->inner_layout);
        p->chosen = !status;
    }
    status = create_part(p, status, desc, to);
    tr__layout_destroy(&any);
    if (attributes) {
        dnnl_primitive_attr_destroy(attributes);
    }
    return status;
}

static dnnl_status_t create_reorder(tr_conv *p, const tr_layout *from,
                                    const tr_layout *to, bool accumulate, part *out) {
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t desc = NULL;
    dnnl_status_t status = tr__attributes_create(accumulate, &attributes);
    out->threads = threads_to_reorder(p, to);
    omp_set_num_threads(out->threads);
    status =
        status ? status : tr__reorder_describe(p->engine, from, to, attributes, &desc);
    status = create_part(p, status, desc, out);
    omp_set_num_threads(p->desc.threads);
    if (attributes) {
        dnnl_primitive_attr_destroy(attributes);
    }
    return status;
}

static dnnl_status_t create_memories(tr_conv *p) {
    const tr_layout *result =
        p->desc.kind == TR_CONV_INPUT ? &p->dx_layout : &p->inner_layout;
    dnnl_status_t status = tr__layout_memory(&p->x_layout, p->engine, &p->x);
    status = status ? status : tr__layout_memory(&p->y_layout, p->engine, &p->y);
    status = status ? status : tr__layout_memory(&p->bias_layout, p->engine, &p->bias);
    status =
        status ? status : tr__layout_memory(&p->weight_layout, p->engine, &p->weight);
    status =
        status ? status : tr__layout_memory(&p->inner_layout, p->engine, &p->inner);
    return status ? status : tr__layout_memory(result, p->engine, &p->sum);
}

static size_t round_up(size_t bytes) {
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

// The output's own way adds to it.
static dnnl_status_t create_output(tr_conv *p) {
    dnnl_status_t status = dnnl_success;
    if (p->desc.fresh) {
        status = create_convolution(p, &p->x_layout, false, &p->ways[0]);
    }
    if (!status && p->desc.accumulate) {
        status = create_convolution(p, &p->x_layout, true, &p->ways[1]);
    }
    return status;
}

// Gradients are written; the way from the workspace to the result adds.
static dnnl_status_t create_input(tr_conv *p) {
    dnnl_status_t status = dnnl_success;
    if (p->desc.fresh) {
        status = create_convolution(p, &p->x_layout, false, &p->ways[0]);
    }
    if (!status && p->desc.accumulate) {
        status = create_convolution(p, &p->dx_layout, false, &p->ways[1]);
        status = status
                     ? status
                     : create_reorder(p, &p->dx_layout, &p->x_layout, true, &p->out[1]);
    }
    return status;
}

static dnnl_status_t create_weight(tr_conv *p) {
    const tr_layout *from = &p->inner_layout, *to = &p->weight_layout;
    dnnl_status_t status = create_convolution(p, &p->x_layout, false, &p->ways[0]);
    if (!status && p->desc.fresh && !tr__layout_equal(from, to)) {
        status = create_reorder(p, from, to, false, &p->out[0]);
    }
    if (!status && p->desc.accumulate) {
        status = create_reorder(p, from, to, true, &p->out[1]);
    }
    return status;
}

static dnnl_status_t create_all(tr_conv *p) {
    static dnnl_status_t (*const create[])(tr_conv *) = {create_output, create_input,
                                                         create_weight};
    bool reads_weight = p->desc.kind != TR_CONV_WEIGHT;
    dnnl_status_t status = describe_all(p);
    status = status ? status : create[p->desc.kind](p);
    p->converts = !status && !tr__layout_equal(&p->inner_layout, &p->weight_layout);
    if (!status && reads_weight && p->converts) {
        status = create_reorder(p, &p->weight_layout, &p->inner_layout, false, &p->in);
    }
    status = status ? status : create_memories(p);
    if (status) {
        return status;
    }
    if (reads_weight ? p->converts : p->out[0].of.primitive || p->out[1].of.primitive) {
        p->inner_bytes = round_up(tr__layout_bytes(&p->inner_layout));
    }
    if (p->desc.kind == TR_CONV_INPUT && p->out[1].of.primitive) {
        p->inner_bytes += round_up(tr__layout_bytes(&p->dx_layout));
    }
    if (p->desc.kind == TR_CONV_WEIGHT && p->desc.bias) {
        p->bias_bytes = round_up(tr__layout_bytes(&p->bias_layout));
    }
    if (p->picks) {
        p->pixel_bytes = round_up(tr__layout_bytes(&p->x_layout));
    }
    return dnnl_success;
}

tr_status tr__conv_create(const tr_conv_desc *desc, tr_conv **out, tr_error *err) {
    *out = NULL;
    if (!is_valid(desc)) {
        return refused(desc, dnnl_invalid_arguments, err);
    }
    if (is_too_large(desc)) {
        return tr_fail(err, TR_USAGE,
                       "a convolution has a side of 2^31 or more: make the micro-batch "
                       "or the model smaller");
    }
    tr_conv *p = tr__calloc(1, sizeof *p);
    if (!p) {
        return refused(desc, dnnl_out_of_memory, err);
    }
    p->desc = p->strided = *desc;
    p->desc.threads = p->strided.threads = threads_of(desc);
    p->picks = tr__unit_stride_wanted(desc);
    if (p->picks) {
        p->desc = tr__unit_stride_desc(&p->strided);
    }
    // oneDNN cuts the work for as many threads as OpenMP would use now.
    int threads = omp_get_max_threads();
    omp_set_num_threads(p->desc.threads);
    dnnl_status_t status = create_all(p);
    omp_set_num_threads(threads);
    if (status) {
        tr__conv_destroy(p);
        return refused(desc, status, err);
    }
    *out = p;
    return TR_OK;
}

void tr__conv_destroy(tr_conv *conv) {
    if (!conv) {
        return;
    }
    part *parts[] = {&conv->ways[0], &conv->ways[1], &conv->in, &conv->out[0],
                     &conv->out[1]};
    dnnl_memory_t memories[] = {conv->x,      conv->y,     conv->bias,
                                conv->weight, conv->inner, conv->sum};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        tr__primitive_destroy(&parts[i]->of);
    }
    for (size_t i = 0; i < sizeof memories / sizeof *memories; i++) {
        tr__tensor_destroy(memories[i]);
    }
    tr_layout *of[] = {&conv->x_layout,    &conv->dx_layout,     &conv->y_layout,
                       &conv->bias_layout, &conv->weight_layout, &conv->inner_layout,
                       &conv->any_weight};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        tr__layout_destroy(of[i]);
    }
    if (conv->stream) {
        dnnl_stream_destroy(conv->stream);
    }
    if (conv->engine) {
        dnnl_engine_destroy(conv->engine);
    }
    tr__free(conv);
}

size_t tr__conv_workspace(const tr_conv *conv) {
    return conv ? conv->inner_bytes + conv->bias_bytes + conv->pixel_bytes +
                      conv->scratch_bytes
                : 0;
}

// ---- running

// A run: where the workspace's parts lie.
typedef struct run {
    tr_conv *conv;
    const tr_conv_operands *operands;
    char *inner, *bias, *pixels, *scratch;
} run;

static dnnl_status_t execute(const run *r, part *p, dnnl_exec_arg_t *args, int count) {
    return tr__primitive_run(&p->of, r->conv->stream, args, count, r->scratch);
}

static dnnl_status_t reorder(const run *r, part *p, dnnl_memory_t from,
                             dnnl_memory_t to) {
    dnnl_exec_arg_t args[ARGS_MAX] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    omp_set_num_threads(p->threads);
    dnnl_status_t status = execute(r, p, args, 2);
    omp_set_num_threads(r->conv->desc.threads);
    return status;
}

// The weight, as the kernels want it.
static dnnl_status_t bring_weight(const run *r) {
    tr_conv *p = r->conv;
    tr__tensor_point(p->weight, r->operands->other);
    if (!p->converts) {
        tr__tensor_point(p->inner, r->operands->other);
        return dnnl_success;
    }
    tr__tensor_point(p->inner, r->inner);
    return reorder(r, &p->in, p->weight, p->inner);
}

static dnnl_status_t run_output(const run *r) {
    tr_conv *p = r->conv;
    dnnl_status_t status = bring_weight(r);
    tr__tensor_point(p->x, r->operands->image);
    tr__tensor_point(p->y, r->operands->result);
    dnnl_exec_arg_t args[ARGS_MAX] = {
        {DNNL_ARG_SRC, p->x}, {DNNL_ARG_WEIGHTS, p->inner}, {DNNL_ARG_DST, p->y}};
    int count = 3;
    if (p->desc.bias) {
        tr__tensor_point(p->bias, r->operands->bias);
        args[count++] = (dnnl_exec_arg_t){DNNL_ARG_BIAS, p->bias};
    }
    return status ? status : execute(r, &p->ways[r->operands->accumulate], args, count);
}

static dnnl_status_t run_input(const run *r) {
    tr_conv *p = r->conv;
    bool adds = r->operands->accumulate;
    char *image = p->converts ? r->inner + round_up(tr__layout_bytes(&p->inner_layout))
                              : r->inner;
    dnnl_status_t status = bring_weight(r);
    tr__tensor_point(p->y, r->operands->image);
    tr__tensor_point(p->sum, image);
    tr__tensor_point(p->x, r->operands->result);
    dnnl_exec_arg_t args[ARGS_MAX] = {{DNNL_ARG_DIFF_DST, p->y},
                                      {DNNL_ARG_WEIGHTS, p->inner},
                                      {DNNL_ARG_DIFF_SRC, adds ? p->sum : p->x}};
    status = status ? status : execute(r, &p->ways[adds], args, 3);
    return status || !adds ? status : reorder(r, &p->out[1], p->sum, p->x);
}

static void put_bias(const run *r) {
    const float *from = (const float *)(const void *)r->bias;
    float *to = r->operands->bias_gradient;
    for (int64_t i = 0; to && i < r->conv->desc.out_channels; i++) {
        to[i] = r->operands->accumulate_bias ? to[i] + from[i] : from[i];
    }
}

// x, or the copy of those of its pixels that are read.
static const void *pixels_of(const run *r) {
    if (!r->conv->picks) {
        return r->operands->other;
    }
    tr__unit_stride_copy(&r->conv->strided, r->operands->other, r->pixels);
    return r->pixels;
}

static dnnl_status_t run_weight(const run *r) {
    tr_conv *p = r->conv;
    part *back = &p->out[r->operands->accumulate];
    tr__tensor_point(p->y, r->operands->image);
    tr__tensor_point(p->x, pixels_of(r));
    tr__tensor_point(p->weight, r->operands->result);
    tr__tensor_point(p->sum,
                     back->of.primitive ? (void *)r->inner : r->operands->result);
    dnnl_exec_arg_t args[ARGS_MAX] = {{DNNL_ARG_DIFF_DST, p->y},
                                      {DNNL_ARG_SRC, p->x},
                                      {DNNL_ARG_DIFF_WEIGHTS, p->sum}};
    int count = 3;
    if (p->desc.bias) {
        tr__tensor_point(p->bias, r->bias);
        args[count++] = (dnnl_exec_arg_t){DNNL_ARG_DIFF_BIAS, p->bias};
    }
    dnnl_status_t status = execute(r, &p->ways[0], args, count);
    if (!status && p->desc.bias) {
        put_bias(r);
    }
    return status || !back->of.primitive ? status : reorder(r, back, p->sum, p->weight);
}

tr_status tr__conv_run(tr_conv *conv, const tr_conv_operands *operands,
                       void *workspace) {
    static dnnl_status_t (*const runs[])(const run *) = {run_output, run_input,
                                                         run_weight};
    tr_held before;
    run r = {.conv = conv, .operands = operands, .inner = workspace};
    r.bias = r.inner + conv->inner_bytes;
    r.pixels = r.bias + conv->bias_bytes;
    r.scratch = r.pixels + conv->pixel_bytes;
    tr__team_hold(conv->desc.threads, &before);
    dnnl_status_t status = runs[conv->desc.kind](&r);
    tr__team_release(conv->desc.threads, &before);
    return tr__dnnl_ran(status);
}

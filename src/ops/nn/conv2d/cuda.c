// Convolutions as products: what the windows of some images see is written into the
// workspace as a matrix, which is multiplied with the filters.
#include "ops/nn/conv2d/cuda.h"

#include "backend/cuda/driver.h"
#include "backend/cuda/kernels.h"
#include "base/checked.h"
#include "ops/nn/conv2d/sizes.h"
#include "ops/nn/linear/cuda_linear.h"

extern const tr_cuda_kernels tr__cuda_kernels_conv2d[];
extern tr_cuda_function tr__cuda_function_windows;
extern tr_cuda_function tr__cuda_function_windows_sum;

// Images whose windows are in the workspace at once: about so many bytes.
enum { WORKSPACE_BYTES = 64 << 20 };

typedef struct images {
    tr_conv2d_sizes s;
    int64_t wide;    // weights of a filter
    int64_t windows; // of an image
    int64_t most;    // images at once
    bool direct;     // a window is a pixel: the images are the matrix
    tr_dtype real;
} images;

static images images_of(const tr_op_desc *desc, tr_conv2d_sizes s) {
    images m = {.s = s,
                .wide = s.in * s.p * s.q,
                .windows = s.rows * s.columns,
                .real = desc->in[0].dtype};
    int64_t bytes = m.wide * m.windows * (int64_t)tr_dtype_bytes(m.real);
    int64_t most = bytes < WORKSPACE_BYTES ? WORKSPACE_BYTES / bytes : 1;
    m.direct = s.p == 1 && s.q == 1 && s.stride[0] == 1 && s.stride[1] == 1 &&
               s.padding[0] == 0 && s.padding[1] == 0;
    m.most = m.direct ? s.batch : tr__min_i64(most, s.batch);
    return m;
}

static size_t workspace_of(const tr_op_desc *desc, tr_conv2d_sizes s) {
    images m = images_of(desc, s);
    size_t bytes = tr_dtype_bytes(m.real);
    return m.direct ? 0 : (size_t)(m.most * m.windows * m.wide) * bytes;
}

static int64_t image_elements(const images *m) {
    return m->s.height * m->s.width * m->s.in;
}

// Image `first` of x, and what belongs to it of y.
static void *image_at(const images *m, const void *x, int64_t first) {
    size_t bytes = tr_dtype_bytes(m->real);
    return (char *)x + (size_t)(first * image_elements(m)) * bytes;
}

static void *output_at(const images *m, const void *y, int64_t first) {
    size_t bytes = tr_dtype_bytes(m->real);
    return (char *)y + (size_t)(first * m->windows * m->s.out) * bytes;
}

static tr_cuda_windows_args windows_of(const images *m, int64_t count) {
    const tr_conv2d_sizes *s = &m->s;
    return (tr_cuda_windows_args){.batch = count,
                                  .height = s->height,
                                  .width = s->width,
                                  .in = s->in,
                                  .rows = s->rows,
                                  .columns = s->columns,
                                  .p = s->p,
                                  .q = s->q,
                                  .stride = {s->stride[0], s->stride[1]},
                                  .padding = {s->padding[0], s->padding[1]},
                                  .dilation = {s->dilation[0], s->dilation[1]},
                                  .real = (int32_t)m->real};
}

// The matrix of `count` images from x on.
static const void *see(const tr_launch *launch, const images *m, void *x,
                       int64_t count) {
    if (m->direct) {
        return x;
    }
    tr_cuda_windows_args args = windows_of(m, count);
    args.image = x;
    args.windows = launch->workspace;
    tr__cuda_launch(launch, &tr__cuda_function_windows,
                    tr__cuda_each(count * m->windows * m->wide), &args, sizeof args);
    return args.windows;
}

// Element `count` behind `from`.
static void *behind(const void *from, int64_t count, tr_dtype type) {
    return (char *)from + (size_t)count * tr_dtype_bytes(type);
}

// A product for each group, on its columns of the matrix and of y.
static void multiply_groups(const tr_launch *launch, const images *m,
                            const tr_cuda_product *whole, const int64_t step[3]) {
    for (int64_t g = 0; g < m->s.groups; g++) {
        tr_cuda_product product = *whole;
        product.a = behind(whole->a, g * step[0], whole->real);
        product.b = behind(whole->b, g * step[1], whole->real);
        product.c = behind(whole->c, g * step[2], whole->c_real);
        tr__cuda_multiply(launch, &product);
    }
}

static void launch_output(const tr_op_desc *desc, void *state,
                          const tr_launch *launch) {
    (void)state;
    images m = images_of(desc, tr__conv2d_output_sizes(desc));
    int64_t out = m.s.out, part = out / m.s.groups, seen_part = m.wide / m.s.groups;
    for (int64_t first = 0; first < m.s.batch; first += m.most) {
        int64_t count = tr__min_i64(m.most, m.s.batch - first);
        const void *seen = see(launch, &m, image_at(&m, launch->in[0], first), count);
        multiply_groups(launch, &m,
                        &(tr_cuda_product){.m = count * m.windows,
                                           .n = part,
                                           .k = seen_part,
                                           .a = seen,
                                           .b = launch->in[1],
                                           .c = output_at(&m, launch->out[0], first),
                                           .real = m.real,
                                           .c_real = m.real,
                                           .a_row = m.wide,
                                           .b_row = seen_part,
                                           .c_row = out,
                                           .b_transposed = true,
                                           .beta = launch->accumulate & 1},
                        (int64_t[]){seen_part, part * seen_part, part});
    }
    if (tr__conv2d_has_bias(desc)) {
        tr__cuda_bias(launch, (tr_cuda_bias_args){.y = launch->out[0],
                                                  .real = (int32_t)m.real,
                                                  .y_real = (int32_t)m.real,
                                                  .bias = launch->in[2],
                                                  .count = m.s.batch * m.windows * out,
                                                  .width = out,
                                                  .pitch = out});
    }
}

static void launch_input(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    images m = images_of(desc, tr__conv2d_input_sizes(desc));
    int64_t out = m.s.out, part = out / m.s.groups, seen_part = m.wide / m.s.groups;
    bool add = launch->accumulate & 1;
    for (int64_t first = 0; first < m.s.batch; first += m.most) {
        int64_t count = tr__min_i64(m.most, m.s.batch - first);
        tr_cuda_windows_args args = windows_of(&m, count);
        args.image = image_at(&m, launch->out[0], first);
        args.windows = m.direct ? args.image : launch->workspace;
        args.add = add;
        multiply_groups(launch, &m,
                        &(tr_cuda_product){.m = count * m.windows,
                                           .n = seen_part,
                                           .k = part,
                                           .a = output_at(&m, launch->in[0], first),
                                           .b = launch->in[1],
                                           .c = args.windows,
                                           .real = m.real,
                                           .c_real = m.real,
                                           .a_row = out,
                                           .b_row = seen_part,
                                           .c_row = m.wide,
                                           .beta = m.direct && add},
                        (int64_t[]){part, part * seen_part, seen_part});
        if (!m.direct) {
            tr__cuda_launch(launch, &tr__cuda_function_windows_sum,
                            tr__cuda_each(count * image_elements(&m)), &args,
                            sizeof args);
        }
    }
}

static void put_weight(const tr_launch *launch, const images *m) {
    int64_t out = m->s.out, part = out / m->s.groups, seen_part = m->wide / m->s.groups;
    for (int64_t first = 0; first < m->s.batch; first += m->most) {
        int64_t count = tr__min_i64(m->most, m->s.batch - first);
        const void *seen = see(launch, m, image_at(m, launch->in[1], first), count);
        multiply_groups(launch, m,
                        &(tr_cuda_product){.m = part,
                                           .n = seen_part,
                                           .k = count * m->windows,
                                           .a = output_at(m, launch->in[0], first),
                                           .b = seen,
                                           .c = launch->out[0],
                                           .real = m->real,
                                           .c_real = TR_F32,
                                           .a_row = out,
                                           .b_row = m->wide,
                                           .c_row = seen_part,
                                           .a_transposed = true,
                                           .beta = first > 0 || launch->accumulate & 1},
                        (int64_t[]){part, seen_part, part * seen_part});
    }
}

static void launch_weight(const tr_op_desc *desc, void *state,
                          const tr_launch *launch) {
    (void)state;
    images m = images_of(desc, tr__conv2d_weight_sizes(desc));
    if (launch->out[0]) {
        put_weight(launch, &m);
    }
    if (launch->out[1]) {
        tr__cuda_column_sums(
            launch,
            (tr_cuda_column_sums_args){.x = launch->in[0],
                                       .rows = m.s.batch * m.windows,
                                       .width = m.s.out,
                                       .pitch = m.s.out,
                                       .real = (int32_t)m.real,
                                       .sums = launch->out[1],
                                       .add = launch->accumulate >> 1 & 1},
            launch->workspace);
    }
}

static size_t output_workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    return workspace_of(desc, tr__conv2d_output_sizes(desc));
}

static size_t input_workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    return workspace_of(desc, tr__conv2d_input_sizes(desc));
}

// The bias's sums follow when the weight is done.
static size_t weight_workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    images m = images_of(desc, tr__conv2d_weight_sizes(desc));
    size_t bytes = workspace_of(desc, m.s);
    bool bias = desc->out_count > 1 && desc->out[1].dtype != TR_NONE;
    size_t sums = bias ? tr__cuda_column_sums_bytes(m.s.batch * m.windows, m.s.out) : 0;
    return bytes > sums ? bytes : sums;
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_same_real(desc, 0, 0);
}

// Gradients of parameters are f32.
static bool supports_weight(const tr_op_desc *desc) {
    return tr__desc_same_real(desc, 0, 1 << 0 | 1 << 1);
}

static const tr_kernel output = {.name = "conv2d.cuda",
                                 .supports = supports,
                                 .cost = tr__conv2d_output_cost,
                                 .workspace = output_workspace,
                                 .launch = launch_output};
static const tr_kernel input = {.name = "conv2d_backward_input.cuda",
                                .supports = supports,
                                .cost = tr__conv2d_input_cost,
                                .workspace = input_workspace,
                                .launch = launch_input};
static const tr_kernel weight = {.name = "conv2d_backward_weight.cuda",
                                 .supports = supports_weight,
                                 .cost = tr__conv2d_weight_cost,
                                 .workspace = weight_workspace,
                                 .launch = launch_weight};

const tr_cuda_kernels tr__cuda_kernels_conv2d[] = {
    {&tr__op_conv2d, &output},
    {&tr__op_conv2d_backward_input, &input},
    {&tr__op_conv2d_backward_weight, &weight},
    {NULL, NULL},
};

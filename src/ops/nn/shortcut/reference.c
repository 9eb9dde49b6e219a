#include "ops/nn/shortcut/shortcut.h"
#include "ops/operand.h"

#include <string.h>

extern const tr_kernel tr__shortcut_reference, tr__shortcut_backward_reference;

// to [count] = from, or +=.
static void put(float *to, const float *from, int64_t count, bool add) {
    for (int64_t c = 0; c < count; c++) {
        to[c] = add ? to[c] + from[c] : from[c];
    }
}

static int stride_of(const tr_op_desc *desc) {
    tr_shortcut_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    return attr.stride;
}

// Pixel of the image that pixel `i` of what is left of it was.
static int64_t source(tr_shape image, tr_shape left, int64_t stride, int64_t i) {
    int64_t column = i % left.dim[2], row = i / left.dim[2] % left.dim[1];
    int64_t sample = i / left.dim[2] / left.dim[1];
    return (sample * image.dim[1] + row * stride) * image.dim[2] + column * stride;
}

static void shortcut(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_shape xs = desc->in[0].shape, ys = desc->out[0].shape;
    const float *x = launch->in[0]; // [B, H, W, C]
    float *y = launch->out[0];      // [B, H', W', C']
    bool add = launch->accumulate & 1;
    for (int64_t i = 0; i < tr__shape_rows(ys); i++) {
        const float *from = x + source(xs, ys, stride_of(desc), i) * xs.dim[3];
        float *to = y + i * ys.dim[3];
        put(to, from, xs.dim[3], add);
        for (int64_t c = xs.dim[3]; c < ys.dim[3] && !add; c++) {
            to[c] = 0;
        }
    }
}

static void backward(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    tr_shape xs = desc->out[0].shape, ys = desc->in[0].shape;
    const float *dy = launch->in[0];
    float *dx = launch->out[0];
    bool add = launch->accumulate & 1;
    if (!add) {
        memset(dx, 0, (size_t)tr_tensor_bytes(desc->out[0]));
    }
    for (int64_t i = 0; i < tr__shape_rows(ys); i++) {
        put(dx + source(xs, ys, stride_of(desc), i) * xs.dim[3], dy + i * ys.dim[3],
            xs.dim[3], add);
    }
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 0, out);
}

const tr_kernel tr__shortcut_reference = {
    .name = "shortcut.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = shortcut,
};

const tr_kernel tr__shortcut_backward_reference = {
    .name = "shortcut_backward.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = backward,
};

#include "ops/nn/positions.h"
#include "ops/nn/rope/rope.h"
#include "ops/operand.h"

#include <math.h>
#include <string.h>

extern const tr_kernel tr__rope_reference, tr__rope_backward_reference;

static void put(float *to, double value, bool add) {
    *to = (float)(add ? *to + value : value);
}

// x, y: [D], of one head.
static void turn_head(const tr_rope_attr *attr, int64_t position, int direction,
                      const float *x, float *y, bool add) {
    int64_t half = attr->depth / 2;
    double size = attr->scaling == TR_ROPE_YARN ? attr->attention : 1;
    for (int64_t j = 0; j < half; j++) {
        double angle = (double)position * tr__rope_frequency(attr, j);
        double c = size * cos(angle), s = direction * size * sin(angle);
        double low = x[j], high = x[j + half];
        put(&y[j], low * c - high * s, add);
        put(&y[j + half], high * c + low * s, add);
    }
}

static void turn(const tr_op_desc *desc, const tr_launch *launch, int direction) {
    const float *x = launch->in[0]; // [B, S, W]
    float *y = launch->out[0];      // [B, S, W]
    tr_rope_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    int64_t context = desc->in[0].shape.dim[1], width = desc->in[0].shape.dim[2];
    int64_t turned = (int64_t)attr.heads * attr.depth;
    const int32_t *positions = tr__launch_positions(desc, launch, 1);
    bool add = launch->accumulate & 1;
    for (int64_t r = 0; r < desc->in[0].shape.dim[0] * context; r++) {
        int64_t place = positions ? positions[r] : launch->run->position + r % context;
        for (int64_t c = 0; c < turned; c += attr.depth) {
            turn_head(&attr, place, direction, x + r * width + c, y + r * width + c,
                      add);
        }
        for (int64_t c = turned; c < width; c++) {
            put(&y[r * width + c], x[r * width + c], add);
        }
    }
}

static void launch_rope(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    turn(desc, launch, 1);
}

static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    (void)state;
    turn(desc, launch, -1);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 3, out);
}

const tr_kernel tr__rope_reference = {
    .name = "rope.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = launch_rope,
};

const tr_kernel tr__rope_backward_reference = {
    .name = "rope_backward.reference",
    .supports = tr__desc_f32,
    .cost = cost,
    .launch = launch_backward,
};

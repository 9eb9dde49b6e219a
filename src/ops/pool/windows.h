// The windows of a pooling.
#ifndef TR_OPS_POOL_WINDOWS_H
#define TR_OPS_POOL_WINDOWS_H

#include "ops/operand.h"
#include "ops/pool/pool.h"

#include <string.h>

typedef struct tr_pool_sizes {
    int64_t batch, height, width, channels; // x
    int64_t rows, columns;                  // y
    int64_t kernel_h, kernel_w, stride, padding;
    bool max;
} tr_pool_sizes;

// Windows along a side; 0: none fit.
static inline int64_t tr__pool_windows(const tr_pool_attr *attr, int64_t side) {
    int64_t room = side + 2 * (int64_t)attr->padding - attr->kernel;
    return attr->kernel == 0 ? 1 : room < 0 ? 0 : room / attr->stride + 1;
}

static inline tr_pool_sizes tr__pool_sizes(const tr_op_desc *desc, tr_shape x) {
    tr_pool_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    bool all = attr.kernel == 0;
    return (tr_pool_sizes){x.dim[0],
                           x.dim[1],
                           x.dim[2],
                           x.dim[3],
                           tr__pool_windows(&attr, x.dim[1]),
                           tr__pool_windows(&attr, x.dim[2]),
                           all ? x.dim[1] : attr.kernel,
                           all ? x.dim[2] : attr.kernel,
                           all ? 1 : attr.stride,
                           all ? 0 : attr.padding,
                           attr.kind == TR_POOL_MAX};
}

// What of the image window (i, j) covers.
typedef struct tr_window {
    int64_t top, bottom, left, right; // [top, bottom) x [left, right)
} tr_window;

static inline tr_window tr__pool_window(const tr_pool_sizes *s, int64_t i, int64_t j) {
    int64_t top = i * s->stride - s->padding, left = j * s->stride - s->padding;
    int64_t bottom = top + s->kernel_h, right = left + s->kernel_w;
    return (tr_window){top < 0 ? 0 : top, bottom > s->height ? s->height : bottom,
                       left < 0 ? 0 : left, right > s->width ? s->width : right};
}

static inline int64_t tr__pool_at(const tr_pool_sizes *s, int64_t b, int64_t i,
                                  int64_t j) {
    return ((b * s->height + i) * s->width + j) * s->channels;
}

#endif

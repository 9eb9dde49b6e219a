// The windows of a pooling, for kernels on the host and on devices.
#ifndef TR_OPS_NN_POOL_WINDOWS_H
#define TR_OPS_NN_POOL_WINDOWS_H

#include "base/device.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tr_pool_sizes {
    int64_t batch, height, width, channels; // x
    int64_t rows, columns;                  // y
    int64_t kernel_h, kernel_w, stride, padding;
    bool max;
} tr_pool_sizes;

// What of the image window (i, j) covers.
typedef struct tr_window {
    int64_t top, bottom, left, right; // [top, bottom) x [left, right)
} tr_window;

TR_DEVICE static inline tr_window tr__pool_window(const tr_pool_sizes *s, int64_t i,
                                                  int64_t j) {
    int64_t top = i * s->stride - s->padding, left = j * s->stride - s->padding;
    int64_t bottom = top + s->kernel_h, right = left + s->kernel_w;
    tr_window w = {top < 0 ? 0 : top, bottom > s->height ? s->height : bottom,
                   left < 0 ? 0 : left, right > s->width ? s->width : right};
    return w;
}

TR_DEVICE static inline int64_t tr__pool_at(const tr_pool_sizes *s, int64_t b,
                                            int64_t i, int64_t j) {
    return ((b * s->height + i) * s->width + j) * s->channels;
}

#endif

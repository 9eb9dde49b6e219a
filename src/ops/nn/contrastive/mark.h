// The numbers of texts behind their embeddings in the pool, and places in a group; for
// the host and for devices.
#ifndef TR_OPS_NN_CONTRASTIVE_MARK_H
#define TR_OPS_NN_CONTRASTIVE_MARK_H

#include "base/device.h"

#include <stdint.h>

// Places of a text in its group.
enum { TR_ANCHOR, TR_POSITIVE };

// What is behind a text's embedding in the pool.
enum { TR_TEXT_MARK = 2 };

// The number of a text as two floats, which hold it exactly; the first is above 0.
TR_DEVICE static inline void tr__text_mark(int32_t number, float mark[TR_TEXT_MARK]) {
    uint32_t bits = (uint32_t)number;
    mark[0] = (float)(bits & 0xffff) + 1;
    mark[1] = (float)(bits >> 16);
}

TR_DEVICE static inline int64_t tr__text_marked(const float mark[TR_TEXT_MARK]) {
    double number = 65536.0 * (double)mark[1] + (double)mark[0] - 1;
    return number >= 0 && number < 4294967296.0 ? (int64_t)number : -1;
}

#endif

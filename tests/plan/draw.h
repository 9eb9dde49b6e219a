#ifndef TEST_PLAN_DRAW_H
#define TEST_PLAN_DRAW_H

#include "base/rng.h"

#include <stdbool.h>

// Draws of one request, one after the other.
typedef struct draws {
    uint64_t request, next;
} draws;

static inline int64_t draw(draws *d, int64_t bound) {
    return (int64_t)tr__draw_below((uint64_t)bound, d->next++, 1, d->request);
}

static inline bool one_in(draws *d, int64_t n) {
    return draw(d, n) == 0;
}

#endif

// Elementwise loops over contiguous tensors, whole vectors first, then the rest.
//
// The function is a constant at every call, so the compiler inlines it into the loop.
#ifndef TR_BACKEND_CPU_SIMD_MAP_H
#define TR_BACKEND_CPU_SIMD_MAP_H

#include "backend/cpu/real.h"

#include <stdbool.h>

// The first `count` elements, up to a whole vector; zeros follow.
static inline tr_vf tr_v_load_some_r(const tr_real *p, int count) {
    return count == TR_VW ? tr_v_load_r(p) : tr_v_load_part_r(p, count, 0);
}

// The first `count` lanes go to p, or are added to what is there.
static inline void tr_v_put_some_r(tr_real *p, tr_vf v, int count, bool add) {
    v = add ? tr_v_load_some_r(p, count) + v : v;
    if (count == TR_VW) {
        tr_v_store_r(p, v);
    } else {
        tr_v_store_part_r(p, v, count);
    }
}

// Elements of the vector that begins at element `i` of `count`.
static inline int tr_v_left(int64_t count, int64_t i) {
    return count - i < TR_VW ? (int)(count - i) : TR_VW;
}

typedef tr_vf (*tr_v_function2)(tr_vf a, tr_vf b);

static inline tr_vf tr_v_first(tr_vf a, tr_vf b) {
    (void)b;
    return a;
}

static inline tr_vf tr_v_add(tr_vf a, tr_vf b) {
    return a + b;
}

// out[i] = f(a[i], b[i]), or += with `add`. a, b, out: [count]; `out` may be `a` or
// `b`.
__attribute__((always_inline)) static inline void
tr_v_map2(tr_v_function2 f, const tr_real *a, const tr_real *b, tr_real *out,
          int64_t count, bool add) {
    int64_t i = 0;
    for (; i + TR_VW <= count; i += TR_VW) {
        tr_vf value = f(tr_v_load_r(a + i), tr_v_load_r(b + i));
        tr_v_store_r(out + i, add ? tr_v_load_r(out + i) + value : value);
    }
    int rest = (int)(count - i);
    if (rest > 0) {
        tr_vf value =
            f(tr_v_load_part_r(a + i, rest, 0), tr_v_load_part_r(b + i, rest, 0));
        value = add ? tr_v_load_part_r(out + i, rest, 0) + value : value;
        tr_v_store_part_r(out + i, value, rest);
    }
}

// out[i] += from[i], or = without `add`. from, out: [count].
static inline void tr_v_add_to(const tr_real *from, float *out, int64_t count,
                               bool add) {
    int64_t i = 0;
    for (; i + TR_VW <= count; i += TR_VW) {
        tr_vf value = tr_v_load_r(from + i);
        tr_v_store(out + i, add ? tr_v_load(out + i) + value : value);
    }
    for (; i < count; i++) {
        out[i] = add ? out[i] + tr_r_get(from[i]) : tr_r_get(from[i]);
    }
}

#endif

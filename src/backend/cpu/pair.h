// A bf16 pair: what a kernel's own products multiply at once. In f32 a "pair" is one
// number. What is compiled once more for tensors of bf16 and processors that multiply
// pairs of them (AVX512-BF16; cmake/kernels.cmake, with TR_PAIRS defined) has two
// numbers in it, which follow each other along the steps of the product, the first in
// the low half. Sums are f32 in both.
#ifndef TR_BACKEND_CPU_PAIR_H
#define TR_BACKEND_CPU_PAIR_H

#include "backend/cpu/isa.h"
#include "backend/cpu/simd.h"

#if defined(TR_PAIRS)
enum { TR_PAIR_STEPS = 2 };
typedef uint32_t tr_pair;
typedef tr_vu tr_vc;

static inline tr_vc tr_v_set_c(tr_pair x) {
    return tr_v_set_u(x);
}

// Can this processor add up such products?
static inline bool tr_pairs_run(void) {
    return tr__cpu_has_bf16();
}

// sum + the products of a and b. Both products of a pair are added; what is too small
// to be a normal number counts as 0.
static inline tr_vf tr_v_add_c(tr_vf sum, tr_vc a, tr_vc b) {
    return (tr_vf)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b);
}
#else
enum { TR_PAIR_STEPS = 1 };
typedef float tr_pair;
typedef tr_vf tr_vc;

static inline tr_vc tr_v_set_c(tr_pair x) {
    return tr_v_set(x);
}

static inline bool tr_pairs_run(void) {
    return true;
}

static inline tr_vf tr_v_add_c(tr_vf sum, tr_vc a, tr_vc b) {
    return sum + a * b;
}
#endif

_Static_assert(sizeof(tr_pair) == sizeof(float), "a vector of pairs has TR_VW of them");

static inline tr_vc tr_v_load_c(const tr_pair *p) {
    tr_vc v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void tr_v_store_c(tr_pair *p, tr_vc v) {
    memcpy(p, &v, sizeof v);
}

#endif

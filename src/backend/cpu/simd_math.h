// Functions on vectors of floats, beyond the exponential of simd.h.
#ifndef TR_BACKEND_CPU_SIMD_MATH_H
#define TR_BACKEND_CPU_SIMD_MATH_H

#include "backend/cpu/simd.h"

// 1 / (1 + e^-x), within a few units in the last place; x at or below -88.3 gives 0.
static inline tr_vf tr_v_sigmoid(tr_vf x) {
    return 1.0f / (1.0f + tr_v_exp(-x));
}

// erf(x) / x for |x| <= 1 as a polynomial in x^2, relative error 2^-29 before rounding
// (a fit of this project: reweighted least squares at Chebyshev points).
static inline tr_vf tr_v_erf_small(tr_vf x) {
    tr_vf z = x * x;
    tr_vf p = tr_v_set(7.853854890e-05f);
    p = p * z - 8.010191668e-04f;
    p = p * z + 5.188327463e-03f;
    p = p * z - 2.685381182e-02f;
    p = p * z + 1.128358515e-01f;
    p = p * z - 3.761262582e-01f;
    p = p * z + 1.128379166e+00f;
    return p * x;
}

// erf(x) for 1 <= x <= 4 as 1 - e^-p(x), error 2^-29 before rounding (fitted likewise).
static inline tr_vf tr_v_erf_large(tr_vf x) {
    tr_vf p = tr_v_set(-1.855739830e-04f);
    p = p * x + 2.939607061e-03f;
    p = p * x - 2.180531744e-02f;
    p = p * x + 1.030373670e-01f;
    p = p * x + 6.382256791e-01f;
    p = p * x + 1.127040035e+00f;
    p = p * x + 3.537197613e-04f;
    return 1.0f - tr_v_exp(-p);
}

// The error function, within 2^-23; +-1 from |x| = 4 on (where it is 1 to f32). NaN
// stays.
static inline tr_vf tr_v_erf(tr_vf x) {
    const tr_vi sign = (tr_vi)tr_v_set(-0.0f);
    tr_vf size = (tr_vf)((tr_vi)x & ~sign);
    size = tr_v_min(tr_v_set(4.0f), size); // NaN stays
    tr_vf large = tr_v_erf_large(size);
    tr_vf value = tr_v_select(size < tr_v_set(1.0f), tr_v_erf_small(size), large);
    return (tr_vf)((tr_vi)value | ((tr_vi)x & sign));
}

// tanh x within a few units in the last place. Below 5/8, where 1 - 2 / (e^2x + 1)
// would cancel: the first five terms of Lambert's continued fraction x / (1 + x^2 / (3
// + x^2 / (5 + ...))). NaN stays.
static inline tr_vf tr_v_tanh(tr_vf x) {
    const tr_vi sign = (tr_vi)tr_v_set(-0.0f);
    tr_vf size = (tr_vf)((tr_vi)x & ~sign), z = x * x;
    tr_vf small = x * ((z + 105.0f) * z + 945.0f) / ((15.0f * z + 420.0f) * z + 945.0f);
    tr_vf e = tr_v_exp(2.0f * tr_v_min(tr_v_set(20.0f), size)); // NaN stays
    tr_vf large = 1.0f - 2.0f / (e + 1.0f);
    large = (tr_vf)((tr_vi)large | ((tr_vi)x & sign));
    return tr_v_select(size < tr_v_set(0.625f), small, large);
}

#endif

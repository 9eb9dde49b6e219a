#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/real.h"
#include "backend/cpu/simd_map.h"
#include "backend/cpu/simd_math.h"
#include "ops/nn/gelu/gelu.h"
#include "ops/operand.h"

extern const tr_kernel TR_ISA_NAME(tr__gelu_kernel);
extern const tr_kernel TR_ISA_NAME(tr__gelu_backward_kernel);

#define ROOT_HALF      0.70710678118654752440f
#define ROOT_2_OVER_PI 0.79788456080286535588f
#define CUBIC          0.044715f

// An element costs about as much as this many moved ones.
enum { GELU_WEIGHT = 4 };

// 0, but NaN of an infinity, whose slope has a product of it with 0.
static tr_vf if_finite(tr_vf x) {
    return 0 * x;
}

// x within [-10, 10], where both forms have reached 0 and x: nothing overflows inside.
static tr_vf bounded(tr_vf x) {
    return tr_v_max(tr_v_set(-10), tr_v_min(tr_v_set(10), x)); // NaN stays
}

// (1 + tanh u) / 2 is the logistic function of 2 u: one exponential, no cancellation.
static tr_vf tanh_gate(tr_vf x) {
    return tr_v_sigmoid(2 * ROOT_2_OVER_PI * x * (1 + CUBIC * x * x));
}

static tr_vf erf_gate(tr_vf x) {
    return 0.5f + 0.5f * tr_v_erf(ROOT_HALF * x);
}

static tr_vf gelu_tanh(tr_vf x, tr_vf same) {
    (void)same;
    return x * tanh_gate(bounded(x));
}

static tr_vf gelu_erf(tr_vf x, tr_vf same) {
    (void)same;
    return x * erf_gate(x);
}

// With e = e^-|2 u| the gate g is 1 / (1 + e) or, for x < 0, e / (1 + e), and g (1 - g)
// is e / (1 + e)^2 on both sides, without the cancellation of 1 - g.
static tr_vf gelu_tanh_backward(tr_vf dy, tr_vf all) {
    tr_vf x = bounded(all);
    tr_vf square = x * x;
    tr_vf twice = 2 * ROOT_2_OVER_PI * x * (1 + CUBIC * square);
    tr_vf e = tr_v_exp(tr_v_min(twice, -twice));
    tr_vf high = 1 / (1 + e), low = e * high;
    tr_vf inner = 2 * ROOT_2_OVER_PI * (1 + 3 * CUBIC * square);
    tr_vf gate = tr_v_select(x < tr_v_set(0), low, high);
    return dy * (gate + x * inner * (low * high) + if_finite(all));
}

static tr_vf gelu_erf_backward(tr_vf dy, tr_vf all) {
    tr_vf x = bounded(all);
    tr_vf density = 0.5f * ROOT_2_OVER_PI * tr_v_exp(-0.5f * x * x);
    return dy * (erf_gate(x) + x * density + if_finite(all));
}

static void gelu_range(tr_gelu_form form, const tr_real *x, tr_real *y, int64_t count,
                       bool add) {
    if (form == TR_GELU_TANH) {
        tr_v_map2(gelu_tanh, x, x, y, count, add);
    } else {
        tr_v_map2(gelu_erf, x, x, y, count, add);
    }
}

static void gelu_backward_range(tr_gelu_form form, const tr_real *dy, const tr_real *x,
                                tr_real *dx, int64_t count, bool add) {
    if (form == TR_GELU_TANH) {
        tr_v_map2(gelu_tanh_backward, dy, x, dx, count, add);
    } else {
        tr_v_map2(gelu_erf_backward, dy, x, dx, count, add);
    }
}

static void launch_gelu(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const tr_gelu_attr *attr = (const void *)desc->attr;
    const tr_real *x = launch->in[0]; // [count]
    tr_real *y = launch->out[0];      // [count]
    int64_t count = tr_shape_count(desc->in[0].shape);
    int threads = tr__threads_for(count, GELU_WEIGHT, desc->target.workers);
    bool add = launch->accumulate & 1;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        tr_range r = tr__range_part(count, TR_VW, t, threads);
        gelu_range(attr->form, x + r.begin, y + r.begin, r.end - r.begin, add);
    }
}

static void launch_gelu_backward(const tr_op_desc *desc, void *state,
                                 const tr_launch *launch) {
    (void)state;
    const tr_gelu_attr *attr = (const void *)desc->attr;
    const tr_real *dy = launch->in[0], *x = launch->in[1]; // [count]
    tr_real *dx = launch->out[0];                          // [count]
    int64_t count = tr_shape_count(desc->in[0].shape);
    int threads = tr__threads_for(count, GELU_WEIGHT, desc->target.workers);
    bool add = launch->accumulate & 1;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        tr_range r = tr__range_part(count, TR_VW, t, threads);
        gelu_backward_range(attr->form, dy + r.begin, x + r.begin, dx + r.begin,
                            r.end - r.begin, add);
    }
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_real(desc, TR_REAL, 0, 0);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 30, out);
}

const tr_kernel TR_ISA_NAME(tr__gelu_kernel) = {
    .name = "gelu.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .launch = launch_gelu,
};

const tr_kernel TR_ISA_NAME(tr__gelu_backward_kernel) = {
    .name = "gelu_backward.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .launch = launch_gelu_backward,
};

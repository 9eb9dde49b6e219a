#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/real.h"
#include "backend/cpu/simd_map.h"
#include "backend/cpu/simd_math.h"
#include "ops/nn/pointwise/pointwise.h"
#include "ops/operand.h"

#include <math.h>
#include <string.h>

extern const tr_kernel TR_ISA_NAME(tr__pointwise_kernel);
extern const tr_kernel TR_ISA_NAME(tr__pointwise_backward_kernel);

// An element costs about as much as this many moved ones: by vectors, and by the
// functions of the C library.
enum { VECTOR_WEIGHT = 4, LIBRARY_WEIGHT = 60 };

typedef struct numbers {
    tr_vf a, b;
} numbers;

// f(x), or f(x) dy. The kind is a constant at each call.
typedef tr_vf (*function)(tr_vf x, tr_vf dy, numbers n);

static tr_vf each(float (*f)(float), tr_vf x) {
    for (int i = 0; i < TR_VW; i++) {
        x[i] = f(x[i]);
    }
    return x;
}

static tr_vf powers(tr_vf x, float a) {
    for (int i = 0; i < TR_VW; i++) {
        x[i] = powf(x[i], a);
    }
    return x;
}

static tr_vf clamped(tr_vf x, tr_vf low, tr_vf high) {
    return tr_v_min(high, tr_v_max(low, x)); // NaN stays
}

static tr_vf six(tr_vf x) {
    return clamped(x + 3.0f, tr_v_set(0), tr_v_set(6));
}

static tr_vf zero(void) {
    return tr_v_set(0);
}

static tr_vf one(void) {
    return tr_v_set(1);
}

static tr_vf sigmoid(tr_vf x, tr_vf dy, numbers n) {
    (void)dy;
    (void)n;
    return tr_v_sigmoid(x);
}

static tr_vf sigmoid_slope(tr_vf x, tr_vf dy, numbers n) {
    (void)n;
    return dy * (tr_v_sigmoid(x) * (1 - tr_v_sigmoid(x)));
}

static tr_vf clamp(tr_vf x, tr_vf dy, numbers n) {
    (void)dy;
    return clamped(x, n.a, n.b);
}

static tr_vf clamp_slope(tr_vf x, tr_vf dy, numbers n) {
    return dy * tr_v_select((x < n.a) | (x > n.b), zero(), one());
}

static tr_vf hardtanh_slope(tr_vf x, tr_vf dy, numbers n) {
    return dy * tr_v_select((x <= n.a) | (x >= n.b), zero(), one());
}

static tr_vf leaky_relu(tr_vf x, tr_vf dy, numbers n) {
    (void)dy;
    return tr_v_select(x > zero(), x, n.a * x);
}

static tr_vf leaky_relu_slope(tr_vf x, tr_vf dy, numbers n) {
    return dy * tr_v_select(x > zero(), one(), n.a);
}

static tr_vf elu(tr_vf x, tr_vf dy, numbers n) {
    (void)dy;
    return tr_v_select(x > zero(), x, n.a * (tr_v_exp(x) - 1.0f));
}

static tr_vf elu_slope(tr_vf x, tr_vf dy, numbers n) {
    return dy * tr_v_select(x > zero(), one(), n.a * tr_v_exp(x));
}

static tr_vf hardsigmoid(tr_vf x, tr_vf dy, numbers n) {
    (void)dy;
    (void)n;
    return six(x) / 6.0f;
}

static tr_vf hardsigmoid_slope(tr_vf x, tr_vf dy, numbers n) {
    (void)n;
    return dy * tr_v_select((x <= tr_v_set(-3)) | (x >= tr_v_set(3)), zero(),
                            tr_v_set(1.0f / 6));
}

static tr_vf hardswish(tr_vf x, tr_vf dy, numbers n) {
    (void)dy;
    (void)n;
    return x * six(x) / 6.0f;
}

static tr_vf hardswish_slope(tr_vf x, tr_vf dy, numbers n) {
    (void)n;
    return dy * tr_v_select(x <= tr_v_set(-3), zero(),
                            tr_v_select(x >= tr_v_set(3), one(), x / 3.0f + 0.5f));
}

static tr_vf softplus(tr_vf x, tr_vf dy, numbers n) {
    (void)dy;
    return tr_v_select(n.a * x > n.b, x, each(log1pf, tr_v_exp(n.a * x)) / n.a);
}

static tr_vf softplus_slope(tr_vf x, tr_vf dy, numbers n) {
    return dy * tr_v_select(n.a * x > n.b, one(), tr_v_sigmoid(n.a * x));
}

static tr_vf exponential(tr_vf x, tr_vf dy, numbers n) {
    (void)dy;
    (void)n;
    return tr_v_exp(x);
}

static tr_vf exponential_slope(tr_vf x, tr_vf dy, numbers n) {
    (void)n;
    return dy * tr_v_exp(x);
}

static tr_vf logarithm(tr_vf x, tr_vf dy, numbers n) {
    (void)dy;
    (void)n;
    return each(logf, x);
}

static tr_vf logarithm_slope(tr_vf x, tr_vf dy, numbers n) {
    (void)n;
    return dy * (1.0f / x);
}

static tr_vf root(tr_vf x, tr_vf dy, numbers n) {
    (void)dy;
    (void)n;
    return each(sqrtf, x);
}

static tr_vf root_slope(tr_vf x, tr_vf dy, numbers n) {
    (void)n;
    return dy * (0.5f / each(sqrtf, x));
}

static tr_vf power(tr_vf x, tr_vf dy, numbers n) {
    (void)dy;
    return powers(x, n.a[0]);
}

static tr_vf power_slope(tr_vf x, tr_vf dy, numbers n) {
    return dy * tr_v_select(n.a == zero(), zero(), n.a * powers(x, n.a[0] - 1));
}

static tr_vf affine(tr_vf x, tr_vf dy, numbers n) {
    (void)dy;
    return n.a * x + n.b;
}

static tr_vf affine_slope(tr_vf x, tr_vf dy, numbers n) {
    (void)x;
    return dy * n.a;
}

static tr_vf absolute(tr_vf x, tr_vf dy, numbers n) {
    (void)dy;
    (void)n;
    return tr_v_select(x < zero(), -x, x);
}

static tr_vf absolute_slope(tr_vf x, tr_vf dy, numbers n) {
    (void)n;
    return dy *
           (tr_v_select(x > zero(), one(), tr_v_select(x < zero(), -one(), zero())));
}

// out[i] = f(x[i], dy[i]), or += with `add`. Each [count].
__attribute__((always_inline)) static inline void map(function f, const tr_real *x,
                                                      const tr_real *dy, tr_real *out,
                                                      int64_t count, numbers n,
                                                      bool add) {
    for (int64_t i = 0; i < count; i += TR_VW) {
        int left = tr_v_left(count, i);
        tr_v_put_some_r(
            out + i,
            f(tr_v_load_some_r(x + i, left), tr_v_load_some_r(dy + i, left), n), left,
            add);
    }
}

// Without `slope` dy is x.
static void run(const tr_pointwise_attr *attr, bool slope, const tr_real *x,
                const tr_real *dy, tr_real *out, int64_t count, bool add) {
    numbers n = {tr_v_set(attr->a), tr_v_set(attr->b)};
#define KIND(kind, value, derived)                                                     \
    case kind:                                                                         \
        if (slope) {                                                                   \
            map(derived, x, dy, out, count, n, add);                                   \
        } else {                                                                       \
            map(value, x, dy, out, count, n, add);                                     \
        }                                                                              \
        break
    switch ((tr_pointwise_kind)attr->kind) {
        KIND(TR_POINTWISE_SIGMOID, sigmoid, sigmoid_slope);
        KIND(TR_POINTWISE_CLAMP, clamp, clamp_slope);
        KIND(TR_POINTWISE_HARDTANH, clamp, hardtanh_slope);
        KIND(TR_POINTWISE_LEAKY_RELU, leaky_relu, leaky_relu_slope);
        KIND(TR_POINTWISE_ELU, elu, elu_slope);
        KIND(TR_POINTWISE_HARDSIGMOID, hardsigmoid, hardsigmoid_slope);
        KIND(TR_POINTWISE_HARDSWISH, hardswish, hardswish_slope);
        KIND(TR_POINTWISE_SOFTPLUS, softplus, softplus_slope);
        KIND(TR_POINTWISE_EXP, exponential, exponential_slope);
        KIND(TR_POINTWISE_LOG, logarithm, logarithm_slope);
        KIND(TR_POINTWISE_SQRT, root, root_slope);
        KIND(TR_POINTWISE_POWER, power, power_slope);
        KIND(TR_POINTWISE_LINEAR, affine, affine_slope);
        KIND(TR_POINTWISE_ABS, absolute, absolute_slope);
    case TR_POINTWISE_KINDS:
        break;
    }
}

static bool in_library(int32_t kind) {
    return kind == TR_POINTWISE_SOFTPLUS || kind == TR_POINTWISE_LOG ||
           kind == TR_POINTWISE_POWER;
}

static void launch_parts(const tr_op_desc *desc, const tr_launch *launch, bool slope) {
    const tr_real *dy = launch->in[0], *x = launch->in[slope]; // [count]
    tr_real *out = launch->out[0];                             // [count]
    int64_t count = tr_shape_count(desc->in[0].shape);
    tr_pointwise_attr attr;
    memcpy(&attr, desc->attr, sizeof attr);
    int weight = in_library(attr.kind) ? LIBRARY_WEIGHT : VECTOR_WEIGHT;
    int threads = tr__threads_for(count, weight, desc->target.workers);
    bool add = launch->accumulate & 1;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        tr_range r = tr__range_part(count, TR_VW, t, threads);
        run(&attr, slope, x + r.begin, dy + r.begin, out + r.begin, r.end - r.begin,
            add);
    }
}

static void launch_value(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    launch_parts(desc, launch, false);
}

static void launch_slope(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    launch_parts(desc, launch, true);
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_real(desc, TR_REAL, 0, 0);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 10, out);
}

const tr_kernel TR_ISA_NAME(tr__pointwise_kernel) = {
    .name = "pointwise.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .launch = launch_value,
};

const tr_kernel TR_ISA_NAME(tr__pointwise_backward_kernel) = {
    .name = "pointwise_backward.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .launch = launch_slope,
};

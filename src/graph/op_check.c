#include "base/slope.h"
#include "graph/op_probe.h"

#include <math.h>
#include <string.h>

enum { SLOPES = 24 }; // elements of an input that are tried, spread over the tensor
#define TOLERANCE 1e-2

// Results must not depend on which of these lies around operands, and in results before
// they are written: NaN, or zeros.
static const unsigned char fills[2] = {0xFF, 0};

typedef struct checked {
    const tr_op_check_input *in;
    tr_probe probe[2]; // that differ by their fill
} checked;

static void close_both(checked *c) {
    tr__probe_close(&c->probe[0]);
    tr__probe_close(&c->probe[1]);
}

static tr_status open_both(checked *c, const tr_op *op, const void *attr,
                           const tr_op_check_input *in, int in_count, tr_error *err) {
    tr_status status = TR_OK;
    for (int k = 0; k < 2; k++) {
        c->probe[k] =
            (tr_probe){.op = op, .attr = attr, .in_count = in_count, .fill = fills[k]};
    }
    for (int k = 0; k < 2 && status == TR_OK; k++) {
        status = tr__probe_open(&c->probe[k], in, err);
    }
    return status;
}

static tr_status compare(const checked *c, const tr_box *a, const tr_box *b,
                         const char *what, int i, tr_error *err) {
    if (a->desc.dtype == TR_NONE || memcmp(a->data, b->data, a->bytes) == 0) {
        return TR_OK;
    }
    return tr_fail(err, TR_DIFFERENT,
                   "%s: %s %d is not written whole, or depends on what lies outside of "
                   "the operands",
                   c->probe[0].op->name, what, i);
}

static tr_status check_finite(const checked *c, int i, tr_error *err) {
    const tr_box *out = &c->probe[0].out[i];
    bool real = out->desc.dtype == TR_F32 || out->desc.dtype == TR_F64;
    for (int64_t k = 0; real && k < tr_shape_count(out->desc.shape); k++) {
        if (!isfinite(tr__box_get(out, k))) {
            return tr_fail(err, TR_NUMBERS,
                           "%s: output %d is not finite at element %lld: give inputs "
                           "for which it is",
                           c->probe[0].op->name, i, (long long)k);
        }
    }
    return TR_OK;
}

static tr_status forward(checked *c, tr_error *err) {
    tr_status status = TR_OK;
    for (int k = 0; k < 2 && status == TR_OK; k++) {
        status = tr__probe_forward(&c->probe[k], err);
    }
    for (int i = 0; i < c->probe[0].out_count && status == TR_OK; i++) {
        status = compare(c, &c->probe[0].out[i], &c->probe[1].out[i], "output", i, err);
        status = status == TR_OK ? check_finite(c, i, err) : status;
    }
    return status;
}

static tr_status backward(checked *c, bool add, tr_error *err) {
    tr_status status = TR_OK;
    for (int k = 0; k < 2 && status == TR_OK; k++) {
        status = tr__probe_backward(&c->probe[k], add, err);
    }
    for (int i = 0; i < c->probe[0].in_count && status == TR_OK; i++) {
        status = compare(c, &c->probe[0].grad_in[i], &c->probe[1].grad_in[i],
                         "the gradient of input", i, err);
    }
    return status;
}

// ---- finite differences

typedef struct along {
    tr_probe *probe;
    int input;
    tr_status status;
    tr_error *err;
} along;

// The projection of the outputs on the gradients that the backward started from.
static double project(void *of) {
    along *a = of;
    tr_probe *p = a->probe;
    double sum = 0;
    a->status = a->status == TR_OK ? tr__probe_forward(p, a->err) : a->status;
    if (p->op->flags & TR_OP_LOSS) {
        return tr__probe_context.loss_seed * tr__box_get(&p->out[0], TR_SUM_LOSS);
    }
    for (int i = 0; i < p->out_count; i++) {
        const tr_box *weight = &p->grad_out[i];
        int64_t count =
            weight->desc.dtype == TR_NONE ? 0 : tr_shape_count(weight->desc.shape);
        for (int64_t k = 0; k < count; k++) {
            sum += tr__box_get(weight, k) * tr__box_get(&p->out[i], k);
        }
    }
    return sum;
}

static double get(void *of, int64_t i) {
    const along *a = of;
    return tr__box_get(&a->probe->in[a->input], i);
}

static void put(void *of, int64_t i, double x) {
    const along *a = of;
    tr__box_put(&a->probe->in[a->input], i, x);
}

static double largest(const tr_box *box) {
    double most = 0;
    for (int64_t i = 0; i < tr_shape_count(box->desc.shape); i++) {
        double size = fabs(tr__box_get(box, i));
        most = size > most || isnan(size) ? size : most;
    }
    return most;
}

static tr_status check_slopes(checked *c, int input, double tolerance, tr_error *err) {
    along a = {&c->probe[0], input, TR_OK, err};
    tr_slope_function f = {&a, project, get, put};
    const tr_box *gradient = &c->probe[0].grad_in[input];
    int64_t count = tr_shape_count(gradient->desc.shape);
    int64_t tried = count < SLOPES ? count : SLOPES;
    double size = largest(gradient);
    for (int64_t k = 0; k < tried; k++) {
        int64_t i = k * count / tried;
        double slope = tr__slope(&f, i), is = tr__box_get(gradient, i);
        double more = size > fabs(slope) ? size : fabs(slope);
        if (a.status != TR_OK) {
            return a.status;
        }
        if (!(fabs(slope - is) <= tolerance * (more > 0 ? more : 1))) {
            return tr_fail(err, TR_DIFFERENT,
                           "%s: the gradient of input %d is %.6g at element %lld, but "
                           "finite differences of the forward give %.6g",
                           c->probe[0].op->name, input, is, (long long)i, slope);
        }
    }
    return TR_OK;
}

// What a backward that adds has left must be one more than what a fresh one writes.
static tr_status check_added(const checked *c, const checked *added, tr_error *err) {
    for (int i = 0; i < c->probe[0].in_count; i++) {
        const tr_box *fresh = &c->probe[0].grad_in[i],
                     *sum = &added->probe[0].grad_in[i];
        double size = fresh->desc.dtype == TR_NONE ? 0 : largest(fresh);
        for (int64_t k = 0; fresh->block && k < tr_shape_count(fresh->desc.shape);
             k++) {
            double off = tr__box_get(sum, k) - 1 - tr__box_get(fresh, k);
            if (!(fabs(off) <= 1e-5 * (1 + size))) {
                return tr_fail(err, TR_DIFFERENT,
                               "%s: a backward that is to add to the gradient of input "
                               "%d (tr_launch.accumulate) does not: element %lld is "
                               "%.6g, and should be 1 more than %.6g",
                               c->probe[0].op->name, i, (long long)k,
                               tr__box_get(sum, k), tr__box_get(fresh, k));
            }
        }
    }
    return TR_OK;
}

static bool is_differentiable(const tr_probe *p, int i) {
    tr_dtype type = p->in[i].desc.dtype;
    return (type == TR_F32 || type == TR_F64) && !(p->op->no_gradient >> i & 1);
}

static tr_status check_gradients(checked *c, checked *added, double tolerance,
                                 tr_error *err) {
    uint32_t written, read;
    tr_status status = tr__probe_rules(&c->probe[0], &written, &read, err);
    status = status == TR_OK ? backward(c, false, err) : status;
    status = status == TR_OK ? forward(added, err) : status;
    status = status == TR_OK ? backward(added, true, err) : status;
    status = status == TR_OK ? check_added(c, added, err) : status;
    for (int i = 0; i < c->probe[0].in_count && status == TR_OK; i++) {
        if (!is_differentiable(&c->probe[0], i)) {
            continue;
        }
        status =
            written >> i & 1
                ? check_slopes(c, i, tolerance, err)
                : tr_fail(err, TR_DIFFERENT,
                          "%s: no rule of its backward gives the gradient of input "
                          "%d (tr_op.no_gradient says which inputs have none)",
                          c->probe[0].op->name, i);
    }
    return status;
}

// ---- shapes that do not fit

// With dimension `dim` of input `i` one smaller: `infer` refuses that, or the kernels
// can do it.
static tr_status check_smaller(const checked *of, int i, int dim, tr_error *err) {
    const tr_probe *p = &of->probe[0];
    tr_op_check_input in[TR_OP_IN_MAX] = {{{0}, NULL}};
    checked c;
    tr_error mine = {0};
    memcpy(in, of->in, (size_t)p->in_count * sizeof *in);
    in[i].desc.shape.dim[dim]--;
    tr_status status = open_both(&c, p->op, p->attr, in, p->in_count, &mine);
    bool refused = status == TR_USAGE;
    status = status == TR_OK ? forward(&c, &mine) : status;
    if (status == TR_OK && p->op->backward) {
        status = backward(&c, false, &mine);
    }
    close_both(&c);
    return refused || status == TR_OK
               ? TR_OK
               : tr_fail(
                     err, status,
                     "%s; dimension %d of its input %d was %lld there: should infer "
                     "of %s refuse that?",
                     mine.message, dim, i, (long long)in[i].desc.shape.dim[dim],
                     p->op->name);
}

// Not with integers among the inputs, which may be indices of what would be smaller.
static tr_status check_shapes(const checked *c, tr_error *err) {
    tr_status status = TR_OK;
    for (int i = 0; i < c->probe[0].in_count; i++) {
        tr_dtype type = c->in[i].desc.dtype;
        if (type != TR_NONE && type != TR_F32 && type != TR_F64) {
            return TR_OK;
        }
    }
    for (int i = 0; i < c->probe[0].in_count && status == TR_OK; i++) {
        tr_tensor_desc desc = c->in[i].desc;
        for (int d = 0; desc.dtype != TR_NONE && d < desc.shape.rank && status == TR_OK;
             d++) {
            status = desc.shape.dim[d] > 1 ? check_smaller(c, i, d, err) : TR_OK;
        }
    }
    return status;
}

tr_status tr_op_check_built(const tr_built_op *built, const void *attr,
                            const tr_op_check_input *in, int in_count, double tolerance,
                            tr_error *err) {
    const tr_op *op = built->op;
    if (built->version != TRANCHE_EXTEND_VERSION) {
        // Where its name lies is not known, then.
        return tr_fail(err, TR_USAGE,
                       "tr_op_check: an op was compiled with the headers of version "
                       "%d, and the library is of version %d: compile it again",
                       built->version, TRANCHE_EXTEND_VERSION);
    }
    checked c = {.in = in}, added = {.in = in};
    if (in_count < 0 || in_count > TR_OP_IN_MAX) {
        return tr_fail(err, TR_USAGE, "%s: an op has 0 to %d inputs, not %d", op->name,
                       TR_OP_IN_MAX, in_count);
    }
    tr_status status = open_both(&c, op, attr, in, in_count, err);
    status = status == TR_OK ? open_both(&added, op, attr, in, in_count, err) : status;
    status = status == TR_OK ? forward(&c, err) : status;
    if (status == TR_OK && op->backward) {
        status =
            check_gradients(&c, &added, tolerance > 0 ? tolerance : TOLERANCE, err);
    }
    status = status == TR_OK ? check_shapes(&c, err) : status;
    close_both(&c);
    close_both(&added);
    return status;
}

#include "cuda/libraries/cudnn_tensor.h"

#include "base/half.h"

#include <math.h>

enum { SAMPLE, HEAD, ROW, COLUMN };

static int64_t bytes_of(int32_t type) {
    return type == TR_CUDNN_HALF || type == TR_CUDNN_BFLOAT16 ? 2
           : type == TR_CUDNN_BOOLEAN                         ? 1
                                                              : 4;
}

int64_t dnn_bytes(const dnn *t) {
    int64_t last = 0;
    for (int d = 0; d < DNN_RANK; d++) {
        last += (t->dim[d] - 1) * t->stride[d];
    }
    return (last + 1) * bytes_of(t->type);
}

// ---- elements

static double load(const dnn *t, int64_t element) {
    const char *at = t->memory + element * bytes_of(t->type);
    switch (t->type) {
    case TR_CUDNN_HALF:
        return tr__f16_to_f32(*(const uint16_t *)(const void *)at);
    case TR_CUDNN_BFLOAT16:
        return tr__bf16_to_f32(*(const uint16_t *)(const void *)at);
    case TR_CUDNN_INT32:
        return *(const int32_t *)(const void *)at;
    case TR_CUDNN_BOOLEAN:
        return *at;
    default:
        return *(const float *)(const void *)at;
    }
}

static void store(const dnn *t, int64_t element, double value) {
    char *at = t->memory + element * bytes_of(t->type);
    switch (t->type) {
    case TR_CUDNN_HALF:
        *(uint16_t *)(void *)at = tr__f16_of_f32((float)value);
        break;
    case TR_CUDNN_BFLOAT16:
        *(uint16_t *)(void *)at = tr__bf16_of_f32((float)value);
        break;
    case TR_CUDNN_INT32:
        *(int32_t *)(void *)at = (int32_t)value;
        break;
    case TR_CUDNN_BOOLEAN:
        *at = value != 0;
        break;
    default:
        *(float *)(void *)at = (float)value;
    }
}

// Where the element is that stands for `index` in a tensor of that shape: of dimensions
// with one element it is that one, and of fewer heads the one that several share.
static int64_t place(const dnn *t, const int64_t *index, const int64_t *shape) {
    int64_t at = 0;
    for (int d = 0; d < DNN_RANK; d++) {
        at += index[d] * t->dim[d] / shape[d] * t->stride[d];
    }
    return at;
}

static bool next(int64_t *index, const int64_t *shape) {
    int d = DNN_RANK - 1;
    while (d >= 0 && ++index[d] == shape[d]) {
        index[d--] = 0;
    }
    return d >= 0;
}

// ---- shapes

static bool is_part(int64_t part, int64_t whole) {
    return part == 1 || part == whole;
}

static bool shares(int64_t part, int64_t whole) {
    return part >= 1 && whole % part == 0;
}

// Each dimension is y's, or one element for all.
static bool spreads(const dnn *x, const dnn *y) {
    bool fits = true;
    for (int d = 0; d < DNN_RANK && x; d++) {
        fits = fits && is_part(x->dim[d], y->dim[d]);
    }
    return fits;
}

static bool product_fits(const dnn *o) {
    const int64_t *a = o->x->dim, *b = o->b->dim, *c = o->y->dim;
    return a[ROW] == c[ROW] && b[COLUMN] == c[COLUMN] && a[COLUMN] == b[ROW] &&
           a[SAMPLE] == c[SAMPLE] && b[SAMPLE] == c[SAMPLE] &&
           shares(a[HEAD], c[HEAD]) && shares(b[HEAD], c[HEAD]);
}

static bool reduction_fits(const dnn *o) {
    const int64_t *x = o->x->dim, *y = o->y->dim;
    return x[SAMPLE] == y[SAMPLE] && shares(y[HEAD], x[HEAD]) &&
           is_part(y[ROW], x[ROW]) && is_part(y[COLUMN], x[COLUMN]);
}

static int64_t elements(const dnn *t) {
    return t->dim[SAMPLE] * t->dim[HEAD] * t->dim[ROW] * t->dim[COLUMN];
}

bool dnn_fits(const dnn *o) {
    switch (o->kind) {
    case TR_CUDNN_OPERATION_MATMUL:
        return product_fits(o);
    case TR_CUDNN_OPERATION_REDUCTION:
        return reduction_fits(o);
    case TR_CUDNN_OPERATION_RESHAPE:
        return elements(o->x) == elements(o->y);
    default:
        return spreads(o->x, o->y) && spreads(o->b, o->y) && spreads(o->t, o->y);
    }
}

// ---- operations

static void multiply(const dnn *o) {
    int64_t index[DNN_RANK] = {0}, k = o->x->dim[COLUMN];
    do {
        int64_t a_index[] = {index[SAMPLE], index[HEAD], index[ROW], 0};
        int64_t b_index[] = {index[SAMPLE], index[HEAD], 0, index[COLUMN]};
        const int64_t a_shape[] = {o->y->dim[SAMPLE], o->y->dim[HEAD], o->y->dim[ROW],
                                   k};
        const int64_t b_shape[] = {o->y->dim[SAMPLE], o->y->dim[HEAD], k,
                                   o->y->dim[COLUMN]};
        int64_t a = place(o->x, a_index, a_shape), b = place(o->b, b_index, b_shape);
        double sum = 0;
        for (int64_t i = 0; i < k; i++) {
            sum += load(o->x, a + i * o->x->stride[COLUMN]) *
                   load(o->b, b + i * o->b->stride[ROW]);
        }
        store(o->y, place(o->y, index, o->y->dim), sum);
    } while (next(index, o->y->dim));
}

static double combine(const dnn *o, const int64_t *index, double x, double b,
                      double t) {
    switch (o->how->mode) {
    case TR_CUDNN_ADD:
        return x + b;
    case TR_CUDNN_SUB:
        return x - b;
    case TR_CUDNN_MUL:
        return x * b;
    case TR_CUDNN_DIV:
        return x / b;
    case TR_CUDNN_EXP:
        return exp(x);
    case TR_CUDNN_LOG:
        return log(x);
    case TR_CUDNN_GEN_INDEX:
        return (double)index[o->how->axis];
    case TR_CUDNN_CMP_GE:
        return x >= b;
    default: // BINARY_SELECT
        return t != 0 ? x : b;
    }
}

static void compute_each(const dnn *o) {
    int64_t index[DNN_RANK] = {0};
    const int64_t *shape = o->y->dim;
    do {
        bool generates = o->how->mode == TR_CUDNN_GEN_INDEX;
        double x = generates ? 0 : load(o->x, place(o->x, index, shape));
        double b = o->b ? load(o->b, place(o->b, index, shape)) : 0;
        double t = o->t ? load(o->t, place(o->t, index, shape)) : 0;
        store(o->y, place(o->y, index, shape), combine(o, index, x, b, t));
    } while (next(index, shape));
}

// Of each element of y all those of x that are reduced to it.
static void reduce(const dnn *o) {
    int64_t index[DNN_RANK] = {0}, each[DNN_RANK];
    bool highest = o->how->mode == TR_CUDNN_REDUCE_MAX;
    for (int d = 0; d < DNN_RANK; d++) {
        each[d] = o->x->dim[d] / o->y->dim[d];
    }
    do {
        int64_t inner[DNN_RANK] = {0};
        double result = highest ? -INFINITY : 0;
        do {
            int64_t at = 0;
            for (int d = 0; d < DNN_RANK; d++) {
                at += (index[d] * each[d] + inner[d]) * o->x->stride[d];
            }
            double x = load(o->x, at);
            result = highest ? fmax(result, x) : result + x;
        } while (next(inner, each));
        store(o->y, place(o->y, index, o->y->dim), result);
    } while (next(index, o->y->dim));
}

// The same memory in other dimensions.
static void reshape(const dnn *o) {
    int64_t index[DNN_RANK] = {0};
    do {
        int64_t at = place(o->y, index, o->y->dim);
        store(o->y, at, load(o->x, at));
    } while (next(index, o->y->dim));
}

void dnn_compute(const dnn *o) {
    switch (o->kind) {
    case TR_CUDNN_OPERATION_MATMUL:
        multiply(o);
        break;
    case TR_CUDNN_OPERATION_REDUCTION:
        reduce(o);
        break;
    case TR_CUDNN_OPERATION_RESHAPE:
        reshape(o);
        break;
    default:
        compute_each(o);
    }
}

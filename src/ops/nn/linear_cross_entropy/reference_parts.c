#include "ops/nn/linear_cross_entropy/reference_parts.h"

void tr__lce_reference_logits(const tr_linear_dims *d, const float *x, const float *w,
                              const float *bias, double *logits) {
    int64_t in_step = tr__weight_in_step(d), out_step = tr__weight_out_step(d);
    for (int64_t v = 0; v < d->out; v++) {
        logits[v] = bias ? bias[v] : 0;
        for (int64_t c = 0; c < d->in; c++) {
            logits[v] += (double)x[c] * w[c * in_step + v * out_step];
        }
    }
}

static void put(float *out, double value, bool accumulate) {
    *out = (float)(accumulate ? *out + value : value);
}

// A row without a target gives and gets nothing, whatever x and W are.
static void input_gradient(const tr_linear_dims *d, const double *gradients,
                           const int32_t *targets, const float *w, bool accumulate,
                           float *dx) {
    int64_t in_step = tr__weight_in_step(d), out_step = tr__weight_out_step(d);
    for (int64_t r = 0; r < d->rows; r++) {
        for (int64_t c = 0; c < d->in; c++) {
            double sum = 0;
            for (int64_t v = 0; v < d->out && targets[r] >= 0; v++) {
                sum += gradients[r * d->out + v] * w[c * in_step + v * out_step];
            }
            put(&dx[r * d->in + c], sum, accumulate);
        }
    }
}

static void weight_gradient(const tr_linear_dims *d, const double *gradients,
                            const int32_t *targets, const float *x, bool accumulate,
                            float *dw) {
    int64_t in_step = tr__weight_in_step(d), out_step = tr__weight_out_step(d);
    for (int64_t v = 0; v < d->out; v++) {
        for (int64_t c = 0; c < d->in; c++) {
            double sum = 0;
            for (int64_t r = 0; r < d->rows; r++) {
                double there = gradients[r * d->out + v] * x[r * d->in + c];
                sum += targets[r] >= 0 ? there : 0;
            }
            put(&dw[c * in_step + v * out_step], sum, accumulate);
        }
    }
}

void tr__lce_reference_put(const tr_op_desc *desc, const tr_launch *launch,
                           const double *gradients) {
    const int32_t *targets = launch->in[HEAD_TARGETS]; // [rows]
    float *dbias = launch->out[HEAD_DBIAS];
    tr_linear_dims d = tr__lce_dims(desc);
    uint32_t add = launch->accumulate;
    if (launch->out[HEAD_DX]) {
        input_gradient(&d, gradients, targets, launch->in[HEAD_WEIGHT],
                       add >> HEAD_DX & 1, launch->out[HEAD_DX]);
    }
    if (launch->out[HEAD_DWEIGHT]) {
        weight_gradient(&d, gradients, targets, launch->in[HEAD_X],
                        add >> HEAD_DWEIGHT & 1, launch->out[HEAD_DWEIGHT]);
    }
    for (int64_t v = 0; dbias && v < d.out; v++) {
        double sum = 0;
        for (int64_t r = 0; r < d.rows; r++) {
            sum += gradients[r * d.out + v];
        }
        put(&dbias[v], sum, add >> HEAD_DBIAS & 1);
    }
}

#include "ops/nn/auxiliary_loss/row.h"

extern const tr_kernel tr__auxiliary_loss_reference,
    tr__auxiliary_loss_backward_reference;

static tr_auxiliary_row read_row(const tr_launch *launch, int64_t r, const float *x,
                                 int64_t classes) {
    tr_auxiliary_row row = tr__auxiliary_begin(launch, r);
    for (int64_t c = 0; c < classes; c++) {
        row.top = x[c] > row.top ? x[c] : row.top;
    }
    for (int64_t c = 0; c < classes; c++) {
        row.sum += exp(x[c] - row.top);
    }
    return row;
}

static void forward(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    int64_t classes = tr__shape_width(desc->in[0].shape);
    for (int64_t r = 0; r < tr__shape_rows(desc->in[0].shape); r++) {
        const float *x = (const float *)launch->in[0] + r * classes;
        tr_auxiliary_row row = read_row(launch, r, x, classes);
        tr__auxiliary_add(&row, row.there ? x[row.target] : 0, launch->out[0]);
    }
}

static void backward(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    int64_t classes = tr__shape_width(desc->in[0].shape);
    for (int64_t r = 0; r < tr__shape_rows(desc->in[0].shape); r++) {
        const float *x = (const float *)launch->in[0] + r * classes;
        float *dx = launch->out[0] ? (float *)launch->out[0] + r * classes : NULL;
        tr_auxiliary_row row = read_row(launch, r, x, classes);
        for (int64_t c = 0; dx && c < classes; c++) { // NULL: the sums alone are wanted
            double slope = tr__auxiliary_slope(&row, x[c], c, launch->run->loss_seed);
            dx[c] = (float)(launch->accumulate & 1 ? dx[c] + slope : slope);
        }
        tr__auxiliary_add(&row, row.there ? x[row.target] : 0, launch->out[1]);
    }
}

static bool supports(const tr_op_desc *desc) {
    return tr__auxiliary_supports(desc, TR_F32);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 20, out);
}

const tr_kernel tr__auxiliary_loss_reference = {
    .name = "auxiliary_loss.reference",
    .supports = supports,
    .cost = cost,
    .launch = forward,
};

const tr_kernel tr__auxiliary_loss_backward_reference = {
    .name = "auxiliary_loss_backward.reference",
    .supports = supports,
    .cost = cost,
    .launch = backward,
};

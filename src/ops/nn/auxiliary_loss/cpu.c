// Such a loss has few classes: there is no work for several threads, nor for vectors.
#include "backend/cpu/isa.h"
#include "backend/cpu/real.h"
#include "ops/nn/auxiliary_loss/row.h"

extern const tr_kernel TR_ISA_NAME(tr__auxiliary_loss_kernel);
extern const tr_kernel TR_ISA_NAME(tr__auxiliary_loss_backward_kernel);

static tr_auxiliary_row read_row(const tr_launch *launch, int64_t r, const tr_real *x,
                                 int64_t classes) {
    tr_auxiliary_row row = tr__auxiliary_begin(launch, r);
    for (int64_t c = 0; c < classes; c++) {
        double at = tr_r_get(x[c]);
        row.top = at > row.top ? at : row.top;
    }
    for (int64_t c = 0; c < classes; c++) {
        row.sum += exp(tr_r_get(x[c]) - row.top);
    }
    return row;
}

static double target_of(const tr_auxiliary_row *row, const tr_real *x) {
    return row->there ? tr_r_get(x[row->target]) : 0;
}

static void forward(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    int64_t classes = tr__shape_width(desc->in[0].shape);
    for (int64_t r = 0; r < tr__shape_rows(desc->in[0].shape); r++) {
        const tr_real *x = (const tr_real *)launch->in[0] + r * classes;
        tr_auxiliary_row row = read_row(launch, r, x, classes);
        tr__auxiliary_add(&row, target_of(&row, x), launch->out[0]);
    }
}

static void backward(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    int64_t classes = tr__shape_width(desc->in[0].shape);
    double seed = launch->run->loss_seed;
    for (int64_t r = 0; r < tr__shape_rows(desc->in[0].shape); r++) {
        const tr_real *x = (const tr_real *)launch->in[0] + r * classes;
        tr_real *dx = launch->out[0] ? (tr_real *)launch->out[0] + r * classes : NULL;
        tr_auxiliary_row row = read_row(launch, r, x, classes);
        for (int64_t c = 0; dx && c < classes; c++) { // NULL: the sums alone are wanted
            double slope = tr__auxiliary_slope(&row, tr_r_get(x[c]), c, seed);
            double before = launch->accumulate & 1 ? tr_r_get(dx[c]) : 0;
            dx[c] = tr_r_of((float)(before + slope));
        }
        tr__auxiliary_add(&row, target_of(&row, x), launch->out[1]);
    }
}

static bool supports(const tr_op_desc *desc) {
    return tr__auxiliary_supports(desc, TR_REAL);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 20, out);
}

const tr_kernel TR_ISA_NAME(tr__auxiliary_loss_kernel) = {
    .name = "auxiliary_loss.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .launch = forward,
};

const tr_kernel TR_ISA_NAME(tr__auxiliary_loss_backward_kernel) = {
    .name = "auxiliary_loss_backward.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .launch = backward,
};

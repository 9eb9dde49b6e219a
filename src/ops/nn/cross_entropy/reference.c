#include "ops/operand.h"

#include "ops/nn/cross_entropy/row.h"

#include <math.h>

extern const tr_kernel tr__cross_entropy_reference,
    tr__cross_entropy_backward_reference, tr__cross_entropy_logits_reference,
    tr__cross_entropy_each_reference, tr__cross_entropy_each_backward_reference;

typedef struct row_of {
    const float *x, *weight; // [V]; weight: or NULL
    int64_t classes, target;
    double top, sum; // of e^(x - top)
    tr_wanted wanted;
} row_of;

static double weight_of(const row_of *row, int64_t c) {
    return row->weight ? row->weight[c] : 1;
}

// false: it has no target.
static bool read_row(const tr_op_desc *desc, const tr_launch *launch, int64_t r,
                     row_of *row) {
    row->classes = tr__shape_width(desc->in[0].shape);
    row->target = ((const int32_t *)launch->in[1])[r];
    row->x = (const float *)launch->in[0] + r * row->classes;
    row->weight = tr__is_weighted(desc) ? launch->in[2] : NULL;
    if (row->target == TR_NO_TARGET) {
        return false;
    }
    row->top = -(double)INFINITY;
    row->sum = 0;
    for (int64_t c = 0; c < row->classes; c++) {
        row->top = row->x[c] > row->top ? row->x[c] : row->top;
    }
    for (int64_t c = 0; c < row->classes; c++) {
        row->sum += exp(row->x[c] - row->top);
    }
    row->wanted = tr__wanted(desc, weight_of(row, row->target));
    return true;
}

static double loss_of(const row_of *row) {
    double normal = row->top + log(row->sum);
    double loss = row->wanted.hit * (normal - row->x[row->target]);
    for (int64_t c = 0; c < row->classes && row->wanted.all > 0; c++) {
        loss += row->wanted.all * weight_of(row, c) * (normal - row->x[c]);
    }
    return loss;
}

static void add(const row_of *row, double *sums) {
    int64_t best = 0;
    for (int64_t c = 1; c < row->classes; c++) {
        best = row->x[c] > row->x[best] ? c : best;
    }
    sums[TR_SUM_LOSS] += loss_of(row);
    sums[TR_SUM_COUNT] += row->wanted.count;
    sums[TR_SUM_CORRECT] += best == row->target;
}

static void forward(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    for (int64_t r = 0; r < tr__shape_rows(desc->in[0].shape); r++) {
        row_of row;
        if (read_row(desc, launch, r, &row)) {
            add(&row, launch->out[0]);
        }
    }
}

// The gradient of a row's logits, by `seed`, what the gradient of its loss is.
static void put_row(const row_of *row, bool there, double seed, bool add_to,
                    float *dx) {
    double total = there ? row->wanted.hit : 0;
    bool smooth = there && row->wanted.all > 0;
    for (int64_t c = 0; smooth && c < row->classes; c++) {
        total += row->wanted.all * weight_of(row, c);
    }
    for (int64_t c = 0; c < row->classes; c++) {
        double slope = 0;
        if (there) {
            slope = total * exp(row->x[c] - row->top) / row->sum;
            slope -= smooth ? row->wanted.all * weight_of(row, c) : 0;
            slope -= c == row->target ? row->wanted.hit : 0;
            slope *= seed;
        }
        dx[c] = (float)(add_to ? dx[c] + slope : slope);
    }
}

static void backward(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    float *dx = launch->out[0];
    (void)state;
    for (int64_t r = 0; r < tr__shape_rows(desc->in[0].shape); r++) {
        row_of row;
        bool there = read_row(desc, launch, r, &row);
        if (dx) {
            put_row(&row, there, launch->run->loss_seed, launch->accumulate & 1,
                    dx + r * row.classes);
        }
        if (there) {
            add(&row, launch->out[1]);
        }
    }
}

static void each(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    float *out = launch->out[0];
    (void)state;
    for (int64_t r = 0; r < tr__shape_rows(desc->in[0].shape); r++) {
        row_of row;
        out[r] = read_row(desc, launch, r, &row) ? (float)loss_of(&row) : 0;
    }
}

static void each_backward(const tr_op_desc *desc, void *state,
                          const tr_launch *launch) {
    const float *seeds = launch->in[3]; // d_each
    float *dx = launch->out[0];
    (void)state;
    for (int64_t r = 0; r < tr__shape_rows(desc->in[0].shape); r++) {
        row_of row;
        bool there = read_row(desc, launch, r, &row);
        put_row(&row, there, seeds[r], launch->accumulate & 1, dx + r * row.classes);
    }
}

static void logits(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    memcpy(launch->out[0], launch->in[0], (size_t)tr_tensor_bytes(desc->in[0]));
}

static bool supports(const tr_op_desc *desc) {
    return tr__cross_entropy_supports(desc, TR_F32);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 20, out);
}

const tr_kernel tr__cross_entropy_reference = {
    .name = "cross_entropy.reference",
    .supports = supports,
    .cost = cost,
    .launch = forward,
};

const tr_kernel tr__cross_entropy_backward_reference = {
    .name = "cross_entropy_backward.reference",
    .supports = supports,
    .cost = cost,
    .launch = backward,
};

const tr_kernel tr__cross_entropy_logits_reference = {
    .name = "cross_entropy_logits.reference",
    .supports = supports,
    .cost = cost,
    .launch = logits,
};

const tr_kernel tr__cross_entropy_each_reference = {
    .name = "cross_entropy_each.reference",
    .supports = supports,
    .cost = cost,
    .launch = each,
};

const tr_kernel tr__cross_entropy_each_backward_reference = {
    .name = "cross_entropy_each_backward.reference",
    .supports = supports,
    .cost = cost,
    .launch = each_backward,
};

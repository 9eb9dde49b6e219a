#include "ops/flat/exact_sums/exact_sums.h"

#include "ops/operand.h"

extern const tr_kernel tr__exact_sums_kernel, tr__exact_values_kernel;

static bool supports(const tr_op_desc *desc) {
    return desc->in[0].dtype == TR_F64 && desc->out[0].dtype == TR_I64;
}

static bool values_supports(const tr_op_desc *desc) {
    return desc->in[0].dtype == TR_I64 && desc->out[0].dtype == TR_F64;
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 0, out);
}

static void launch_sums(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const tr_exact_sums_attr *attr = (const void *)desc->attr;
    const double *parts = launch->in[0];
    int64_t *sums = launch->out[0], columns = attr->columns;
    memset(sums, 0, (size_t)tr_tensor_bytes(desc->out[0]));
    for (int64_t i = 0; i < attr->count; i++) {
        const tr_parts_run *run = &attr->runs[i];
        const double *from = parts + run->first * columns;
        int64_t *total = sums + run->total * columns * TR_EXACT_WORDS;
        for (int64_t k = 0; k < run->count * columns; k++) {
            tr__exact_add(total + k % columns * TR_EXACT_WORDS, from[k]);
        }
    }
}

static void launch_values(const tr_op_desc *desc, void *state,
                          const tr_launch *launch) {
    (void)state;
    const int64_t *sums = launch->in[0];
    double *values = launch->out[0];
    int64_t count = tr_shape_count(desc->out[0].shape);
    for (int64_t i = 0; i < count; i++) {
        values[i] = tr__exact_value(sums + i * TR_EXACT_WORDS);
    }
}

const tr_kernel tr__exact_sums_kernel = {
    .name = "exact_sums.cpu",
    .supports = supports,
    .cost = cost,
    .launch = launch_sums,
};

const tr_kernel tr__exact_values_kernel = {
    .name = "exact_values.cpu",
    .supports = values_supports,
    .cost = cost,
    .launch = launch_values,
};

const tr_op tr__op_exact_sums = {
    .name = "exact_sums",
    .attr_bytes = sizeof(tr_exact_sums_attr),
    .reference = &tr__exact_sums_kernel,
};

const tr_op tr__op_exact_values = {
    .name = "exact_values",
    .reference = &tr__exact_values_kernel,
};

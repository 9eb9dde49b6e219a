#include "base/quantized.h"
#include "ops/nn/row_squares/row_squares.h"

extern const tr_kernel tr__row_squares_reference;

// Element i of row o of the weight.
static double element(const tr_row_squares_sizes *s, const void *w, int64_t o,
                      int64_t i) {
    const tr_row_squares_attr *attr = &s->attr;
    if (attr->kind != TR_QUANTIZED_NOT) {
        tr_quantized_layout at = tr__quantized_layout(attr->kind, s->rows * s->in);
        const unsigned char *tensor = (const unsigned char *)w + attr->tensor;
        return (double)tr__quantized_value(attr->kind, &at, tensor, o * s->in + i);
    }
    int64_t row = attr->first + o;
    return (
        double)((const float *)w)[attr->in_out ? i * s->all + row : row * s->in + i];
}

static void launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    const float *a = launch->in[1], *b = launch->in[2]; // [rank, in], [rows, rank]
    tr_row_squares_sizes s = tr__row_squares_sizes(desc);
    float *out = launch->out[0]; // [rows]
    (void)state;
    for (int64_t o = 0; o < s.rows; o++) {
        double squares = 0;
        for (int64_t i = 0; i < s.in; i++) {
            double sum = 0;
            for (int64_t k = 0; k < s.rank; k++) {
                sum += (double)b[o * s.rank + k] * (double)a[k * s.in + i];
            }
            sum = element(&s, launch->in[0], o, i) + (double)s.attr.scale * sum;
            squares += sum * sum;
        }
        out[o] = (float)(launch->accumulate & 1 ? (double)out[o] + squares : squares);
    }
}

static bool supports(const tr_op_desc *desc) {
    return desc->in[1].dtype == TR_F32;
}

const tr_kernel tr__row_squares_reference = {
    .name = "row_squares.reference",
    .supports = supports,
    .cost = tr__row_squares_cost,
    .launch = launch,
};

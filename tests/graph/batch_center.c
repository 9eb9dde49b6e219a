#include "graph/batch_center.h"

#include "ops/operand.h"

static tr_status sum_infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                           tr_error *err) {
    tr_status status = tr__operand_count(node, 1, 1, err);
    if (status == TR_OK) {
        status = tr__operand_dtype(node, 0, TR_F32, err);
    }
    if (status == TR_OK && node->in[0].shape.rank != 2) {
        status = tr_fail(err, TR_USAGE, "%s takes rows", node->op->name);
    }
    if (status == TR_OK) {
        out[0] = (tr_tensor_desc){TR_F32, TR_SHAPE1(node->in[0].shape.dim[1] + 1)};
        *out_count = 1;
    }
    return status;
}

static tr_status center_infer(const tr_op_node *node, tr_tensor_desc *out,
                              int *out_count, tr_error *err) {
    tr_status status = tr__operand_count(node, 2, 2, err);
    if (status == TR_OK) {
        status = tr__operand_dtype(node, 0, TR_F32, err);
    }
    if (status == TR_OK) {
        tr_shape stat = TR_SHAPE1(tr__shape_width(node->in[0].shape) + 1);
        status = tr__operand_shape(node, 1, TR_F32, stat, err);
    }
    if (status == TR_OK) {
        out[0] = node->in[0];
        *out_count = 1;
    }
    return status;
}

static bool supports(const tr_op_desc *desc) {
    return tr__desc_f32(desc);
}

static void launch_sum(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const float *x = launch->in[0]; // [rows, C]
    float *stat = launch->out[0];   // [C + 1]
    int64_t rows = desc->in[0].shape.dim[0], width = desc->in[0].shape.dim[1];
    for (int64_t c = 0; c <= width; c++) {
        double sum = launch->accumulate & 1 ? stat[c] : 0;
        for (int64_t r = 0; r < rows; r++) {
            sum += c < width ? x[r * width + c] : 1;
        }
        stat[c] = (float)sum;
    }
}

// in: dstat [C + 1]   out: dx [B, C]
static void launch_sum_backward(const tr_op_desc *desc, void *state,
                                const tr_launch *launch) {
    (void)state;
    const float *dstat = launch->in[0];
    float *dx = launch->out[0];
    int64_t rows = desc->out[0].shape.dim[0], width = desc->out[0].shape.dim[1];
    for (int64_t i = 0; i < rows * width; i++) {
        dx[i] = (launch->accumulate & 1 ? dx[i] : 0) + dstat[i % width];
    }
}

static void launch_center(const tr_op_desc *desc, void *state,
                          const tr_launch *launch) {
    (void)state;
    const float *x = launch->in[0], *stat = launch->in[1]; // [rows, C], [C + 1]
    float *y = launch->out[0];                             // [rows, C]
    int64_t rows = desc->in[0].shape.dim[0], width = desc->in[0].shape.dim[1];
    for (int64_t i = 0; i < rows * width; i++) {
        float centered = x[i] - stat[i % width] / stat[width];
        y[i] = (launch->accumulate & 1 ? y[i] : 0) + centered;
    }
}

// in: dy [B, C], stat [C + 1]   out: dstat [C + 1], also that of the number of rows
static void launch_center_backward(const tr_op_desc *desc, void *state,
                                   const tr_launch *launch) {
    (void)state;
    const float *dy = launch->in[0], *stat = launch->in[1];
    float *dstat = launch->out[0];
    int64_t rows = desc->in[0].shape.dim[0], width = desc->in[0].shape.dim[1];
    double count = stat[width], of_count = 0;
    bool add = launch->accumulate & 1;
    for (int64_t c = 0; c < width; c++) {
        double sum = 0;
        for (int64_t r = 0; r < rows; r++) {
            sum += dy[r * width + c];
        }
        dstat[c] = (float)((add ? dstat[c] : 0) - sum / count);
        of_count += sum * stat[c] / (count * count);
    }
    dstat[width] = (float)((add ? dstat[width] : 0) + of_count);
}

static const tr_kernel sum_kernel = {
    .name = "batch_sum.test", .supports = supports, .launch = launch_sum};
static const tr_kernel sum_backward_kernel = {.name = "batch_sum_backward.test",
                                              .supports = supports,
                                              .launch = launch_sum_backward};
static const tr_kernel center_kernel = {
    .name = "batch_center.test", .supports = supports, .launch = launch_center};
static const tr_kernel center_backward_kernel = {.name = "batch_center_backward.test",
                                                 .supports = supports,
                                                 .launch = launch_center_backward};

static const tr_op op_sum_backward = {.name = "batch_sum_backward",
                                      .reference = &sum_backward_kernel};
static const tr_op op_center_backward = {.name = "batch_center_backward",
                                         .reference = &center_backward_kernel};

static int sum_backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    (void)node;
    rules[0] = (tr_rule){
        .op = &op_sum_backward, .in = {TR_GRAD_OUT(0)}, .out = {TR_GRAD_IN(0)}};
    return 1;
}

static int center_backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    (void)node;
    rules[0] = (tr_rule){.op = &op_center_backward,
                         .in = {TR_GRAD_OUT(0), TR_IN(1)},
                         .out = {TR_GRAD_IN(1)}};
    rules[1] = (tr_rule){.in = {TR_GRAD_OUT(0)}, .out = {TR_GRAD_IN(0)}};
    return 2;
}

const tr_op test_op_batch_sum = {.name = "batch_sum",
                                 .wave_outputs = 1,
                                 .infer = sum_infer,
                                 .backward = sum_backward,
                                 .reference = &sum_kernel};
const tr_op test_op_batch_center = {.name = "batch_center",
                                    .infer = center_infer,
                                    .backward = center_backward,
                                    .reference = &center_kernel};

tr_value test_batch_center(tr_graph *graph, tr_value x) {
    tr_value stat = tr_graph_op(graph, &test_op_batch_sum, NULL, &x, 1, NULL);
    return tr_graph_op(graph, &test_op_batch_center, NULL, (tr_value[]){x, stat}, 2,
                       NULL);
}

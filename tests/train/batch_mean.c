#include "batch_mean.h"

static bool adds(const tr_launch *launch, int output) {
    return (launch->accumulate >> output & 1) != 0;
}

static bool is_f32(const tr_op_desc *desc) {
    return desc->in[0].dtype == TR_F32;
}

// ---- the sum over the wave

static tr_status infer_sum(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                           tr_error *err) {
    if (node->in_count != 2 || node->in[0].shape.rank != 2 ||
        node->in[0].dtype != TR_F32 || node->in[1].dtype != TR_I32) {
        return tr_fail(err, TR_USAGE, "wave_sum takes rows of f32 and their targets");
    }
    out[0] = (tr_tensor_desc){TR_F32, TR_SHAPE1(node->in[0].shape.dim[1])};
    out[1] = (tr_tensor_desc){TR_F32, TR_SHAPE1(1)};
    *out_count = 2;
    return TR_OK;
}

static void launch_sum(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    int64_t rows = desc->in[0].shape.dim[0], width = desc->in[0].shape.dim[1];
    const float *x = launch->in[0];        // [rows, width]
    const int32_t *target = launch->in[1]; // [rows]
    float *sum = launch->out[0];           // [width]
    float *count = launch->out[1];         // [1]
    (void)state;
    for (int64_t c = 0; c < width; c++) {
        double total = adds(launch, 0) ? sum[c] : 0;
        for (int64_t r = 0; r < rows; r++) {
            total += target[r] >= 0 ? x[r * width + c] : 0;
        }
        sum[c] = (float)total;
    }
    count[0] = adds(launch, 1) ? count[0] : 0;
    for (int64_t r = 0; r < rows; r++) {
        count[0] += target[r] >= 0;
    }
}

// in: dsum [C], targets [B]   out: dx [B, C]
static void launch_sum_backward(const tr_op_desc *desc, void *state,
                                const tr_launch *launch) {
    int64_t rows = desc->out[0].shape.dim[0], width = desc->out[0].shape.dim[1];
    const float *dsum = launch->in[0];
    const int32_t *target = launch->in[1];
    float *dx = launch->out[0];
    (void)state;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < width; c++) {
            float *to = &dx[r * width + c];
            *to = (adds(launch, 0) ? *to : 0) + (target[r] >= 0 ? dsum[c] : 0);
        }
    }
}

static const tr_kernel sum_kernel = {
    .name = "wave_sum", .supports = is_f32, .launch = launch_sum};
static const tr_kernel sum_backward_kernel = {
    .name = "wave_sum_backward", .supports = is_f32, .launch = launch_sum_backward};
static const tr_op op_sum_backward = {.name = "wave_sum_backward",
                                      .reference = &sum_backward_kernel};

static int sum_rules(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    (void)node;
    rules[0] = (tr_rule){.op = &op_sum_backward,
                         .in = {TR_GRAD_OUT(0), TR_IN(1)},
                         .out = {TR_GRAD_IN(0)}};
    return 1;
}

const tr_op test_op_wave_sum = {
    .name = "wave_sum",
    .no_gradient = 1 << 1,
    .wave_outputs = 1 << 0 | 1 << 1,
    .infer = infer_sum,
    .backward = sum_rules,
    .reference = &sum_kernel,
};

// ---- rows without the mean

static tr_status infer_center(const tr_op_node *node, tr_tensor_desc *out,
                              int *out_count, tr_error *err) {
    if (node->in_count != 3 || node->in[0].shape.rank != 2 ||
        node->in[1].shape.dim[0] != node->in[0].shape.dim[1]) {
        return tr_fail(err, TR_USAGE, "without_mean takes rows, their sum and count");
    }
    out[0] = node->in[0];
    *out_count = 1;
    return TR_OK;
}

static float at_least_one(float count) {
    return count > 1 ? count : 1;
}

static void launch_center(const tr_op_desc *desc, void *state,
                          const tr_launch *launch) {
    int64_t rows = desc->in[0].shape.dim[0], width = desc->in[0].shape.dim[1];
    const float *x = launch->in[0], *sum = launch->in[1], *count = launch->in[2];
    float *y = launch->out[0];
    (void)state;
    for (int64_t i = 0; i < rows * width; i++) {
        y[i] = x[i] - sum[i % width] / at_least_one(count[0]);
    }
}

// in: dy [B, C], count [1]   out: dsum [C]
static void launch_center_backward(const tr_op_desc *desc, void *state,
                                   const tr_launch *launch) {
    int64_t rows = desc->in[0].shape.dim[0], width = desc->in[0].shape.dim[1];
    const float *dy = launch->in[0], *count = launch->in[1];
    float *dsum = launch->out[0];
    (void)state;
    for (int64_t c = 0; c < width; c++) {
        double total = 0;
        for (int64_t r = 0; r < rows; r++) {
            total -= dy[r * width + c];
        }
        dsum[c] =
            (adds(launch, 0) ? dsum[c] : 0) + (float)(total / at_least_one(count[0]));
    }
}

static const tr_kernel center_kernel = {
    .name = "without_mean", .supports = is_f32, .launch = launch_center};
static const tr_kernel center_backward_kernel = {.name = "without_mean_backward",
                                                 .supports = is_f32,
                                                 .launch = launch_center_backward};
static const tr_op op_center_backward = {.name = "without_mean_backward",
                                         .reference = &center_backward_kernel};

static int center_rules(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    (void)node;
    rules[0] = (tr_rule){.op = &op_center_backward,
                         .in = {TR_GRAD_OUT(0), TR_IN(2)},
                         .out = {TR_GRAD_IN(1)}};
    rules[1] = (tr_rule){.in = {TR_GRAD_OUT(0)}, .out = {TR_GRAD_IN(0)}}; // dx = dy
    return 2;
}

const tr_op test_op_without_mean = {
    .name = "without_mean",
    .no_gradient = 1 << 2,
    .infer = infer_center,
    .backward = center_rules,
    .reference = &center_kernel,
};

tr_value test_without_mean(tr_graph *graph, tr_value x, tr_value targets) {
    tr_value wave[2] = {TR_NO_VALUE, TR_NO_VALUE};
    tr_graph_op(graph, &test_op_wave_sum, NULL, (tr_value[]){x, targets}, 2, wave);
    return tr_graph_op(graph, &test_op_without_mean, NULL,
                       (tr_value[]){x, wave[0], wave[1]}, 3, NULL);
}

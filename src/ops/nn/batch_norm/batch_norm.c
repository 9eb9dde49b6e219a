#include "ops/nn/batch_norm/batch_norm.h"

#include "ops/nn/batch_norm/operands.h"

extern const tr_kernel tr__batch_stat_reference, tr__batch_stat_backward_reference,
    tr__batch_norm_reference, tr__batch_norm_backward_reference,
    tr__batch_track_reference;

// ---- shape rules

static tr_status check_image(const tr_op_node *node, int i, tr_error *err) {
    char text[TR_SHAPE_TEXT];
    tr_status status = tr__operand_real(node, i, err);
    if (status == TR_OK && node->in[i].shape.rank < 2) {
        return tr_fail(err, TR_USAGE,
                       "%s: input %d has the shape %s, not rows with channels",
                       node->op->name, i, tr__shape_text(node->in[i].shape, text));
    }
    return status;
}

static bool is_there(const tr_op_node *node, int i) {
    return i < node->in_count && node->in[i].dtype != TR_NONE;
}

static tr_shape stat_shape(tr_shape x) {
    return TR_SHAPE2(TR_STAT_ROWS, tr__shape_width(x));
}

static tr_shape channel_shape(tr_shape x) {
    return TR_SHAPE1(tr__shape_width(x));
}

static tr_status check_states(const tr_op_node *node, tr_error *err) {
    tr_shape channels = channel_shape(node->in[0].shape);
    tr_status status = TR_OK;
    for (int i = 1; i < 3 && status == TR_OK && is_there(node, i); i++) {
        status = tr__operand_shape(node, i, TR_F32, channels, err);
    }
    bool counts = is_there(node, 3);
    if (status == TR_OK && counts &&
        (node->in[3].dtype != TR_I64 || node->in[3].shape.rank != 0)) {
        return tr_fail(err, TR_USAGE, "%s: input 3 is not one i64", node->op->name);
    }
    bool all = is_there(node, 1) && is_there(node, 2) && counts;
    bool none = !is_there(node, 1) && !is_there(node, 2) && !counts;
    return status != TR_OK || all || none
               ? status
               : tr_fail(err, TR_USAGE, "%s: has some of its three states",
                         node->op->name);
}

static tr_status stat_infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                            tr_error *err) {
    tr_status status = tr__operand_count(node, 1, 4, err);
    status = status == TR_OK ? check_image(node, 0, err) : status;
    status = status == TR_OK ? check_states(node, err) : status;
    if (status == TR_OK) {
        out[0] = (tr_tensor_desc){TR_F64, stat_shape(node->in[0].shape)};
        *out_count = 1;
    }
    return status;
}

static tr_status stat_own_infer(const tr_op_node *node, tr_tensor_desc *out,
                                int *out_count, tr_error *err) {
    tr_status status = stat_infer(node, out, out_count, err);
    if (status == TR_OK) {
        out[1] = out[0];
        *out_count = 2;
    }
    return status;
}

static tr_status stat_backward_infer(const tr_op_node *node, tr_tensor_desc *out,
                                     int *out_count, tr_error *err) {
    tr_status status = tr__operand_count(node, 3, 3, err);
    status = status == TR_OK ? check_image(node, 1, err) : status;
    for (int i = 0; i < 3 && status == TR_OK; i += 2) {
        status = tr__operand_shape(node, i, TR_F64, stat_shape(node->in[1].shape), err);
    }
    if (status == TR_OK) {
        out[0] = node->in[1];
        *out_count = 1;
    }
    return status;
}

static tr_status norm_infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                            tr_error *err) {
    tr_status status = tr__operand_count(node, 4, 7, err);
    status = status == TR_OK ? check_image(node, 0, err) : status;
    if (status != TR_OK) {
        return status;
    }
    tr_shape x = node->in[0].shape, channels = channel_shape(x);
    status = tr__operand_shape(node, 1, TR_F64, stat_shape(x), err);
    for (int i = 2; i < 7 && status == TR_OK; i++) {
        if (i < 4 || is_there(node, i)) { // 5, 6: states
            status = tr__operand_shape(node, i, i < 5 ? node->in[0].dtype : TR_F32,
                                       i == 4 ? x : channels, err);
        }
    }
    if (status == TR_OK) {
        out[0] = node->in[0];
        *out_count = 1;
    }
    return status;
}

static tr_status norm_backward_infer(const tr_op_node *node, tr_tensor_desc *out,
                                     int *out_count, tr_error *err) {
    const tr_batch_norm_attr *attr = node->attr;
    tr_status status = tr__operand_count(node, 5, 5, err);
    status = status == TR_OK ? check_image(node, 0, err) : status;
    if (status != TR_OK) {
        return status;
    }
    tr_shape x = node->in[0].shape, channels = channel_shape(x);
    tr_dtype real = node->in[0].dtype;
    status = tr__operand_shape(node, 1, real, x, err);
    if (status == TR_OK && attr->relu) {
        status = tr__operand_shape(node, 2, real, x, err);
    }
    status = status == TR_OK ? tr__operand_shape(node, 3, TR_F64, stat_shape(x), err)
                             : status;
    status = status == TR_OK ? tr__operand_shape(node, 4, real, channels, err) : status;
    if (status == TR_OK) {
        out[0] = out[1] = node->in[1];
        out[2] = node->in[3];
        out[3] = out[4] = tr__param_gradient(node->in[4]);
        *out_count = 5;
    }
    return status;
}

static tr_status track_infer(const tr_op_node *node, tr_tensor_desc *out,
                             int *out_count, tr_error *err) {
    tr_status status = tr__operand_count(node, 1, 1, err);
    status = status == TR_OK ? tr__operand_dtype(node, 0, TR_F64, err) : status;
    if (status == TR_OK) {
        out[0] = out[1] = (tr_tensor_desc){TR_F32, channel_shape(node->in[0].shape)};
        out[2] = (tr_tensor_desc){.dtype = TR_I64};
        *out_count = 3;
    }
    return status;
}

// ---- rules

static int stat_backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    (void)node;
    rules[0] = (tr_rule){.op = &tr__op_batch_stat_backward,
                         .in = {TR_GRAD_OUT(0), TR_IN(0), TR_OUT(0)},
                         .out = {TR_GRAD_IN(0)}};
    return 1;
}

static bool track_from(const tr_op_node *node, int output, tr_rule *rule) {
    *rule = (tr_rule){.op = &tr__op_batch_track,
                      .in = {{TR_REF_OUT, output}},
                      .out = {TR_IN(1), TR_IN(2), TR_IN(3)}};
    memcpy(rule->attr, node->attr, sizeof(tr_batch_stat_attr));
    return is_there(node, 1);
}

static bool stat_track(const tr_op_node *node, tr_rule *rule) {
    return track_from(node, 0, rule);
}

static bool stat_own_track(const tr_op_node *node, tr_rule *rule) {
    return track_from(node, 1, rule);
}

static void merge(const tr_tensor_desc *desc, void *into, const void *part) {
    int64_t channels = tr__shape_width(desc->shape);
    for (int64_t c = 0; c < channels; c++) {
        tr__statistic_give(into, channels, c, tr__statistic_at(part, channels, c),
                           true);
    }
}

static int norm_backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    const tr_batch_norm_attr *attr = node->attr;
    rules[0] = (tr_rule){
        .op = &tr__op_batch_norm_backward,
        .in = {TR_GRAD_OUT(0), TR_IN(0), TR_ABSENT, TR_IN(1), TR_IN(2)},
        .out = {TR_GRAD_IN(0), TR_ABSENT, TR_GRAD_IN(1), TR_GRAD_IN(2), TR_GRAD_IN(3)},
    };
    if (attr->relu) {
        rules[0].in[2] = (tr_ref)TR_OUT(0);
    }
    memcpy(rules[0].attr, attr, sizeof *attr);
    if (!is_there(node, 4)) {
        return 1;
    }
    if (attr->relu) {
        rules[0].out[1] = (tr_ref)TR_GRAD_IN(4);
        return 1;
    }
    rules[1] = (tr_rule){.in = {TR_GRAD_OUT(0)}, .out = {TR_GRAD_IN(4)}};
    return 2;
}

const tr_op tr__op_batch_stat = {
    .name = "batch_stat",
    .attr_bytes = sizeof(tr_batch_stat_attr),
    .no_gradient = 1 << 1 | 1 << 2 | 1 << 3,
    .wave_outputs = 1,
    .merge = merge,
    .evaluate_only = 1 << 1 | 1 << 2 | 1 << 3, // tracking reads them
    .infer = stat_infer,
    .backward = stat_backward,
    .track = stat_track,
    .reference = &tr__batch_stat_reference,
};

const tr_op tr__op_batch_stat_own = {
    .name = "batch_stat_own",
    .attr_bytes = sizeof(tr_batch_stat_attr),
    .no_gradient = 1 << 1 | 1 << 2 | 1 << 3,
    .wave_outputs = 1 << 1,
    .merge = merge,
    .evaluate_only = 1 << 1 | 1 << 2 | 1 << 3,
    .infer = stat_own_infer,
    .backward = stat_backward,
    .track = stat_own_track,
    .reference = &tr__batch_stat_reference,
};

const tr_op tr__op_batch_stat_rank = {
    .name = "batch_stat_rank",
    .attr_bytes = sizeof(tr_batch_stat_attr),
    .no_gradient = 1 << 1 | 1 << 2 | 1 << 3,
    .wave_outputs = 1 | 1 << 1,
    .rank_outputs = 1,
    .merge = merge,
    .evaluate_only = 1 << 1 | 1 << 2 | 1 << 3,
    .infer = stat_own_infer,
    .backward = stat_backward,
    .track = stat_own_track,
    .reference = &tr__batch_stat_reference,
};

const tr_op tr__op_batch_stat_backward = {
    .name = "batch_stat_backward",
    .infer = stat_backward_infer,
    .reference = &tr__batch_stat_backward_reference,
};

const tr_op tr__op_batch_norm = {
    .name = "batch_norm",
    .attr_bytes = sizeof(tr_batch_norm_attr),
    .no_gradient = 1 << 5 | 1 << 6,
    .train_only = 1 << 1,
    .evaluate_only = 1 << 5 | 1 << 6,
    .infer = norm_infer,
    .backward = norm_backward,
    .reference = &tr__batch_norm_reference,
};

const tr_op tr__op_batch_norm_backward = {
    .name = "batch_norm_backward",
    .attr_bytes = sizeof(tr_batch_norm_attr),
    .in_place = 1,
    .infer = norm_backward_infer,
    .reference = &tr__batch_norm_backward_reference,
};

const tr_op tr__op_batch_track = {
    .name = "batch_track",
    .attr_bytes = sizeof(tr_batch_stat_attr),
    .infer = track_infer,
    .reference = &tr__batch_track_reference,
};

// The ops, and their references: factors are rounded to codes of 8 bits, one number
// after the other, and back; the product of what comes of it is the reference of
// `linear`.
#include "ops/nn/linear/backward.h"
#include "ops/nn/linear_fp8/factors.h"

// ---- references

// x, to: [count]
static void round_factor(tr_fp8 format, const float *x, int64_t count, uint32_t largest,
                         float *to) {
    tr_fp8_scale scale = tr__fp8_scale_of(format, largest);
    for (int64_t i = 0; i < count; i++) {
        uint8_t code = tr__fp8_of_f32(format, x[i] * scale.by);
        to[i] = tr__fp8_to_f32(format, code) * scale.back;
    }
}

static size_t workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    return tr__fp8_copy_at(desc, TR_FP8_FACTORS);
}

static void launch_rounded(const tr_op_desc *desc, void *state,
                           const tr_launch *launch) {
    tr_op_desc plain = tr__fp8_plain_desc(desc);
    tr_launch same = *launch;
    for (int i = 0; i < TR_FP8_FACTORS; i++) {
        float *copy = (void *)((char *)launch->workspace + tr__fp8_copy_at(desc, i));
        uint32_t largest =
            tr__fp8_factor_is_told(desc, i)
                ? tr__fp8_factor_told(desc, launch, i)
                : tr__largest_bits(launch->in[i],
                                   tr__fp8_factor_there(desc, i, launch));
        round_factor(tr__fp8_factor_format(desc, i), launch->in[i],
                     tr__fp8_factor_count(desc, i), largest, copy);
        same.in[i] = copy;
    }
    plain.op->reference->launch(&plain, state, &same);
}

static const tr_kernel output_reference = {
    .name = "linear_fp8.reference",
    .supports = tr__desc_f32,
    .cost = tr__linear_output_cost,
    .workspace = workspace,
    .launch = launch_rounded,
};

static const tr_kernel input_reference = {
    .name = "linear_fp8_backward_input.reference",
    .supports = tr__desc_f32,
    .cost = tr__linear_input_cost,
    .workspace = workspace,
    .launch = launch_rounded,
};

static const tr_kernel weight_reference = {
    .name = "linear_fp8_backward_weight.reference",
    .supports = tr__desc_f32,
    .cost = tr__linear_weight_cost,
    .workspace = workspace,
    .launch = launch_rounded,
};

// ---- ops

static tr_status told_infer(const tr_op_node *node, int factor, tr_error *err) {
    const tr_linear_fp8_attr *attr = node->attr;
    int i = tr__fp8_factor_tells(node->op, factor);
    if (!tr__fp8_is_told(node->op, node->in, node->in_count, factor)) {
        return TR_OK;
    }
    tr_status status = tr__operand_dtype(node, i, TR_F32, err);
    const tr_shape *told = &node->in[i].shape;
    if (status == TR_OK && (told->rank != 2 || attr->column[factor] >= told->dim[1])) {
        return tr_fail(
            err, TR_USAGE,
            "%s: input %d has no column %d, where the largest value of input "
            "%d should be",
            node->op->name, i, attr->column[factor], factor);
    }
    return status;
}

// As that of the op that multiplies factors as they are.
static tr_status infer(const tr_op_node *node, const tr_op *as, tr_tensor_desc *out,
                       int *out_count, tr_error *err) {
    tr_op_node plain = *node;
    int most = tr__fp8_plain_inputs(node->op);
    plain.in_count = node->in_count < most ? node->in_count : most;
    if (node->in_count > most + TR_FP8_FACTORS) {
        return tr_fail(err, TR_USAGE, "%s: %d operands, and it has %d at most",
                       node->op->name, node->in_count, most + TR_FP8_FACTORS);
    }
    tr_status status = as->infer(&plain, out, out_count, err);
    *out_count = 1;
    for (int i = 0; i < TR_FP8_FACTORS && status == TR_OK; i++) {
        status = told_infer(node, i, err);
    }
    return status;
}

static tr_status output_infer(const tr_op_node *node, tr_tensor_desc *out,
                              int *out_count, tr_error *err) {
    return infer(node, &tr__op_linear, out, out_count, err);
}

static tr_status input_infer(const tr_op_node *node, tr_tensor_desc *out,
                             int *out_count, tr_error *err) {
    return infer(node, &tr__op_linear_backward_input, out, out_count, err);
}

static tr_status weight_infer(const tr_op_node *node, tr_tensor_desc *out,
                              int *out_count, tr_error *err) {
    return infer(node, &tr__op_linear_backward_weight, out, out_count, err);
}

// The ways are those of `linear`: rewrites into 8 bits come behind the split, and who
// looks at a rank's node finds its way here.
static bool split(const tr_op_node *node, int way, int64_t ranks, int64_t rank,
                  tr_split *out) {
    for (int i = tr__fp8_plain_inputs(node->op); i < TR_OP_IN_MAX; i++) {
        out->in[i] = tr__uncut();
    }
    return tr__op_linear.split(node, way, ranks, rank, out);
}

// ---- the backward

// The operand with the largest value of the node's input `input`, x or the weight.
static tr_ref told_of(const tr_op_node *node, int input) {
    return tr__fp8_is_told(node->op, node->in, node->in_count, input)
               ? (tr_ref)TR_IN(tr__fp8_factor_tells(node->op, input))
               : (tr_ref)TR_ABSENT;
}

// Of the product of dy and the node's input `input`: what tells their largest values.
static void tell(const tr_op_node *node, tr_rule *rule, tr_ref dy, int input) {
    tr_linear_fp8_attr attr;
    memcpy(&attr, node->attr, sizeof attr);
    attr.column[1] = attr.column[input];
    attr.column[0] = 0;
    memcpy(rule->attr, &attr, sizeof attr);
    rule->in[tr__fp8_factor_tells(rule->op, 0)] = dy;
    rule->in[tr__fp8_factor_tells(rule->op, 1)] = told_of(node, input);
}

// The largest value of dy, of which each rank has a part.
static int find_largest(const tr_op_node *node, tr_ref dy, tr_rule rules[2]) {
    const tr_linear_fp8_attr *of = node->attr;
    const tr_largest_attr rows = {.rows = 1};
    const tr_gather_largest_attr group = {of->axes, of->ranks, of->rank};
    rules[0] = (tr_rule){.op = &tr__op_largest, .in = {dy}, .out = {TR_TEMP(1)}};
    rules[0].temp[1] = (tr_tensor_desc){TR_F32, TR_SHAPE1(1)};
    memcpy(rules[0].attr, &rows, sizeof rows);
    rules[1] = (tr_rule){
        .op = &tr__op_gather_largest, .in = {TR_TEMP(1)}, .out = {TR_TEMP(2)}};
    rules[1].temp[2] = (tr_tensor_desc){TR_F32, TR_SHAPE2(of->ranks, 1)};
    memcpy(rules[1].attr, &group, sizeof group);
    return 2;
}

static int backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    const tr_linear_ops ops = {.weight = &tr__op_linear_fp8_backward_weight,
                               .bias = &tr__op_linear_backward_bias,
                               .input = &tr__op_linear_fp8_backward_input};
    const tr_linear_fp8_attr *attr = node->attr;
    const tr_ref none = TR_ABSENT, found = TR_TEMP(2);
    tr_rule plain[TR_OP_RULES_MAX] = {0};
    int given = tr__linear_rules(node, ops, plain), count = 0;
    bool searches = attr->axes && (node->unwanted & 3) != 3;
    for (int i = 0; i < given; i++) {
        bool weight = plain[i].op == ops.weight, input = plain[i].op == ops.input;
        if (searches && (weight || input)) {
            count += find_largest(node, plain[i].in[0], rules + count);
            searches = false;
        }
        rules[count] = plain[i];
        if (weight || input) {
            tell(node, &rules[count], attr->axes ? found : none, input);
        }
        count++;
    }
    return count;
}

const tr_op tr__op_linear_fp8 = {
    .name = "linear_fp8",
    .attr_bytes = sizeof(tr_linear_fp8_attr),
    .flags = TR_OP_FP8,
    .no_gradient = 3u << 3,
    .packed_input = 1 + 1,
    .split = split,
    .infer = output_infer,
    .backward = backward,
    .recompute_class = {TR_RECOMPUTE_PRODUCT},
    .reference = &output_reference,
};

const tr_op tr__op_linear_fp8_backward_input = {
    .name = "linear_fp8_backward_input",
    .attr_bytes = sizeof(tr_linear_fp8_attr),
    .flags = TR_OP_FP8,
    .packed_input = 1 + 1,
    .infer = input_infer,
    .reference = &input_reference,
};

const tr_op tr__op_linear_fp8_backward_weight = {
    .name = "linear_fp8_backward_weight",
    .attr_bytes = sizeof(tr_linear_fp8_attr),
    .flags = TR_OP_FP8,
    .infer = weight_infer,
    .reference = &weight_reference,
};

#include "ops/rope/rope.h"

#include "ops/operand.h"
#include "ops/positions.h"

#include <math.h>
#include <string.h>

extern const tr_kernel tr__rope_reference, tr__rope_backward_reference;

// ---- frequencies

// 0 up to `from`, 1 from `to` on, a line between.
static double ramp(double x, double from, double to) {
    return fmin(1, fmax(0, (x - from) / (to - from)));
}

static double llama3(const tr_rope_attr *attr, double frequency) {
    double turns = attr->original * frequency / (2 * M_PI);
    double stays = ramp(turns, attr->low, attr->high);
    return (stays + (1 - stays) / attr->factor) * frequency;
}

// The pair that makes so many turns in the original context.
static double pair_of(const tr_rope_attr *attr, double turns) {
    double wave = attr->original / (turns * 2 * M_PI);
    return attr->depth * log(wave) / (2 * log(attr->theta));
}

// Limits as transformers has them: within the head's D elements, though there are D/2
// pairs.
static double yarn(const tr_rope_attr *attr, int64_t j, double frequency) {
    double from = pair_of(attr, attr->high), to = pair_of(attr, attr->low);
    from = fmax(0, attr->whole ? floor(from) : from);
    to = fmin(attr->depth - 1, attr->whole ? ceil(to) : to);
    double slower = ramp((double)j, from, to > from ? to : from + 1e-3);
    return (1 - slower + slower / attr->factor) * frequency;
}

double tr__rope_frequency(const tr_rope_attr *attr, int64_t j) {
    double frequency = pow(attr->theta, -2.0 * (double)j / attr->depth);
    switch (attr->scaling) {
    case TR_ROPE_LINEAR:
        return frequency / attr->factor;
    case TR_ROPE_LLAMA3:
        return llama3(attr, frequency);
    case TR_ROPE_YARN:
        return yarn(attr, j, frequency);
    default:
        return frequency;
    }
}

// ---- rules

static tr_status infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                       tr_error *err) {
    char text[TR_SHAPE_TEXT];
    tr_rope_attr attr;
    memcpy(&attr, node->attr, sizeof attr);
    tr_op_node alone = *node; // without the positions
    alone.in_count = 1;
    tr_status status = tr__operand_count(node, 1, 2, err);
    if (status == TR_OK) {
        status = tr__operand_same(&alone, 1, out, out_count, err);
    }
    if (status != TR_OK) {
        return status;
    }
    tr_shape shape = node->in[0].shape;
    if (attr.depth < 2 || attr.depth % 2 != 0) {
        return tr_fail(err, TR_USAGE, "%s: heads of %d elements cannot be halved",
                       node->op->name, (int)attr.depth);
    }
    if (shape.rank != 3 || attr.heads < 1 ||
        shape.dim[2] < (int64_t)attr.heads * attr.depth) {
        return tr_fail(err, TR_USAGE,
                       "%s: the input has the shape %s, not [B, S, W] with room for %d "
                       "heads of %d",
                       node->op->name, tr__shape_text(shape, text), (int)attr.heads,
                       (int)attr.depth);
    }
    return tr__operand_positions(node, 1, shape, err);
}

static int backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    rules[0] = (tr_rule){
        .op = &tr__op_rope_backward,
        .in = {TR_GRAD_OUT(0)},
        .out = {TR_GRAD_IN(0)},
    };
    if (tr__has_positions(node, 1)) {
        rules[0].in[1] = (tr_ref)TR_IN(1);
    }
    memcpy(rules[0].attr, node->attr, sizeof(tr_rope_attr));
    return 1;
}

const tr_op tr__op_rope = {
    .name = "rope",
    .attr_bytes = sizeof(tr_rope_attr),
    .in_place = 1,
    .no_gradient = 1 << 1,
    .positions = 1 << 1,
    .infer = infer,
    .backward = backward,
    .reference = &tr__rope_reference,
};

const tr_op tr__op_rope_backward = {
    .name = "rope_backward",
    .attr_bytes = sizeof(tr_rope_attr),
    .positions = 1 << 1,
    .in_place = 1,
    .infer = infer,
    .reference = &tr__rope_backward_reference,
};

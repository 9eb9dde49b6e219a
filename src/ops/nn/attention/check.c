// What attention may be asked for.
#include "ops/nn/attention/sizes.h"
#include "ops/operand.h"

static tr_status check_attr(const tr_op_node *node, tr_error *err) {
    tr_attention_attr attr;
    memcpy(&attr, node->attr, sizeof attr);
    if (attr.heads < 1 || attr.kv_heads < 0 ||
        (attr.kv_heads > 0 && attr.heads % attr.kv_heads != 0)) {
        return tr_fail(err, TR_USAGE,
                       "%s: %d heads of queries cannot share %d heads of keys",
                       node->op->name, (int)attr.heads, (int)attr.kv_heads);
    }
    if (attr.window < 0) {
        return tr_fail(err, TR_USAGE, "%s: a window of %d keys", node->op->name,
                       (int)attr.window);
    }
    if (attr.both != 0 && (attr.both != 1 || attr.window > 0)) {
        return tr_fail(err, TR_USAGE, "%s: both ways (%d) with a window of %d keys",
                       node->op->name, (int)attr.both, (int)attr.window);
    }
    if (!(attr.dropout >= 0 && attr.dropout < 1)) {
        return tr_fail(err, TR_USAGE, "%s: dropout %g is not in [0, 1)", node->op->name,
                       (double)attr.dropout);
    }
    return TR_OK;
}

static int64_t all_heads(const tr_attention_attr *attr) {
    return attr->heads +
           2 * (int64_t)(attr->kv_heads > 0 ? attr->kv_heads : attr->heads);
}

tr_status tr__attention_check(const tr_op_node *node, int i, tr_error *err) {
    char text[TR_SHAPE_TEXT];
    tr_status status = check_attr(node, err);
    if (status == TR_OK) {
        status = tr__operand_real(node, i, err);
    }
    if (status != TR_OK) {
        return status;
    }
    tr_attention_attr attr;
    memcpy(&attr, node->attr, sizeof attr);
    tr_shape shape = node->in[i].shape;
    if (shape.rank != 3 || shape.dim[2] % all_heads(&attr) != 0) {
        return tr_fail(err, TR_USAGE,
                       "%s: input %d has the shape %s, not [B, S, W] with W a multiple "
                       "of the %d heads of queries, keys and values",
                       node->op->name, i, tr__shape_text(shape, text),
                       (int)all_heads(&attr));
    }
    return TR_OK;
}

#include "ops/operand.h"

#include "base/half.h"

#include <stdio.h>

char *tr__shape_text(tr_shape shape, char *dst) {
    size_t at = (size_t)snprintf(dst, TR_SHAPE_TEXT, "[");
    for (int d = 0; d < shape.rank && d < TR_RANK_MAX; d++) {
        const char *comma = d ? ", " : "";
        if (shape.dim[d] == TR_BATCH) {
            at += (size_t)snprintf(dst + at, TR_SHAPE_TEXT - at, "%sB", comma);
        } else {
            at += (size_t)snprintf(dst + at, TR_SHAPE_TEXT - at, "%s%lld", comma,
                                   (long long)shape.dim[d]);
        }
    }
    snprintf(dst + at, TR_SHAPE_TEXT - at, "]");
    return dst;
}

tr_status tr__operand_count(const tr_op_node *node, int least, int most,
                            tr_error *err) {
    if (node->in_count < least || node->in_count > most) {
        return tr_fail(err, TR_USAGE, "%s takes %d to %d inputs, not %d",
                       node->op->name, least, most, node->in_count);
    }
    return TR_OK;
}

static bool shape_is_whole(tr_shape shape) {
    if (shape.rank < 1 || shape.rank > TR_RANK_MAX) {
        return false;
    }
    for (int d = 0; d < shape.rank; d++) {
        if (shape.dim[d] < 1 && !(d == 0 && shape.dim[d] == TR_BATCH)) {
            return false;
        }
    }
    return true;
}

tr_status tr__operand_dtype(const tr_op_node *node, int i, tr_dtype dtype,
                            tr_error *err) {
    char text[TR_SHAPE_TEXT];
    tr_tensor_desc in = node->in[i];
    if (in.dtype != dtype) {
        return tr_fail(err, TR_USAGE, "%s: input %d is %s, not %s", node->op->name, i,
                       in.dtype == TR_NONE ? "left out" : tr_dtype_name(in.dtype),
                       tr_dtype_name(dtype));
    }
    if (!shape_is_whole(in.shape)) {
        return tr_fail(err, TR_USAGE, "%s: input %d has the shape %s", node->op->name,
                       i, tr__shape_text(in.shape, text));
    }
    return TR_OK;
}

tr_status tr__operand_real(const tr_op_node *node, int i, tr_error *err) {
    tr_dtype dtype = node->in[i].dtype;
    bool half = dtype == TR_BF16 || dtype == TR_F16;
    return tr__operand_dtype(node, i, half ? dtype : TR_F32, err);
}

tr_status tr__operand_shape(const tr_op_node *node, int i, tr_dtype dtype,
                            tr_shape shape, tr_error *err) {
    char got[TR_SHAPE_TEXT], want[TR_SHAPE_TEXT];
    tr_status status = tr__operand_dtype(node, i, dtype, err);
    if (status != TR_OK) {
        return status;
    }
    if (!tr_shape_equal(node->in[i].shape, shape)) {
        return tr_fail(err, TR_USAGE, "%s: input %d has the shape %s, not %s",
                       node->op->name, i, tr__shape_text(node->in[i].shape, got),
                       tr__shape_text(shape, want));
    }
    return TR_OK;
}

tr_status tr__operand_same(const tr_op_node *node, int count, tr_tensor_desc *out,
                           int *out_count, tr_error *err) {
    tr_status status = tr__operand_count(node, count, count, err);
    if (status == TR_OK) {
        status = tr__operand_real(node, 0, err);
    }
    for (int i = 1; i < count && status == TR_OK; i++) {
        status = tr__operand_shape(node, i, node->in[0].dtype, node->in[0].shape, err);
    }
    if (status == TR_OK) {
        out[0] = node->in[0];
        *out_count = 1;
    }
    return status;
}

tr_status tr__infer_as_input(const tr_op_node *node, tr_tensor_desc *out,
                             int *out_count, tr_error *err) {
    return tr__operand_same(node, 1, out, out_count, err);
}

tr_status tr__infer_as_inputs(const tr_op_node *node, tr_tensor_desc *out,
                              int *out_count, tr_error *err) {
    return tr__operand_same(node, 2, out, out_count, err);
}

const tr_tensor_desc tr__loss_sums = {TR_F64, {1, {TR_SUMS}}};

tr_status tr__infer_loss(tr_status checked, tr_tensor_desc *out, int *out_count) {
    out[0] = tr__loss_sums;
    *out_count = 1;
    return checked;
}

tr_status tr__infer_loss_backward(const tr_op_node *node, tr_status checked,
                                  tr_tensor_desc *out, int *out_count) {
    out[0] = node->in[0];
    out[1] = tr__loss_sums;
    *out_count = 2;
    return checked;
}

tr_status tr__infer_logits(const tr_op_node *node, tr_status checked,
                           tr_tensor_desc *out, int *out_count) {
    out[0] = (tr_tensor_desc){TR_F32, node->in[0].shape};
    *out_count = 1;
    return checked;
}

static bool are_real(const tr_tensor_desc *tensor, int count, tr_dtype real,
                     uint32_t plain) {
    for (int i = 0; i < count; i++) {
        tr_dtype want = plain >> i & 1 ? TR_F32 : real;
        tr_dtype dtype = tensor[i].dtype;
        if (dtype != want && dtype != TR_I32 && dtype != TR_NONE) {
            return false;
        }
    }
    return true;
}

bool tr__desc_real(const tr_op_desc *desc, tr_dtype real, uint32_t plain_in,
                   uint32_t plain_out) {
    return are_real(desc->in, desc->in_count, real, plain_in) &&
           are_real(desc->out, desc->out_count, real, plain_out);
}

bool tr__desc_same_real(const tr_op_desc *desc, uint32_t plain_in, uint32_t plain_out) {
    tr_dtype real = desc->in[0].dtype;
    return tr__dtype_is_real(real) && tr__desc_real(desc, real, plain_in, plain_out);
}

bool tr__desc_f32(const tr_op_desc *desc) {
    return tr__desc_real(desc, TR_F32, 0, 0);
}

void tr__desc_cost(const tr_op_desc *desc, double flops, tr_cost *cost) {
    cost->bytes = 0;
    for (int i = 0; i < desc->in_count; i++) {
        cost->bytes += (double)tr_tensor_bytes(desc->in[i]);
    }
    for (int i = 0; i < desc->out_count; i++) {
        cost->bytes += (double)tr_tensor_bytes(desc->out[i]);
    }
    bool wanted = desc->out[0].dtype != TR_NONE;
    tr_shape shape = wanted ? desc->out[0].shape : desc->in[0].shape;
    cost->flops = flops * (double)tr_shape_count(shape);
}

// Equal blocks are one run, as often as there are blocks.
tr_stride tr__division_lies(const tr_division *of, int64_t parts, int64_t part) {
    tr_stride lies = {.more = 0};
    bool equal = true;
    for (int64_t b = 0; b < of->blocks; b++) {
        equal = equal && of->block[b] == of->block[0];
    }
    for (int64_t b = 0; b < (equal ? 1 : of->blocks); b++) {
        int64_t first = lies.every + tr__cut_first(of->block[b], parts, part);
        int64_t run = tr__cut_count(of->block[b], parts, part);
        if (b == 0) {
            lies.first = first;
            lies.run = run;
        } else {
            lies.others[lies.more].first = first;
            lies.others[lies.more++].run = run;
        }
        lies.every += of->block[b];
    }
    return tr__stride_scaled(&lies, of->inner, 1);
}

int64_t tr__division_part(const tr_division *of, int64_t parts, int64_t part) {
    int64_t count = 0;
    for (int64_t b = 0; b < of->blocks; b++) {
        count += tr__cut_count(of->block[b], parts, part) * of->inner;
    }
    return count;
}

int64_t tr__division_all(const tr_division *of) {
    return tr__division_part(of, 1, 0);
}

void tr__split_range(const tr_op_node *node, tr_split *out, int64_t first,
                     int64_t count, uint32_t inputs) {
    bool all = count == tr__shape_width(node->out[0].shape);
    out->range[out->ranges++] = (tr_split_range){first, count, inputs};
    for (int i = 0; i < node->in_count; i++) {
        if (inputs >> i & 1) {
            out->in[i] = tr__cut_last(&node->in[i]);
            tr__cut_add(&out->in[i], all ? 0 : count);
        }
    }
}

bool tr__has_tokens(const tr_tensor_desc *desc, int64_t ranks) {
    return desc->shape.rank >= 3 && desc->shape.dim[1] % ranks == 0;
}

bool tr__split_tokens(const tr_op_node *node, int64_t ranks, tr_split *out) {
    for (int i = 0; i < node->in_count; i++) {
        bool rows = node->in[i].shape.rank > 1;
        out->in[i] = rows ? tr__cut_tokens() : tr__uncut();
        out->partial_gradient |= (uint32_t)!rows << i;
    }
    for (int i = 0; i < node->out_count; i++) {
        out->out[i] = tr__cut_tokens();
    }
    return tr__has_tokens(&node->in[0], ranks);
}

static bool split_last(const tr_op_node *node, tr_split *out) {
    for (int i = 0; i < node->in_count; i++) {
        out->in[i] = tr__cut_last(&node->in[i]);
    }
    for (int i = 0; i < node->out_count; i++) {
        out->out[i] = tr__cut_last(&node->out[i]);
    }
    return true;
}

bool tr__split_elements(const tr_op_node *node, int way, int64_t ranks, int64_t rank,
                        tr_split *out) {
    (void)rank;
    return way == 0 ? split_last(node, out)
                    : way == 1 && tr__split_tokens(node, ranks, out);
}

#include "ops/flat/merge/merge.h"

#include "ops/operand.h"

#include <string.h>

extern const tr_kernel tr__merge_kernel, tr__pack_kernel;

static int64_t rows_of(const tr_op_desc *desc) {
    return desc->in[0].shape.dim[0];
}

// Of the block.
static size_t row_bytes(const tr_op_desc *desc) {
    return (size_t)desc->in[0].shape.dim[1] * tr_dtype_bytes(desc->in[0].dtype);
}

// Where a row's part begins.
static size_t first_byte(const tr_op_desc *desc, int64_t first) {
    return (size_t)first * tr_dtype_bytes(desc->in[0].dtype);
}

static tr_status check_block(const tr_op_node *node, tr_dtype dtype, tr_error *err) {
    tr_status status = tr__operand_count(node, 1, 1, err);
    if (status == TR_OK) {
        status = tr__operand_dtype(node, 0, dtype, err);
    }
    return status == TR_OK && node->in[0].shape.rank != 2
               ? tr_fail(err, TR_USAGE, "%s: input 0 is not a block of rows",
                         node->op->name)
               : status;
}

// Does a row have columns [first, first + count)?
static tr_status check_columns(const tr_op_node *node, int64_t first, int64_t count,
                               tr_error *err) {
    int64_t width = node->in[0].shape.dim[1];
    return first >= 0 && count > 0 && first <= width && count <= width - first
               ? TR_OK
               : tr_fail(err, TR_USAGE,
                         "%s: a row of %lld elements has not %lld from %lld on",
                         node->op->name, (long long)width, (long long)count,
                         (long long)first);
}

// ---- merge

static tr_status merge_infer(const tr_op_node *node, tr_tensor_desc *out,
                             int *out_count, tr_error *err) {
    const tr_merge_attr *attr = node->attr;
    tr_dtype dtype = node->in[0].dtype == TR_F64 ? TR_F64 : TR_F32;
    tr_status status = check_block(node, dtype, err);
    if (status == TR_OK) {
        status = check_columns(node, attr->first, tr_shape_count(attr->shape), err);
    }
    if (status == TR_OK) {
        out[0] = (tr_tensor_desc){dtype, attr->shape};
        *out_count = 1;
    }
    return status;
}

static bool merge_supports(const tr_op_desc *desc) {
    tr_dtype dtype = desc->out[0].dtype;
    return dtype == desc->in[0].dtype && (dtype == TR_F32 || dtype == TR_F64);
}

static void merge_cost(const tr_op_desc *desc, tr_cost *out) {
    double elements = (double)(rows_of(desc) * tr_shape_count(desc->out[0].shape));
    double bytes = (double)tr_tensor_bytes(desc->out[0]);
    bool adds = desc->accumulate & 1;
    out->flops = elements;
    out->bytes = bytes * (double)(rows_of(desc) + (adds ? 2 : 1));
}

static void add_f32(float *to, const float *from, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        to[i] += from[i];
    }
}

static void add_f64(double *to, const double *from, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        to[i] += from[i];
    }
}

static void merge_part(const tr_op_desc *desc, void *into, const void *part) {
    const tr_merge_attr *attr = (const void *)desc->attr;
    const tr_tensor_desc *tensor = &desc->out[0];
    if (attr->of && attr->of->merge) {
        attr->of->merge(tensor, into, part);
    } else if (tensor->dtype == TR_F64) {
        add_f64(into, part, tr_shape_count(tensor->shape));
    } else {
        add_f32(into, part, tr_shape_count(tensor->shape));
    }
}

static void merge_launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const tr_merge_attr *attr = (const void *)desc->attr;
    const char *parts = launch->in[0]; // [rows][row_bytes]
    int64_t row = 0;
    parts += first_byte(desc, attr->first);
    if (!(launch->accumulate & 1)) {
        memcpy(launch->out[0], parts, (size_t)tr_tensor_bytes(desc->out[0]));
        row = 1;
    }
    for (; row < rows_of(desc); row++) {
        merge_part(desc, launch->out[0], parts + (size_t)row * row_bytes(desc));
    }
}

const tr_kernel tr__merge_kernel = {
    .name = "merge.cpu",
    .supports = merge_supports,
    .cost = merge_cost,
    .launch = merge_launch,
};

const tr_op tr__op_merge = {
    .name = "merge",
    .attr_bytes = sizeof(tr_merge_attr),
    .infer = merge_infer,
    .reference = &tr__merge_kernel,
};

// ---- pack

static tr_status pack_infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                            tr_error *err) {
    const tr_pack_attr *attr = node->attr;
    tr_dtype from = node->in[0].dtype;
    tr_dtype dtype = from == TR_F32 || from == TR_F64 ? from : TR_I64;
    tr_status status = check_block(node, dtype, err);
    if (status == TR_OK) {
        status = check_columns(node, attr->first, attr->count, err);
    }
    if (status == TR_OK) {
        tr_shape shape = TR_SHAPE2(node->in[0].shape.dim[0], attr->count);
        out[0] = (tr_tensor_desc){dtype, shape};
        *out_count = 1;
    }
    return status;
}

static bool pack_supports(const tr_op_desc *desc) {
    return desc->out[0].dtype == desc->in[0].dtype;
}

static void pack_cost(const tr_op_desc *desc, tr_cost *out) {
    *out = (tr_cost){.bytes = 2 * (double)tr_tensor_bytes(desc->out[0])};
}

static void pack_launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const tr_pack_attr *attr = (const void *)desc->attr;
    const char *from = launch->in[0]; // [rows][row_bytes]
    char *to = launch->out[0];        // [rows][bytes]
    size_t bytes = first_byte(desc, attr->count);
    from += first_byte(desc, attr->first);
    for (int64_t row = 0; row < rows_of(desc); row++) {
        memcpy(to + (size_t)row * bytes, from + (size_t)row * row_bytes(desc), bytes);
    }
}

const tr_kernel tr__pack_kernel = {
    .name = "pack.cpu",
    .supports = pack_supports,
    .cost = pack_cost,
    .launch = pack_launch,
};

const tr_op tr__op_pack = {
    .name = "pack",
    .attr_bytes = sizeof(tr_pack_attr),
    .infer = pack_infer,
    .reference = &tr__pack_kernel,
};

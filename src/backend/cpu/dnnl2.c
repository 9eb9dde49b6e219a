// oneDNN 2.
#include "backend/cpu/dnnl.h"

dnnl_status_t tr__layout_tagged(int rank, const dnnl_dims_t dims, dnnl_data_type_t type,
                                dnnl_format_tag_t tag, tr_layout *out) {
    return dnnl_memory_desc_init_by_tag(&out->desc, rank, dims, type, tag);
}

dnnl_status_t tr__layout_strided(int rank, const dnnl_dims_t dims,
                                 dnnl_data_type_t type, const dnnl_dims_t strides,
                                 tr_layout *out) {
    return dnnl_memory_desc_init_by_strides(&out->desc, rank, dims, type, strides);
}

dnnl_status_t tr__layout_query(const_dnnl_primitive_desc_t desc, dnnl_query_t what,
                               tr_layout *out) {
    out->desc = *dnnl_primitive_desc_query_md(desc, what, 0);
    return dnnl_success;
}

void tr__layout_destroy(tr_layout *layout) {
    (void)layout;
}

bool tr__layout_equal(const tr_layout *a, const tr_layout *b) {
    return dnnl_memory_desc_equal(&a->desc, &b->desc);
}

size_t tr__layout_bytes(const tr_layout *layout) {
    return dnnl_memory_desc_get_size(&layout->desc);
}

dnnl_status_t tr__layout_memory(const tr_layout *layout, dnnl_engine_t engine,
                                dnnl_memory_t *out) {
    return dnnl_memory_create(out, &layout->desc, engine, DNNL_MEMORY_NONE);
}

dnnl_status_t tr__post_sum(dnnl_post_ops_t ops) {
    return dnnl_post_ops_append_sum(ops, 1);
}

bool tr__dnnl_sees_gaps(void) {
    return true;
}

static const dnnl_memory_desc_t *optional(const tr_layout *layout) {
    return layout ? &layout->desc : NULL;
}

dnnl_status_t tr__product_describe(dnnl_engine_t engine, const tr_product_layouts *of,
                                   dnnl_primitive_attr_t attributes,
                                   dnnl_primitive_desc_t *out) {
    dnnl_matmul_desc_t product;
    dnnl_status_t status = dnnl_matmul_desc_init(&product, &of->a->desc, &of->b->desc,
                                                 optional(of->bias), &of->c->desc);
    return status ? status
                  : dnnl_primitive_desc_create(out, &product, attributes, engine, NULL);
}

dnnl_status_t tr__reorder_describe(dnnl_engine_t engine, const tr_layout *from,
                                   const tr_layout *to,
                                   dnnl_primitive_attr_t attributes,
                                   dnnl_primitive_desc_t *out) {
    return dnnl_reorder_primitive_desc_create(out, &from->desc, engine, &to->desc,
                                              engine, attributes);
}

static dnnl_status_t describe(tr_conv_kind kind, const tr_conv_layouts *of,
                              dnnl_convolution_desc_t *out) {
    const dnnl_memory_desc_t *x = &of->x->desc, *weight = &of->weight->desc;
    const dnnl_memory_desc_t *y = &of->y->desc;
    switch (kind) {
    case TR_CONV_INPUT:
        return dnnl_dilated_convolution_backward_data_desc_init(
            out, dnnl_convolution_direct, x, weight, y, of->strides, of->dilates,
            of->before, of->after);
    case TR_CONV_WEIGHT:
        return dnnl_dilated_convolution_backward_weights_desc_init(
            out, dnnl_convolution_direct, x, weight, optional(of->bias), y, of->strides,
            of->dilates, of->before, of->after);
    default:
        return dnnl_dilated_convolution_forward_desc_init(
            out, dnnl_forward_training, dnnl_convolution_direct, x, weight,
            optional(of->bias), y, of->strides, of->dilates, of->before, of->after);
    }
}

dnnl_status_t tr__conv_describe(dnnl_engine_t engine, tr_conv_kind kind,
                                const tr_conv_layouts *of,
                                dnnl_primitive_attr_t attributes,
                                dnnl_primitive_desc_t *out) {
    dnnl_primitive_desc_t hint = NULL;
    dnnl_convolution_desc_t convolution;
    dnnl_status_t status = dnnl_success;
    if (kind != TR_CONV_OUTPUT) {
        tr_conv_layouts forward = *of;
        forward.x = of->forward_x;
        forward.weight = of->forward_weight;
        status = describe(TR_CONV_OUTPUT, &forward, &convolution);
        status = status ? status
                        : dnnl_primitive_desc_create(&hint, &convolution, NULL, engine,
                                                     NULL);
    }
    status = status ? status : describe(kind, of, &convolution);
    status = status ? status
                    : dnnl_primitive_desc_create(out, &convolution, attributes, engine,
                                                 hint);
    if (hint) {
        dnnl_primitive_desc_destroy(hint);
    }
    return status;
}

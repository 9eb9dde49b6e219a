// oneDNN 3.
#include "backend/cpu/dnnl.h"

dnnl_status_t tr__layout_tagged(int rank, const dnnl_dims_t dims, dnnl_data_type_t type,
                                dnnl_format_tag_t tag, tr_layout *out) {
    return dnnl_memory_desc_create_with_tag(&out->desc, rank, dims, type, tag);
}

dnnl_status_t tr__layout_strided(int rank, const dnnl_dims_t dims,
                                 dnnl_data_type_t type, const dnnl_dims_t strides,
                                 tr_layout *out) {
    return dnnl_memory_desc_create_with_strides(&out->desc, rank, dims, type, strides);
}

dnnl_status_t tr__layout_query(const_dnnl_primitive_desc_t desc, dnnl_query_t what,
                               tr_layout *out) {
    return dnnl_memory_desc_clone(&out->desc,
                                  dnnl_primitive_desc_query_md(desc, what, 0));
}

void tr__layout_destroy(tr_layout *layout) {
    if (layout->desc) {
        dnnl_memory_desc_destroy(layout->desc);
    }
    layout->desc = NULL;
}

bool tr__layout_equal(const tr_layout *a, const tr_layout *b) {
    return dnnl_memory_desc_equal(a->desc, b->desc);
}

size_t tr__layout_bytes(const tr_layout *layout) {
    return dnnl_memory_desc_get_size(layout->desc);
}

dnnl_status_t tr__layout_memory(const tr_layout *layout, dnnl_engine_t engine,
                                dnnl_memory_t *out) {
    return dnnl_memory_create(out, layout->desc, engine, DNNL_MEMORY_NONE);
}

dnnl_status_t tr__post_sum(dnnl_post_ops_t ops) {
    return dnnl_post_ops_append_sum(ops, 1, 0, dnnl_data_type_undef);
}

bool tr__dnnl_sees_gaps(void) {
    return false;
}

static const_dnnl_memory_desc_t optional(const tr_layout *layout) {
    return layout ? layout->desc : NULL;
}

dnnl_status_t tr__product_describe(dnnl_engine_t engine, const tr_product_layouts *of,
                                   dnnl_primitive_attr_t attributes,
                                   dnnl_primitive_desc_t *out) {
    return dnnl_matmul_primitive_desc_create(out, engine, of->a->desc, of->b->desc,
                                             optional(of->bias), of->c->desc,
                                             attributes);
}

dnnl_status_t tr__reorder_describe(dnnl_engine_t engine, const tr_layout *from,
                                   const tr_layout *to,
                                   dnnl_primitive_attr_t attributes,
                                   dnnl_primitive_desc_t *out) {
    return dnnl_reorder_primitive_desc_create(out, from->desc, engine, to->desc, engine,
                                              attributes);
}

static dnnl_status_t describe_forward(dnnl_engine_t engine, const tr_conv_layouts *of,
                                      dnnl_primitive_attr_t attributes,
                                      dnnl_primitive_desc_t *out) {
    return dnnl_convolution_forward_primitive_desc_create(
        out, engine, dnnl_forward_training, dnnl_convolution_direct, of->x->desc,
        of->weight->desc, optional(of->bias), of->y->desc, of->strides, of->dilates,
        of->before, of->after, attributes);
}

dnnl_status_t tr__conv_describe(dnnl_engine_t engine, tr_conv_kind kind,
                                const tr_conv_layouts *of,
                                dnnl_primitive_attr_t attributes,
                                dnnl_primitive_desc_t *out) {
    dnnl_primitive_desc_t hint = NULL;
    if (kind == TR_CONV_OUTPUT) {
        return describe_forward(engine, of, attributes, out);
    }
    tr_conv_layouts forward = *of;
    forward.x = of->forward_x;
    forward.weight = of->forward_weight;
    dnnl_status_t status = describe_forward(engine, &forward, NULL, &hint);
    if (!status && kind == TR_CONV_INPUT) {
        status = dnnl_convolution_backward_data_primitive_desc_create(
            out, engine, dnnl_convolution_direct, of->x->desc, of->weight->desc,
            of->y->desc, of->strides, of->dilates, of->before, of->after, hint,
            attributes);
    } else if (!status) {
        status = dnnl_convolution_backward_weights_primitive_desc_create(
            out, engine, dnnl_convolution_direct, of->x->desc, of->weight->desc,
            optional(of->bias), of->y->desc, of->strides, of->dilates, of->before,
            of->after, hint, attributes);
    }
    if (hint) {
        dnnl_primitive_desc_destroy(hint);
    }
    return status;
}

// What oneDNN 2 and 3 want said in different ways: layouts of tensors, attributes, and
// the description of a primitive. The build takes dnnl2.c or dnnl3.c; products and
// convolutions are above both.
#ifndef TR_BACKEND_CPU_DNNL_H
#define TR_BACKEND_CPU_DNNL_H

#include "backend/cpu/conv.h"

#include <oneapi/dnnl/dnnl.h>

// The layout of a tensor: with oneDNN 2 its description, with oneDNN 3 a pointer to
// one. All zeros: none. The caller owns what a function here writes to `out`.
typedef struct tr_layout {
    dnnl_memory_desc_t desc;
} tr_layout;

dnnl_status_t tr__layout_tagged(int rank, const dnnl_dims_t dims, dnnl_data_type_t type,
                                dnnl_format_tag_t tag, tr_layout *out);
dnnl_status_t tr__layout_strided(int rank, const dnnl_dims_t dims,
                                 dnnl_data_type_t type, const dnnl_dims_t strides,
                                 tr_layout *out);
// What a primitive wants (dnnl_query_weights_md and the like).
dnnl_status_t tr__layout_query(const_dnnl_primitive_desc_t desc, dnnl_query_t what,
                               tr_layout *out);
void tr__layout_destroy(tr_layout *layout); // takes zeros
bool tr__layout_equal(const tr_layout *a, const tr_layout *b);
size_t tr__layout_bytes(const tr_layout *layout);
// A tensor without memory of its own.
dnnl_status_t tr__layout_memory(const tr_layout *layout, dnnl_engine_t engine,
                                dnnl_memory_t *out);

dnnl_status_t tr__post_sum(dnnl_post_ops_t ops); // the result is added to what is there

// Does a product keep the distance between the elements of a vector (A with one row, C
// with one column)?  oneDNN 3.7 takes them to be adjacent.
bool tr__dnnl_sees_gaps(void);

typedef struct tr_product_layouts {
    const tr_layout *a, *b, *c;
    const tr_layout *bias; // NULL: none
} tr_product_layouts;
dnnl_status_t tr__product_describe(dnnl_engine_t engine, const tr_product_layouts *of,
                                   dnnl_primitive_attr_t attributes,
                                   dnnl_primitive_desc_t *out);

dnnl_status_t tr__reorder_describe(dnnl_engine_t engine, const tr_layout *from,
                                   const tr_layout *to,
                                   dnnl_primitive_attr_t attributes,
                                   dnnl_primitive_desc_t *out);

typedef struct tr_conv_layouts {
    const tr_layout *x, *weight, *y;
    const tr_layout *bias;                       // NULL: none
    dnnl_dims_t strides, dilates;                // a dilation of 1 is 0 here
    dnnl_dims_t before, after;                   // padding
    const tr_layout *forward_x, *forward_weight; // of the output that a gradient is of
} tr_conv_layouts;
dnnl_status_t tr__conv_describe(dnnl_engine_t engine, tr_conv_kind kind,
                                const tr_conv_layouts *of,
                                dnnl_primitive_attr_t attributes,
                                dnnl_primitive_desc_t *out);

// ---- the same with either version

// Scratch memory from the caller.
dnnl_status_t tr__attributes_create(bool accumulate, dnnl_primitive_attr_t *out);

// What a run came to, the description having been accepted before.
tr_status tr__dnnl_ran(dnnl_status_t status);

// A primitive and what it takes from the caller's scratch memory.
typedef struct tr_primitive {
    dnnl_primitive_t primitive; // NULL: none
    dnnl_memory_t scratch;
    size_t scratch_bytes;
} tr_primitive;

// From its description, which it destroys in any case. `status`: of what came before.
dnnl_status_t tr__primitive_create(dnnl_status_t status, dnnl_engine_t engine,
                                   dnnl_primitive_desc_t desc, tr_primitive *out);
void tr__primitive_destroy(tr_primitive *primitive); // takes zeros
// args has room for one more.
dnnl_status_t tr__primitive_run(tr_primitive *primitive, dnnl_stream_t stream,
                                dnnl_exec_arg_t *args, int count, void *scratch);

void tr__tensor_point(dnnl_memory_t tensor, const void *data);
void tr__tensor_destroy(dnnl_memory_t tensor); // NULL-safe

#endif

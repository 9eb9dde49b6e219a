#include "backend/cuda/cudnn_graph.h"

#include <stdio.h>
#include <string.h>

enum { ALIGNMENT = 16, FIRST_VIRTUAL = 100 };

void tr__cudnn_graph_begin(tr_cudnn_graph *g, const tr_cudnn_library *by) {
    *g = (tr_cudnn_graph){.by = by, .next_id = FIRST_VIRTUAL};
}

void tr__cudnn_graph_end(tr_cudnn_graph *g) {
    while (g->count > 0) {
        g->by->destroy(g->all[--g->count]);
    }
}

// What cuDNN says of its last error ends with a new line.
static void note(tr_cudnn_graph *g, int status, const char *what) {
    if (status == TR_CUDNN_SUCCESS || g->status != TR_CUDNN_SUCCESS) {
        return;
    }
    g->status = status;
    g->what = what;
    g->by->last_error(g->text, sizeof g->text);
    g->text[strcspn(g->text, "\n")] = '\0';
}

static bool is_good(const tr_cudnn_graph *g) {
    return g->status == TR_CUDNN_SUCCESS;
}

void *tr__cudnn_create(tr_cudnn_graph *g, tr_cudnn_kind kind, const char *what) {
    void *descriptor = NULL;
    if (is_good(g) && g->count == TR_CUDNN_DESCRIPTORS) {
        note(g, TR_CUDNN_BAD_PARAM, "more descriptors than there is room for");
    }
    if (!is_good(g)) {
        return NULL;
    }
    note(g, g->by->create((int)kind, &descriptor), what);
    if (!is_good(g)) {
        return NULL;
    }
    return g->all[g->count++] = descriptor;
}

void tr__cudnn_set(tr_cudnn_graph *g, void *descriptor, tr_cudnn_attribute attribute,
                   tr_cudnn_type type, int64_t count, const void *values) {
    if (is_good(g)) {
        note(g, g->by->set(descriptor, (int)attribute, (int)type, count, values),
             "an attribute");
    }
}

void tr__cudnn_refer(tr_cudnn_graph *g, void *descriptor, tr_cudnn_attribute attribute,
                     void *value) {
    tr__cudnn_set(g, descriptor, attribute, TR_CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                  &value);
}

void tr__cudnn_finalize(tr_cudnn_graph *g, void *descriptor) {
    if (is_good(g)) {
        note(g, g->by->finalize(descriptor), "a descriptor");
    }
}

// ---- tensors

tr_cudnn_shape tr__cudnn_dense(int64_t samples, int64_t heads, int64_t rows,
                               int64_t columns) {
    return (tr_cudnn_shape){{samples, heads, rows, columns},
                            {heads * rows * columns, rows * columns, columns, 1}};
}

tr_cudnn_shape tr__cudnn_turned(tr_cudnn_shape s) {
    return (tr_cudnn_shape){{s.dim[0], s.dim[1], s.dim[3], s.dim[2]},
                            {s.stride[0], s.stride[1], s.stride[3], s.stride[2]}};
}

typedef enum storage { IN_MEMORY, VIRTUAL, VALUE } storage;

static void *describe(tr_cudnn_graph *g, int64_t id, tr_cudnn_data type,
                      const tr_cudnn_shape *shape, storage where) {
    const int64_t alignment = ALIGNMENT;
    const int32_t element = (int32_t)type;
    const bool is_virtual = where == VIRTUAL, by_value = where == VALUE;
    void *t = tr__cudnn_create(g, TR_CUDNN_TENSOR, "a tensor");
    tr__cudnn_set(g, t, TR_CUDNN_TENSOR_UNIQUE_ID, TR_CUDNN_TYPE_INT64, 1, &id);
    tr__cudnn_set(g, t, TR_CUDNN_TENSOR_DATA_TYPE, TR_CUDNN_TYPE_DATA_TYPE, 1,
                  &element);
    tr__cudnn_set(g, t, TR_CUDNN_TENSOR_DIMENSIONS, TR_CUDNN_TYPE_INT64, TR_CUDNN_RANK,
                  shape->dim);
    tr__cudnn_set(g, t, TR_CUDNN_TENSOR_STRIDES, TR_CUDNN_TYPE_INT64, TR_CUDNN_RANK,
                  shape->stride);
    tr__cudnn_set(g, t, TR_CUDNN_TENSOR_BYTE_ALIGNMENT, TR_CUDNN_TYPE_INT64, 1,
                  &alignment);
    tr__cudnn_set(g, t, TR_CUDNN_TENSOR_IS_VIRTUAL, TR_CUDNN_TYPE_BOOLEAN, 1,
                  &is_virtual);
    tr__cudnn_set(g, t, TR_CUDNN_TENSOR_IS_BY_VALUE, TR_CUDNN_TYPE_BOOLEAN, 1,
                  &by_value);
    tr__cudnn_finalize(g, t);
    return t;
}

void *tr__cudnn_tensor(tr_cudnn_graph *g, int64_t id, tr_cudnn_data type,
                       tr_cudnn_shape shape) {
    return describe(g, id, type, &shape, IN_MEMORY);
}

void *tr__cudnn_virtual(tr_cudnn_graph *g, tr_cudnn_data type, tr_cudnn_shape shape) {
    return describe(g, g->next_id++, type, &shape, VIRTUAL);
}

void *tr__cudnn_value(tr_cudnn_graph *g, int64_t id) {
    const tr_cudnn_shape one = tr__cudnn_dense(1, 1, 1, 1);
    return describe(g, id, TR_CUDNN_FLOAT, &one, VALUE);
}

// ---- operations

static void add(tr_cudnn_graph *g, void *operation) {
    tr__cudnn_finalize(g, operation);
    if (is_good(g) && g->operation_count == TR_CUDNN_OPERATIONS) {
        note(g, TR_CUDNN_BAD_PARAM, "more operations than there is room for");
    }
    if (is_good(g)) {
        g->operations[g->operation_count++] = operation;
    }
}

void tr__cudnn_matmul(tr_cudnn_graph *g, void *a, void *b, void *c) {
    const int32_t type = TR_CUDNN_FLOAT;
    void *how = tr__cudnn_create(g, TR_CUDNN_MATMUL, "a product");
    tr__cudnn_set(g, how, TR_CUDNN_MATMUL_COMP_TYPE, TR_CUDNN_TYPE_DATA_TYPE, 1, &type);
    tr__cudnn_finalize(g, how);
    void *op = tr__cudnn_create(g, TR_CUDNN_OPERATION_MATMUL, "a product");
    tr__cudnn_refer(g, op, TR_CUDNN_OPERATION_MATMUL_ADESC, a);
    tr__cudnn_refer(g, op, TR_CUDNN_OPERATION_MATMUL_BDESC, b);
    tr__cudnn_refer(g, op, TR_CUDNN_OPERATION_MATMUL_CDESC, c);
    tr__cudnn_refer(g, op, TR_CUDNN_OPERATION_MATMUL_DESC, how);
    add(g, op);
}

typedef struct elementwise {
    tr_cudnn_mode mode;
    tr_cudnn_data type; // that it is computed in
    int64_t axis;       // -1: none
    void *x, *b, *t, *y;
} elementwise;

static void add_elementwise(tr_cudnn_graph *g, const elementwise *e) {
    const int32_t mode = (int32_t)e->mode, type = (int32_t)e->type;
    void *how = tr__cudnn_create(g, TR_CUDNN_POINTWISE, "a pointwise operation");
    tr__cudnn_set(g, how, TR_CUDNN_POINTWISE_MODE, TR_CUDNN_TYPE_POINTWISE_MODE, 1,
                  &mode);
    tr__cudnn_set(g, how, TR_CUDNN_POINTWISE_MATH_PREC, TR_CUDNN_TYPE_DATA_TYPE, 1,
                  &type);
    if (e->axis >= 0) {
        tr__cudnn_set(g, how, TR_CUDNN_POINTWISE_AXIS, TR_CUDNN_TYPE_INT64, 1,
                      &e->axis);
    }
    tr__cudnn_finalize(g, how);
    void *op =
        tr__cudnn_create(g, TR_CUDNN_OPERATION_POINTWISE, "a pointwise operation");
    tr__cudnn_refer(g, op, TR_CUDNN_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
    tr__cudnn_refer(g, op, TR_CUDNN_OPERATION_POINTWISE_XDESC, e->x);
    if (e->b) {
        tr__cudnn_refer(g, op, TR_CUDNN_OPERATION_POINTWISE_BDESC, e->b);
    }
    if (e->t) {
        tr__cudnn_refer(g, op, TR_CUDNN_OPERATION_POINTWISE_TDESC, e->t);
    }
    tr__cudnn_refer(g, op, TR_CUDNN_OPERATION_POINTWISE_YDESC, e->y);
    add(g, op);
}

void tr__cudnn_pointwise(tr_cudnn_graph *g, tr_cudnn_mode mode, void *x, void *b,
                         void *y) {
    const elementwise e = {
        .mode = mode, .type = TR_CUDNN_FLOAT, .axis = -1, .x = x, .b = b, .y = y};
    add_elementwise(g, &e);
}

void tr__cudnn_places(tr_cudnn_graph *g, void *x, int64_t dimension, void *y) {
    const elementwise e = {.mode = TR_CUDNN_GEN_INDEX,
                           .type = TR_CUDNN_INT32,
                           .axis = dimension,
                           .x = x,
                           .y = y};
    add_elementwise(g, &e);
}

void tr__cudnn_select(tr_cudnn_graph *g, void *x, void *other, void *which, void *y) {
    const elementwise e = {.mode = TR_CUDNN_BINARY_SELECT,
                           .type = TR_CUDNN_FLOAT,
                           .axis = -1,
                           .x = x,
                           .b = other,
                           .t = which,
                           .y = y};
    add_elementwise(g, &e);
}

void tr__cudnn_at_least(tr_cudnn_graph *g, void *x, void *b, void *y) {
    const elementwise e = {.mode = TR_CUDNN_CMP_GE,
                           .type = TR_CUDNN_BOOLEAN,
                           .axis = -1,
                           .x = x,
                           .b = b,
                           .y = y};
    add_elementwise(g, &e);
}

void tr__cudnn_reduce(tr_cudnn_graph *g, int operation, void *x, void *y) {
    const int32_t operator= operation, type = TR_CUDNN_FLOAT;
    void *how = tr__cudnn_create(g, TR_CUDNN_REDUCTION, "a reduction");
    tr__cudnn_set(g, how, TR_CUDNN_REDUCTION_OPERATOR, TR_CUDNN_TYPE_REDUCTION_OPERATOR,
                  1, &operator);
    tr__cudnn_set(g, how, TR_CUDNN_REDUCTION_COMP_TYPE, TR_CUDNN_TYPE_DATA_TYPE, 1,
                  &type);
    tr__cudnn_finalize(g, how);
    void *op = tr__cudnn_create(g, TR_CUDNN_OPERATION_REDUCTION, "a reduction");
    tr__cudnn_refer(g, op, TR_CUDNN_OPERATION_REDUCTION_DESC, how);
    tr__cudnn_refer(g, op, TR_CUDNN_OPERATION_REDUCTION_XDESC, x);
    tr__cudnn_refer(g, op, TR_CUDNN_OPERATION_REDUCTION_YDESC, y);
    add(g, op);
}

void tr__cudnn_reshape(tr_cudnn_graph *g, void *x, void *y) {
    void *op = tr__cudnn_create(g, TR_CUDNN_OPERATION_RESHAPE, "a reshape");
    tr__cudnn_refer(g, op, TR_CUDNN_OPERATION_RESHAPE_XDESC, x);
    tr__cudnn_refer(g, op, TR_CUDNN_OPERATION_RESHAPE_YDESC, y);
    add(g, op);
}

void *tr__cudnn_close(tr_cudnn_graph *g, void *handle) {
    void *graph = tr__cudnn_create(g, TR_CUDNN_OPERATIONGRAPH, "a graph of operations");
    if (handle) {
        tr__cudnn_set(g, graph, TR_CUDNN_OPERATIONGRAPH_HANDLE, TR_CUDNN_TYPE_HANDLE, 1,
                      &handle);
    }
    tr__cudnn_set(g, graph, TR_CUDNN_OPERATIONGRAPH_OPS,
                  TR_CUDNN_TYPE_BACKEND_DESCRIPTOR, g->operation_count, g->operations);
    tr__cudnn_finalize(g, graph);
    return graph;
}

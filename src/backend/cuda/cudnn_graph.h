// Graphs of cuDNN's operations, a descriptor at a time (NVIDIA cuDNN, backend API,
// "Backend Descriptor Types"). The first call that fails is kept with what cuDNN says
// of it, and nothing is called after it: who builds looks once, at the end.
#ifndef TR_BACKEND_CUDA_CUDNN_GRAPH_H
#define TR_BACKEND_CUDA_CUDNN_GRAPH_H

#include "backend/cuda/cudnn_names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The library's functions, by the names of cudnn_graph.h: cudnnBackendSetAttribute.
typedef struct tr_cudnn_library {
    size_t (*version)(void);
    const char *(*status_name)(int status);
    void (*last_error)(char *text, size_t size);
    int (*create_handle)(void **handle);
    int (*set_stream)(void *handle, void *stream);
    int (*create)(int kind, void **descriptor);
    int (*destroy)(void *descriptor);
    int (*finalize)(void *descriptor);
    int (*set)(void *descriptor, int attribute, int type, int64_t count,
               const void *values);
    int (*get)(void *descriptor, int attribute, int type, int64_t asked, int64_t *count,
               void *values);
    int (*execute)(void *handle, void *plan, void *pack);
} tr_cudnn_library;

enum {
    TR_CUDNN_RANK = 4, // of all tensors: sample, head, row, column
    TR_CUDNN_DESCRIPTORS = 192,
    TR_CUDNN_OPERATIONS = 32,
    TR_CUDNN_TEXT = 512,
};

typedef struct tr_cudnn_graph {
    const tr_cudnn_library *by;
    void *all[TR_CUDNN_DESCRIPTORS]; // that are destroyed with it
    int count;
    void *operations[TR_CUDNN_OPERATIONS];
    int operation_count;
    int64_t next_id; // of a virtual tensor
    int status;      // cuDNN's first error
    const char *what;
    char text[TR_CUDNN_TEXT]; // what it says of that
} tr_cudnn_graph;

void tr__cudnn_graph_begin(tr_cudnn_graph *g, const tr_cudnn_library *by);
void tr__cudnn_graph_end(tr_cudnn_graph *g);

// A descriptor of the graph's; NULL where something has failed.
void *tr__cudnn_create(tr_cudnn_graph *g, tr_cudnn_kind kind, const char *what);
void tr__cudnn_set(tr_cudnn_graph *g, void *descriptor, tr_cudnn_attribute attribute,
                   tr_cudnn_type type, int64_t count, const void *values);
// One other descriptor.
void tr__cudnn_refer(tr_cudnn_graph *g, void *descriptor, tr_cudnn_attribute attribute,
                     void *value);
void tr__cudnn_finalize(tr_cudnn_graph *g, void *descriptor);

// Elements, and how far each dimension's are apart.
typedef struct tr_cudnn_shape {
    int64_t dim[TR_CUDNN_RANK], stride[TR_CUDNN_RANK];
} tr_cudnn_shape;

// The same with no element between others.
tr_cudnn_shape tr__cudnn_dense(int64_t samples, int64_t heads, int64_t rows,
                               int64_t columns);
// Rows become columns.
tr_cudnn_shape tr__cudnn_turned(tr_cudnn_shape shape);

// What is in memory has the number by which it is given; what is not is virtual. A
// value is one number, which the host gives with each call.
void *tr__cudnn_tensor(tr_cudnn_graph *g, int64_t id, tr_cudnn_data type,
                       tr_cudnn_shape shape);
void *tr__cudnn_virtual(tr_cudnn_graph *g, tr_cudnn_data type, tr_cudnn_shape shape);
void *tr__cudnn_value(tr_cudnn_graph *g, int64_t id);

// Operations, in the order in which they are added. All is computed in f32.
void tr__cudnn_matmul(tr_cudnn_graph *g, void *a, void *b, void *c);
// y = x mode b; b NULL: of x alone.
void tr__cudnn_pointwise(tr_cudnn_graph *g, tr_cudnn_mode mode, void *x, void *b,
                         void *y);
// y = the place of each element of x along a dimension.
void tr__cudnn_places(tr_cudnn_graph *g, void *x, int64_t dimension, void *y);
// y = which ? x : other
void tr__cudnn_select(tr_cudnn_graph *g, void *x, void *other, void *which, void *y);
// y = x >= b, a truth value
void tr__cudnn_at_least(tr_cudnn_graph *g, void *x, void *b, void *y);
// y is x reduced along the dimensions in which y has one element, or fewer heads.
void tr__cudnn_reduce(tr_cudnn_graph *g, int operation, void *x, void *y);
void tr__cudnn_reshape(tr_cudnn_graph *g, void *x, void *y);

// The graph of all operations, on the handle's device; NULL: on the one that the plan
// is told of.
void *tr__cudnn_close(tr_cudnn_graph *g, void *handle);

#endif

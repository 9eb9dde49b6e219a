// tr_graph_constant: values of the caller's as the output of an op. The op's attribute
// is where they lie, so that units with other constants are other programs. On a
// discrete device each launch copies them there; those of 16 bits are rounded when the
// plan is made.
#include "backend/backend.h"
#include "base/half.h"
#include "base/memory.h"
#include "graph/graph.h"
#include "ops/operand.h"

#include <string.h>

typedef struct tr_constant_attr {
    const void *values;
    tr_tensor_desc desc; // as the caller gave it, or with the type the run computes in
} tr_constant_attr;

// Where its shape begins with TR_BATCH, input 0 says how many rows there are.
static bool is_for_each_sample(tr_shape shape) {
    return shape.rank > 0 && shape.dim[0] == TR_BATCH;
}

static tr_status infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                       tr_error *err) {
    const tr_constant_attr *attr = node->attr;
    (void)err;
    out[0] = attr->desc;
    if (is_for_each_sample(attr->desc.shape)) {
        out[0].shape.dim[0] = node->in[0].shape.dim[0];
    }
    *out_count = 1;
    return TR_OK;
}

// Of one row, or of all.
static int64_t own_count(const tr_op_desc *desc) {
    const tr_constant_attr *attr = (const void *)desc->attr;
    bool each = is_for_each_sample(attr->desc.shape);
    return tr_shape_count(desc->out[0].shape) / (each ? desc->out[0].shape.dim[0] : 1);
}

// The host rounds where it computes (tr__widened).
static bool supports(const tr_op_desc *desc) {
    tr_dtype type = desc->out[0].dtype;
    bool there = desc->target.backend != TR_BACKEND_HOST;
    return type == TR_F32 || type == TR_I32 || (there && tr__dtype_is_half(type));
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    *out = (tr_cost){.bytes = 2 * (double)tr_tensor_bytes(desc->out[0])};
}

static tr_status prepare(const tr_op_desc *desc, void **state, tr_error *err) {
    const tr_constant_attr *attr = (const void *)desc->attr;
    const float *values = attr->values;
    int64_t count = own_count(desc);
    tr_dtype type = desc->out[0].dtype;
    *state = NULL;
    if (!tr__dtype_is_half(type)) {
        return TR_OK;
    }
    uint16_t *rounded = tr__calloc((size_t)count, sizeof *rounded);
    for (int64_t i = 0; rounded && i < count; i++) {
        rounded[i] = tr__half_of_f32(type, values[i]);
    }
    *state = rounded;
    return rounded ? TR_OK : tr_fail(err, TR_MEMORY, "no memory for a constant");
}

static void release(void *state) {
    tr__free(state);
}

// The first row comes from the host, and those that are there become twice as many.
static void put(const tr_op_desc *desc, const tr_launch *launch, const void *values,
                int64_t bytes) {
    const tr_queue_table *queues = tr__backend(desc->target.backend)->queues;
    int64_t all = tr_tensor_bytes(desc->out[0]);
    char *to = launch->out[0];
    queues->copy(launch->queue, values, to, bytes);
    for (int64_t done = bytes; done < all; done *= 2) {
        int64_t more = done < all - done ? done : all - done;
        queues->copy(launch->queue, to, to + done, more);
    }
}

static void launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    const tr_constant_attr *attr = (const void *)desc->attr;
    const void *values = state ? state : attr->values;
    int64_t bytes = own_count(desc) * (int64_t)tr_dtype_bytes(desc->out[0].dtype);
    int64_t all = tr_tensor_bytes(desc->out[0]);
    char *to = launch->out[0];
    if (launch->queue) {
        put(desc, launch, values, bytes);
        return;
    }
    for (int64_t done = 0; done < all; done += bytes) {
        memcpy(to + done, values, (size_t)bytes);
    }
}

static const tr_kernel kernel = {.name = "constant.caller",
                                 .supports = supports,
                                 .cost = cost,
                                 .prepare = prepare,
                                 .launch = launch,
                                 .release = release};

static const tr_op constant_op = {.name = "constant",
                                  .attr_bytes = sizeof(tr_constant_attr),
                                  .flags = TR_OP_CALLS,
                                  .no_gradient = 1 << 0,
                                  .shape_only = 1 << 0,
                                  .infer = infer,
                                  .reference = &kernel};

// ---- the call

static const char *problem_of(tr_tensor_desc desc, const void *values) {
    if (!values) {
        return "its values are NULL";
    }
    if (desc.dtype != TR_F32 && desc.dtype != TR_I32) {
        return "its type is neither F32 nor I32";
    }
    if (desc.shape.rank < 1 || desc.shape.rank > TR_RANK_MAX) {
        return "its shape has no dimension, or too many";
    }
    for (int i = 0; i < desc.shape.rank; i++) {
        if (desc.shape.dim[i] < 1 && !(i == 0 && is_for_each_sample(desc.shape))) {
            return "a dimension of its shape is below 1";
        }
    }
    return NULL;
}

// What has a row for each sample here: an input of the unit, else the batch.
static tr_value rows_of(tr_graph *graph) {
    return graph->input_count > 0 ? tr_graph_input(graph, 0)
                                  : tr_graph_data(graph, graph->batch.tensor[0].name);
}

tr_value tr_graph_constant(tr_graph *graph, tr_tensor_desc desc, const void *values) {
    if (!graph || tr_graph_status(graph, NULL) != TR_OK) {
        return TR_NO_VALUE;
    }
    const char *problem = problem_of(desc, values);
    if (problem) {
        tr_graph_fail(graph, TR_USAGE, "tr_graph_constant: %s", problem);
        return TR_NO_VALUE;
    }
    tr_constant_attr attr;
    memset(&attr, 0, sizeof attr); // programs are compared by these bytes
    attr.values = values;
    attr.desc.dtype = desc.dtype == TR_F32 ? graph->real : desc.dtype;
    attr.desc.shape.rank = desc.shape.rank;
    memcpy(attr.desc.shape.dim, desc.shape.dim, sizeof desc.shape.dim);
    tr_value rows = is_for_each_sample(desc.shape) ? rows_of(graph) : TR_NO_VALUE;
    return tr__graph_op(graph, &constant_op, &attr, &rows, rows != TR_NO_VALUE, NULL);
}

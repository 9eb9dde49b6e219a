// tr_graph_map: a function of one number, and its derivative, as an op.
#include "graph/graph.h"
#include "ops/operand.h"

#include <string.h>

typedef struct tr_map_attr {
    float (*value)(float x);
    float (*slope)(float x);
} tr_map_attr;

static const tr_op map_backward_op;

static tr_status infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                       tr_error *err) {
    return tr__operand_same(node, 1, out, out_count, err);
}

static tr_status backward_infer(const tr_op_node *node, tr_tensor_desc *out,
                                int *out_count, tr_error *err) {
    return tr__operand_same(node, 2, out, out_count, err);
}

static int backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    rules[0] = (tr_rule){
        .op = &map_backward_op,
        .in = {TR_GRAD_OUT(0), TR_IN(0)},
        .out = {TR_GRAD_IN(0)},
    };
    memcpy(rules[0].attr, node->attr, sizeof(tr_map_attr));
    return 1;
}

static void launch(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    const tr_map_attr *attr = (const void *)desc->attr;
    const float *x = launch->in[0];
    float *y = launch->out[0];
    int64_t count = tr_shape_count(desc->in[0].shape);
    bool add = launch->accumulate & 1;
    (void)state;
    for (int64_t i = 0; i < count; i++) {
        y[i] = (add ? y[i] : 0) + attr->value(x[i]);
    }
}

static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    const tr_map_attr *attr = (const void *)desc->attr;
    const float *dy = launch->in[0], *x = launch->in[1];
    float *dx = launch->out[0];
    int64_t count = tr_shape_count(desc->in[0].shape);
    bool add = launch->accumulate & 1;
    (void)state;
    for (int64_t i = 0; i < count; i++) {
        dx[i] = (add ? dx[i] : 0) + attr->slope(x[i]) * dy[i];
    }
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 10, out);
}

static const tr_kernel map_kernel = {
    .name = "map.caller", .supports = tr__desc_f32, .cost = cost, .launch = launch};
static const tr_kernel map_backward_kernel = {.name = "map_backward.caller",
                                              .supports = tr__desc_f32,
                                              .cost = cost,
                                              .launch = launch_backward};

static const tr_op map_op = {.name = "map",
                             .attr_bytes = sizeof(tr_map_attr),
                             .infer = infer,
                             .backward = backward,
                             .recompute_class = {TR_RECOMPUTE_ACTIVATION},
                             .reference = &map_kernel};
static const tr_op map_backward_op = {.name = "map_backward",
                                      .attr_bytes = sizeof(tr_map_attr),
                                      .infer = backward_infer,
                                      .reference = &map_backward_kernel};

tr_value tr_graph_map(tr_graph *graph, tr_value x, float (*value)(float x),
                      float (*slope)(float x)) {
    if (!graph || tr_graph_status(graph, NULL) != TR_OK) {
        return TR_NO_VALUE;
    }
    if (!value || !slope) {
        tr_graph_fail(graph, TR_USAGE,
                      "tr_graph_map: value and slope have to be there");
        return TR_NO_VALUE;
    }
    const tr_map_attr attr = {value, slope};
    return tr__graph_op(graph, &map_op, &attr, &x, 1, NULL);
}

#include "adapter.h"

#include <stdio.h>
#include <string.h>

enum { RANK = 3 };

// ---- y = a x, an op of the program's own

static tr_status infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                       tr_error *err) {
    (void)err;
    out[0] = node->in[0];
    *out_count = 1;
    return TR_OK;
}

static bool is_f32(const tr_op_desc *desc) {
    return desc->in[0].dtype == TR_F32;
}

static void launch(const tr_op_desc *desc, void *state, const tr_launch *launch_) {
    const float *x = launch_->in[0];
    float *y = launch_->out[0], scale;
    (void)state;
    memcpy(&scale, desc->attr, sizeof scale);
    for (int64_t i = 0; i < tr_shape_count(desc->in[0].shape); i++) {
        y[i] = (launch_->accumulate & 1 ? y[i] : 0) + scale * x[i];
    }
}

static const tr_kernel kernel = {.name = "scale", .supports = is_f32, .launch = launch};

static int backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]);

static const tr_op scale = {.name = "scale",
                            .attr_bytes = sizeof(float),
                            .infer = infer,
                            .backward = backward,
                            .reference = &kernel};

static int backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    rules[0] = (tr_rule){.op = &scale, .in = {TR_GRAD_OUT(0)}, .out = {TR_GRAD_IN(0)}};
    memcpy(rules[0].attr, node->attr, sizeof(float));
    return 1;
}

// ---- the row

static bool is_chosen(const tr_rewrite_node *node) {
    return strcmp(node->unit->name, "second") == 0 && node->param[1] &&
           strcmp(node->param[1], "after.weight") == 0;
}

static tr_value product(tr_graph *graph, tr_value x, const char *name, int64_t out,
                        tr_init init) {
    tr_shape shape = tr_graph_desc(graph, x).shape;
    tr_value weight =
        tr_graph_param(graph, name, TR_SHAPE2(out, shape.dim[shape.rank - 1]), init);
    return tr_linear(graph, TR_LINEAR_OUT_IN, x, weight, TR_NO_VALUE);
}

static bool adapt(tr_graph *graph, const tr_rewrite_node *node, float dropout,
                  tr_init up, tr_value *results) {
    const float factor = 1.5f;
    const tr_init draw = {TR_INIT_UNIFORM, -0.5f, 0.5f};
    tr_shape out = tr_graph_desc(graph, node->out[0]).shape;
    if (!is_chosen(node)) {
        return false;
    }
    tr_rewrite_as(graph, node, node->op, node->attr, results);
    tr_value low = product(graph, node->in[0], "after.lora_A", RANK, draw);
    low = tr_dropout(graph, low, dropout);
    tr_value more = product(graph, low, "after.lora_B", out.dim[out.rank - 1], up);
    more = tr_graph_op(graph, &scale, &factor, &more, 1, NULL);
    results[0] = tr_residual(graph, results[0], more, 0);
    return true;
}

static bool adapt_from_nothing(tr_graph *graph, const tr_rewrite_node *node,
                               tr_value *results) {
    return adapt(graph, node, 0.5f, (tr_init){TR_INIT_CONSTANT, 0, 0}, results);
}

static bool adapt_from_drawn(tr_graph *graph, const tr_rewrite_node *node,
                             tr_value *results) {
    return adapt(graph, node, 0, (tr_init){TR_INIT_UNIFORM, -0.5f, 0.5f}, results);
}

const tr_rewrite adapter_rows[] = {
    {TR_REWRITE_ALWAYS, NULL, "linear", adapt_from_nothing},
    {0},
};

const tr_rewrite adapter_rows_drawn[] = {
    {TR_REWRITE_ALWAYS, NULL, "linear", adapt_from_drawn},
    {0},
};

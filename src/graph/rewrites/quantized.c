// Linear layers whose weights are kept in few bits: a product with what these stand
// for, which is made for each product, and never kept.
#include "graph/rewrite.h"
#include "ops/nn/dequantize/dequantize.h"
#include "ops/nn/linear/linear.h"

#include <string.h>

// Writes the rows of the tensors that lie in the value, a parameter, and makes them
// tensors of few bits.
static void quantize(tr_graph *graph, tr_value value, tr_dequantize_attr *attr,
                     bool transposed) {
    size_t i = (size_t)graph->values[value].index;
    int64_t words = 0;
    do {
        tr_param_info *info = &graph->params[i];
        if (attr->parts == TR_DEQUANTIZE_PARTS) {
            tr_graph_fail(graph, TR_INTERNAL, "%s: more than %d tensors in one product",
                          info->name, TR_DEQUANTIZE_PARTS);
            return;
        }
        int64_t rows = info->shape.dim[transposed ? 1 : 0];
        attr->rows[attr->parts++] = (int32_t)rows;
        words += tr__graph_quantize(graph, i, attr->kind, transposed);
    } while (++i < graph->param_count && graph->params[i].stacked);
    graph->values[value].desc = (tr_tensor_desc){TR_I32, TR_SHAPE1(words)};
}

static bool is_alone(const tr_graph *graph, tr_value value) {
    const tr_param_info *info = &graph->params[graph->values[value].index];
    return !info->shared && !info->whole;
}

static bool keep_in_few_bits(tr_graph *graph, const tr_rewrite_node *node,
                             tr_value *results) {
    tr_linear_attr linear;
    if (!node->param[1] || !node->quantizes(node->request, node, node->param[1]) ||
        !is_alone(graph, node->in[1])) {
        return false;
    }
    memcpy(&linear, node->attr, sizeof linear);
    tr_shape shape = tr_graph_desc(graph, node->in[1]).shape;
    bool transposed = linear.layout == TR_WEIGHT_IN_OUT;
    tr_dequantize_attr attr = {.kind = node->quantization,
                               .real = graph->real,
                               .width = (int32_t)shape.dim[transposed ? 0 : 1]};
    quantize(graph, node->in[1], &attr, transposed);
    tr_value in[] = {
        node->in[0],
        tr_graph_op(graph, &tr__op_dequantize, &attr, &node->in[1], 1, NULL),
        node->in_count > 2 ? node->in[2] : TR_NO_VALUE};
    linear.layout = TR_WEIGHT_OUT_IN;
    results[0] = tr_graph_op(graph, node->op, &linear, in, node->in_count, NULL);
    return true;
}

const tr_rewrite tr__rewrites_quantized[] = {
    {TR_REWRITE_QUANTIZED, &tr__op_linear, NULL, keep_in_few_bits},
    {0},
};

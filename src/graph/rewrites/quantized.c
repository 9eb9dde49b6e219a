// Linear layers whose weights are kept in few bits: a product with what these stand
// for, which is made for each product, and never kept. Lengths of their rows (DoRA)
// need no weight made.
#include "base/quantized.h"
#include "graph/rewrite.h"
#include "ops/nn/dequantize/dequantize.h"
#include "ops/nn/linear/linear.h"
#include "ops/nn/row_squares/row_squares.h"

#include <string.h>

// The shape that a tensor has, or had before it was one of few bits.
static tr_shape plain_of(const tr_param_info *info) {
    return info->quantized ? info->plain : info->shape;
}

// Writes the rows of the tensors that lie in the value, a parameter, and makes them
// tensors of few bits, unless an earlier product has done so.
static void quantize(tr_graph *graph, tr_value value, tr_quantization kind,
                     tr_dequantize_attr *attr, bool transposed) {
    size_t i = (size_t)graph->values[value].index;
    bool done = graph->params[i].quantized != TR_QUANTIZED_NOT;
    int64_t words = 0;
    attr->width = (int32_t)plain_of(&graph->params[i]).dim[transposed ? 0 : 1];
    do {
        tr_param_info *info = &graph->params[i];
        if (attr->parts == TR_DEQUANTIZE_PARTS) {
            tr_graph_fail(graph, TR_INTERNAL, "%s: more than %d tensors in one product",
                          info->name, TR_DEQUANTIZE_PARTS);
            return;
        }
        int64_t rows = plain_of(info).dim[transposed ? 1 : 0];
        attr->rows[attr->parts++] = (int32_t)rows;
        words += done ? 0 : tr__graph_quantize(graph, i, kind, transposed);
        attr->kind = info->kept;
    } while (++i < graph->param_count && graph->params[i].stacked);
    if (!done) {
        graph->values[value].desc = (tr_tensor_desc){TR_I32, TR_SHAPE1(words)};
    }
}

// Are all tensors that lie in the weight the unit's own, and kept in few bits?
static bool are_kept_so(const tr_graph *graph, const tr_rewrite_node *node,
                        tr_value weight) {
    size_t i = (size_t)graph->values[weight].index;
    bool kept = true;
    do {
        const tr_param_info *info = &graph->params[i];
        kept = kept && !info->shared && !info->whole &&
               node->quantizes(node->request, node, info->name);
    } while (++i < graph->param_count && graph->params[i].stacked);
    return kept;
}

static bool keep_in_few_bits(tr_graph *graph, const tr_rewrite_node *node,
                             tr_value *results) {
    tr_linear_attr linear;
    if (!node->param[1] || !are_kept_so(graph, node, node->in[1])) {
        return false;
    }
    memcpy(&linear, node->attr, sizeof linear);
    tr_dequantize_attr attr = {.real = graph->real};
    quantize(graph, node->in[1], node->quantization, &attr,
             linear.layout == TR_WEIGHT_IN_OUT);
    tr_value in[] = {
        node->in[0],
        tr_graph_op(graph, &tr__op_dequantize, &attr, &node->in[1], 1, NULL),
        node->in_count > 2 ? node->in[2] : TR_NO_VALUE};
    linear.layout = TR_WEIGHT_OUT_IN;
    results[0] = tr_graph_op(graph, node->op, &linear, in, node->in_count, NULL);
    return true;
}

int64_t tr__few_bits_grain(const tr_graph *graph, const tr_rewrite_walk *walk,
                           const tr_call *product, int input, int dim) {
    const tr_rewrite_node node = {
        .unit = walk->unit, .quantizes = walk->quantizes, .request = walk->request};
    tr_value weight = product->in[input];
    tr_linear_attr linear;
    if (walk->quantization == TR_QUANTIZED_NOT || product->op != &tr__op_linear ||
        input != 1 || !are_kept_so(graph, &node, weight)) {
        return 0;
    }
    memcpy(&linear, product->attr, sizeof linear);
    tr_shape shape = graph->values[weight].desc.shape;
    int inputs = linear.layout == TR_WEIGHT_IN_OUT ? 0 : 1;
    int64_t block = tr__quantized_block(walk->quantization), row = shape.dim[inputs];
    if (dim == inputs) {
        return block;
    }
    while (block % 2 == 0 && row % 2 == 0) { // blocks are powers of two
        block /= 2;
        row /= 2;
    }
    return block;
}

// Lengths of rows are found where the weight lies: the product before has made it one
// of few bits, or has left it.
static bool measure_in_few_bits(tr_graph *graph, const tr_rewrite_node *node,
                                tr_value *results) {
    tr_row_squares_attr attr;
    memcpy(&attr, node->attr, sizeof attr);
    size_t i = (size_t)graph->values[node->in[0]].index;
    int64_t row = 0;
    if (graph->params[i].quantized == TR_QUANTIZED_NOT) {
        return false;
    }
    for (; row < attr.first; i++) {
        const tr_param_info *before = &graph->params[i];
        row += before->plain.dim[before->transposed ? 1 : 0];
        attr.tensor +=
            tr__quantized_layout(before->kept, tr_shape_count(before->plain)).bytes;
    }
    attr.kind = graph->params[i].kept;
    attr.in_out = 0; // codes are [out, in] whatever the weight was
    attr.first = 0;
    return tr_rewrite_as(graph, node, node->op, &attr, results);
}

const tr_rewrite tr__rewrites_quantized[] = {
    {TR_REWRITE_QUANTIZED, &tr__op_linear, NULL, keep_in_few_bits},
    {TR_REWRITE_QUANTIZED, &tr__op_row_squares, NULL, measure_in_few_bits},
    {0},
};

// Units that multiply in 8 bits: their products take operands of 8 bits.
#include "graph/rewrite.h"
#include "ops/nn/linear/linear.h"
#include "ops/nn/linear_fp8/linear_fp8.h"

#include <string.h>

static bool multiply_in_8_bits(tr_graph *graph, const tr_rewrite_node *node,
                               tr_value *results) {
    tr_linear_fp8_attr attr = {.axes = 0};
    memcpy(&attr.linear, node->attr, sizeof attr.linear);
    return tr_rewrite_as(graph, node, &tr__op_linear_fp8, &attr, results);
}

const tr_rewrite tr__rewrites_fp8[] = {
    {TR_REWRITE_FP8, &tr__op_linear, NULL, multiply_in_8_bits},
    {0},
};

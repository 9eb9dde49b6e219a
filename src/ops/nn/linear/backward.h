// The backward of a linear layer, whichever ops multiply.
#ifndef TR_OPS_NN_LINEAR_BACKWARD_H
#define TR_OPS_NN_LINEAR_BACKWARD_H

#include "ops/nn/linear/linear.h"

// The ops of its rules, with the attributes of the layer (tr_linear_attr).
typedef struct tr_linear_ops {
    const tr_op *weight, *bias, *input;
    bool together; // `weight` makes the gradient of the bias, too
} tr_linear_ops;

// Writes the rules of the layer's node, and returns their number.
int tr__linear_rules(const tr_op_node *node, tr_linear_ops ops,
                     tr_rule rules[TR_OP_RULES_MAX]);

#endif

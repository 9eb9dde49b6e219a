// Operations and bytes of attention.
#include "ops/nn/attention/sizes.h"
#include "ops/operand.h"

// The operations of one product of queries and keys, over the pairs that are seen: of
// one head, (S + 1) S / 2 pairs of 2 D, less those that the window leaves out; both
// ways, S S pairs.
static double product(tr_shape qkv, const void *attr) {
    tr_attention_sizes s = tr__attention_sizes(qkv, attr);
    double all = (double)s.context, out = all - (double)s.window;
    double pairs = s.both ? all * all : (all * (all + 1) - out * (out + 1)) / 2;
    return 2 * pairs * (double)s.width * (double)s.batch;
}

// Two products in the forward, five in the backward.
void tr__attention_cost(const tr_op_desc *desc, tr_cost *cost) {
    tr__desc_cost(desc, 0, cost);
    cost->flops = 2 * product(desc->in[0].shape, desc->attr);
}

void tr__attention_backward_cost(const tr_op_desc *desc, tr_cost *cost) {
    tr__desc_cost(desc, 0, cost);
    cost->flops = 5 * product(desc->in[1].shape, desc->attr);
}

// Of a full cache, read once: two products of each query with all keys and values.
void tr__attention_cached_cost(const tr_op_desc *desc, tr_cost *cost) {
    tr_attention_sizes s = tr__attention_sizes(desc->in[0].shape, desc->attr);
    double pairs = (double)desc->in[1].shape.dim[2] * (double)s.context;
    cost->flops = 4 * pairs * (double)s.width * (double)s.batch;
    cost->bytes = (double)tr_tensor_bytes(desc->in[0]) +
                  (double)tr_tensor_bytes(desc->in[1]) +
                  (double)tr_tensor_bytes(desc->out[0]);
}

// Operations and bytes of attention.
#include "ops/nn/attention/sizes.h"
#include "ops/operand.h"

// Pairs of a query and a key that are seen: of one head, (S + 1) S / 2, less those that
// the window leaves out; both ways, S S.
static double seen(const tr_attention_sizes *s) {
    double all = (double)s->context, out = all - (double)s->window;
    return s->both ? all * all : (all * (all + 1) - out * (out + 1)) / 2;
}

// `count` products over the pairs that are seen, 2 D operations each, of which the
// literature counts `model`.
static void products(tr_shape qkv, const void *attr, int count, int model,
                     tr_cost *cost) {
    tr_attention_sizes s = tr__attention_sizes(qkv, attr);
    double pairs = seen(&s), each = 2 * (double)s.width * (double)s.batch;
    double all = (double)s.context * (double)s.context;
    cost->rows = (double)s.context;
    cost->columns = (double)s.window;
    cost->depth = (double)s.depth;
    cost->flops = count * pairs * each;
    cost->model = model * pairs * each;
    cost->unseen = model * (all - pairs) * each;
}

// Two products in the forward, five in the backward: the first of them gives the
// scores again, and no formula counts that.
void tr__attention_cost(const tr_op_desc *desc, tr_cost *cost) {
    tr__desc_cost(desc, 0, cost);
    products(desc->in[0].shape, desc->attr, 2, 2, cost);
}

void tr__attention_backward_cost(const tr_op_desc *desc, tr_cost *cost) {
    tr__desc_cost(desc, 0, cost);
    products(desc->in[1].shape, desc->attr, 5, 4, cost);
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

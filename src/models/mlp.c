#include "models/mlp.h"

#include <math.h>

// torch.nn.Linear draws weight and bias uniformly in +-1/sqrt(fan in).
static tr_init uniform(int64_t fan_in) {
    float bound = (float)(1 / sqrt((double)fan_in));
    return (tr_init){TR_INIT_UNIFORM, -bound, bound};
}

// The first layer takes the batch's features, the others what the one before hands on.
static tr_value layer_input(tr_graph *g, const tr_mlp_layer *layer) {
    return layer->first ? tr_graph_data(g, TR_DATA_INPUT) : tr_graph_input(g, 0);
}

void tr__mlp_hidden(tr_graph *g, const void *config) {
    const tr_mlp_layer *c = config;
    tr_value x = layer_input(g, c); // [B, in]
    tr_value w = tr_graph_param(g, "weight", TR_SHAPE2(c->out, c->in), uniform(c->in));
    tr_value b = tr_graph_param(g, "bias", TR_SHAPE1(c->out), uniform(c->in));
    tr_graph_output(g, tr_linear_relu(g, TR_LINEAR_OUT_IN, x, w, b));
}

void tr__mlp_head(tr_graph *g, const void *config) {
    const tr_mlp_layer *c = config;
    tr_value x = layer_input(g, c); // [B, in]
    tr_value w = tr_graph_param(g, "weight", TR_SHAPE2(c->out, c->in), uniform(c->in));
    tr_value b = tr_graph_param(g, "bias", TR_SHAPE1(c->out), uniform(c->in));
    tr_value targets = tr_graph_data(g, TR_DATA_TARGET); // [B]
    tr_head(g, TR_LINEAR_OUT_IN, x, w, b, targets);
}

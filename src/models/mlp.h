// A multilayer perceptron for classification, drawn as torch.nn.Linear draws.
#ifndef TR_MODELS_MLP_H
#define TR_MODELS_MLP_H

#include <tranche/model.h>

enum { TR_MLP_LAYERS_MAX = 64 };

typedef struct tr_mlp_config {
    int64_t size[TR_MLP_LAYERS_MAX + 1]; // features, hidden ..., classes
    int layers;
} tr_mlp_config;

// What one unit of it is made from.
typedef struct tr_mlp_layer {
    int64_t in, out;
    bool first; // takes the batch's features
} tr_mlp_layer;

void tr__mlp_hidden(tr_graph *graph, const void *config);
void tr__mlp_head(tr_graph *graph, const void *config);

#endif

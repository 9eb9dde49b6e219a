// A multilayer perceptron for classification, drawn as torch.nn.Linear draws.
#ifndef TR_MODELS_MLP_H
#define TR_MODELS_MLP_H

#include <tranche/extend/graph.h>

enum { TR_MLP_LAYERS_MAX = 64 };

typedef struct tr_mlp_config {
    int64_t size[TR_MLP_LAYERS_MAX + 1]; // features, hidden ..., classes
    int layers;
} tr_mlp_config;

// From an architecture's own numbers. The caller destroys the model.
tr_status tr__model_mlp(const tr_mlp_config *config, tr_model **out, tr_error *err);

#endif

// Residual networks (He, Zhang, Ren and Sun, arXiv 1512.03385), in the parameter names
// and layouts of torchvision, drawn as torchvision draws them. Images are channels
// last.
#ifndef TR_MODELS_RESNET_H
#define TR_MODELS_RESNET_H

#include <tranche/extend/graph.h>

enum { TR_RESNET_STAGES_MAX = 4 };

typedef struct tr_resnet_config {
    int64_t depth; // layers with weights: 6 n + 2 of CIFAR's, or 18, 34, 50
    bool imagenet; // stem of 7 x 7 and max pooling; else 3 x 3
    bool bottleneck;
    int stages, blocks[TR_RESNET_STAGES_MAX];
    int64_t width; // channels of the first stage; each stage has twice those before
    int64_t num_channels, image_size, num_labels;
    bool projection; // shortcuts of another shape by a convolution, not by zeros
    tr_batch_scope batch_norm;
    double batch_norm_eps, batch_norm_momentum;
} tr_resnet_config;

// From an architecture's own numbers. The caller destroys the model.
tr_status tr__model_resnet(const tr_resnet_config *config, tr_model **out,
                           tr_error *err);

#endif

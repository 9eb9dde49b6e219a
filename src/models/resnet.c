#include "models/resnet.h"

#include <math.h>
#include <stdio.h>

enum { NAME = 64 };

static const tr_init ones = {TR_INIT_CONSTANT, 1, 0};
static const tr_init zeros = {TR_INIT_CONSTANT, 0, 0};

static int64_t channels(const tr_graph *g, tr_value x) {
    return tr_graph_desc(g, x).shape.dim[3];
}

// x by a kernel of k x k, the image kept in its size but for the stride. Drawn as He et
// al., arXiv 1502.01852, eq. 14: by the fan out.
static tr_value conv(tr_graph *g, const char *name, tr_value x, int64_t out, int k,
                     int stride) {
    char text[NAME];
    snprintf(text, sizeof text, "%s.weight", name);
    tr_init draw = {TR_INIT_NORMAL, 0, (float)sqrt(2.0 / (double)(k * k * out))};
    tr_shape shape = TR_SHAPE4(out, channels(g, x), k, k);
    tr_value weight = tr_graph_param(g, text, shape, draw);
    return tr_conv2d(g, x, weight, TR_NO_VALUE, stride, k / 2);
}

static tr_value vector(tr_graph *g, const char *name, const char *what, int64_t count,
                       tr_init init) {
    char text[NAME];
    snprintf(text, sizeof text, "%s.%s", name, what);
    return tr_graph_param(g, text, TR_SHAPE1(count), init);
}

static tr_value state(tr_graph *g, const char *name, const char *what,
                      tr_tensor_desc desc, float value) {
    char text[NAME];
    snprintf(text, sizeof text, "%s.%s", name, what);
    return tr_graph_state(g, text, desc, value);
}

// relu(norm(x) + residual); residual may be TR_NO_VALUE, and relu left out.
static tr_value norm(tr_graph *g, const tr_resnet_config *c, const char *name,
                     tr_value x, tr_value residual, bool relu) {
    int64_t count = channels(g, x);
    tr_tensor_desc each = {TR_F32, TR_SHAPE1(count)}, one = {.dtype = TR_I64};
    tr_batch_norm_options options = {
        .weight = vector(g, name, "weight", count, ones),
        .bias = vector(g, name, "bias", count, zeros),
        .running_mean = state(g, name, "running_mean", each, 0),
        .running_var = state(g, name, "running_var", each, 1),
        .tracked = state(g, name, "num_batches_tracked", one, 0),
        .epsilon = (float)c->batch_norm_eps,
        .momentum = (float)c->batch_norm_momentum,
        .scope = c->batch_norm,
    };
    return tr_batch_norm(g, x, &options, residual, relu);
}

void tr__resnet_stem(tr_graph *g, const void *config) {
    const tr_resnet_config *c = config;
    tr_value x = tr_graph_data(g, TR_DATA_INPUT); // [B, H, W, channels]
    x = conv(g, "conv1", x, c->width, c->imagenet ? 7 : 3, c->imagenet ? 2 : 1);
    x = norm(g, c, "bn1", x, TR_NO_VALUE, true);
    tr_graph_output(g, c->imagenet ? tr_max_pool(g, x, 3, 2, 1) : x);
}

// Section 3.3: where shapes are the same, x itself; else (A) x with zeros for what it
// has not, or (B) a projection.
static tr_value shortcut(tr_graph *g, const tr_resnet_block *b, tr_value x) {
    if (b->stride == 1 && channels(g, x) == b->out) {
        return x;
    }
    if (!b->config->projection) {
        return tr_shortcut(g, x, b->stride, (int)b->out);
    }
    x = conv(g, "downsample.0", x, b->out, 1, b->stride);
    return norm(g, b->config, "downsample.1", x, TR_NO_VALUE, false);
}

// Figure 5: two kernels of 3 x 3, or a bottleneck around one.
void tr__resnet_block(tr_graph *g, const void *config) {
    const tr_resnet_block *b = config;
    const tr_resnet_config *c = b->config;
    bool narrow = c->bottleneck;
    tr_value x = tr_graph_input(g, 0); // [B, H, W, C]
    tr_value r = shortcut(g, b, x);
    x = narrow ? conv(g, "conv1", x, b->width, 1, 1)
               : conv(g, "conv1", x, b->width, 3, b->stride);
    x = norm(g, c, "bn1", x, TR_NO_VALUE, true);
    x = conv(g, "conv2", x, b->width, 3, narrow ? b->stride : 1);
    if (narrow) {
        x = norm(g, c, "bn2", x, TR_NO_VALUE, true);
        x = conv(g, "conv3", x, b->out, 1, 1);
    }
    tr_graph_output(g, norm(g, c, narrow ? "bn3" : "bn2", x, r, true));
}

void tr__resnet_head(tr_graph *g, const void *config) {
    const tr_resnet_config *c = config;
    tr_value x = tr_average_pool(g, tr_graph_input(g, 0), 0, 0, 0); // [B, C]
    int64_t in = tr_graph_desc(g, x).shape.dim[1];
    float bound = (float)(1 / sqrt((double)in));
    tr_init draw = {TR_INIT_UNIFORM, -bound, bound};
    tr_value w = tr_graph_param(g, "fc.weight", TR_SHAPE2(c->num_labels, in), draw);
    tr_value b = tr_graph_param(g, "fc.bias", TR_SHAPE1(c->num_labels), draw);
    tr_head(g, TR_LINEAR_OUT_IN, x, w, b, tr_graph_data(g, TR_DATA_TARGET));
}

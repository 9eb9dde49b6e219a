#include "models/resnet.h"

#include "models/models.h"
#include "models/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LARGEST = 1 << 20, LABELS = 1 << 24 };
enum { NAME = 64 };

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

// What one block of it is made from.
typedef struct tr_resnet_block {
    const tr_resnet_config *config;
    int64_t width, out; // channels inside; of what it hands on
    int stride;
} tr_resnet_block;

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

static void build_stem(tr_graph *g, const void *config) {
    const tr_resnet_config *c = config;
    tr_value x = tr_graph_data(g, "pixel_values"); // [B, H, W, channels]
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
static void build_block(tr_graph *g, const void *config) {
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

static void build_head(tr_graph *g, const void *config) {
    const tr_resnet_config *c = config;
    tr_value x = tr_average_pool(g, tr_graph_input(g, 0), 0, 0, 0); // [B, C]
    int64_t in = tr_graph_desc(g, x).shape.dim[1];
    float bound = (float)(1 / sqrt((double)in));
    tr_init draw = {TR_INIT_UNIFORM, -bound, bound};
    tr_value w = tr_graph_param(g, "fc.weight", TR_SHAPE2(c->num_labels, in), draw);
    tr_value b = tr_graph_param(g, "fc.bias", TR_SHAPE1(c->num_labels), draw);
    tr_linear_cross_entropy(g, TR_LINEAR_OUT_IN, x, w, b, tr_graph_data(g, "labels"));
}

// He et al., arXiv 1512.03385, table 1 and section 4.2.
static const struct {
    int depth;
    bool imagenet, bottleneck;
    int blocks[TR_RESNET_STAGES_MAX];
} shapes[] = {
    {18, true, false, {2, 2, 2, 2}},  {34, true, false, {3, 4, 6, 3}},
    {50, true, true, {3, 4, 6, 3}},   {101, true, true, {3, 4, 23, 3}},
    {152, true, true, {3, 8, 36, 3}}, {8, false, false, {1, 1, 1, 0}},
    {14, false, false, {2, 2, 2, 0}}, {20, false, false, {3, 3, 3, 0}},
    {32, false, false, {5, 5, 5, 0}}, {44, false, false, {7, 7, 7, 0}},
    {56, false, false, {9, 9, 9, 0}}, {110, false, false, {18, 18, 18, 0}},
};

static tr_status set_shape(const tr_model_keys *keys, tr_resnet_config *c,
                           tr_error *err) {
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        if (shapes[i].depth == c->depth) {
            c->imagenet = shapes[i].imagenet;
            c->bottleneck = shapes[i].bottleneck;
            memcpy(c->blocks, shapes[i].blocks, sizeof c->blocks);
            c->stages = c->imagenet ? 4 : 3;
            return TR_OK;
        }
    }
    return tr_fail(
        err, TR_USAGE,
        "%s: depth %lld is not one of the paper's residual networks: give 8, 14, 20, "
        "32, 44, 56 or 110 for small images, or 18, 34, 50, 101 or 152 for large ones",
        keys->origin, (long long)c->depth);
}

// What a depth has by itself.
static void set_defaults(tr_resnet_config *c) {
    c->width = c->width ? c->width : c->imagenet ? 64 : 16;
    c->image_size = c->image_size ? c->image_size : c->imagenet ? 224 : 32;
    c->num_labels = c->num_labels ? c->num_labels : c->imagenet ? 1000 : 10;
}

// ---- the model

static void add_blocks(tr_units *units, const tr_resnet_config *c) {
    tr_resnet_block *blocks = units->parts;
    int at = 0, factor = c->bottleneck ? 4 : 1;
    int64_t in = c->width;
    for (int s = 0; s < c->stages; s++) {
        for (int i = 0; i < c->blocks[s]; i++, at++) {
            tr_resnet_block *block = &blocks[at];
            char name[32], kind[64], prefix[48];
            *block = (tr_resnet_block){c, c->width << s, (c->width << s) * factor,
                                       s > 0 && i == 0 ? 2 : 1};
            snprintf(name, sizeof name, "layer%d.%d", s + 1, i);
            snprintf(kind, sizeof kind, "block %lld to %lld, stride %d", (long long)in,
                     (long long)block->out, block->stride);
            snprintf(prefix, sizeof prefix, "layer%d.%d.", s + 1, i);
            tr__units_set(units, at + 1,
                          (tr_model_unit){name, kind, prefix, build_block, block});
            in = block->out;
        }
    }
}

static const char *const statistics[] = {[TR_EFFECTIVE_BATCH] = "effective_batch",
                                         [TR_RANK_BATCH] = "rank_batch",
                                         [TR_MICRO_BATCH] = "micro_batch"};

static json_t *to_json(const tr_resnet_config *c) {
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:s, s:s, s:f, s:f}", "model_type",
                     "resnet", "depth", (json_int_t)c->depth, "width",
                     (json_int_t)c->width, "num_channels", (json_int_t)c->num_channels,
                     "image_size", (json_int_t)c->image_size, "num_labels",
                     (json_int_t)c->num_labels, "shortcut",
                     c->projection ? "projection" : "identity", "batch_norm",
                     statistics[c->batch_norm], "batch_norm_eps", c->batch_norm_eps,
                     "batch_norm_momentum", c->batch_norm_momentum);
}

tr_status tr__model_resnet(const tr_resnet_config *config, tr_model **out,
                           tr_error *err) {
    int count = 2;
    for (int s = 0; s < config->stages; s++) {
        count += config->blocks[s];
    }
    tr_units *units =
        tr__units_create(&tr__architecture_resnet, count, config, sizeof *config);
    if (!units || !tr__units_parts(units, count - 2, sizeof(tr_resnet_block))) {
        tr_model_destroy(units ? &units->model : NULL);
        return tr_fail(err, TR_MEMORY, "no memory for a model's units");
    }
    const tr_resnet_config *c = units->config;
    tr__units_set(units, 0, (tr_model_unit){"stem", "stem", "", build_stem, c});
    add_blocks(units, c);
    tr__units_set(units, count - 1, (tr_model_unit){"head", "head", "", build_head, c});
    units->model.batch = tr_batch_images(c->image_size, c->image_size, c->num_channels);
    units->model.classes = c->num_labels;
    units->model.classifier = true;
    return tr__units_finish(units, to_json(c), out, err);
}

// ---- its keys

static tr_status from_json(const tr_model_keys *keys, bool strict, tr_model **out,
                           tr_error *err) {
    static const char *const names[] = {"model_type",     "depth",
                                        "width",          "num_channels",
                                        "image_size",     "num_labels",
                                        "shortcut",       "batch_norm",
                                        "batch_norm_eps", "batch_norm_momentum"};
    static const char *const shortcuts[] = {"identity", "projection"};
    tr_resnet_config c = {.depth = 20,
                          .num_channels = 3,
                          .batch_norm_eps = 1e-5,
                          .batch_norm_momentum = 0.1};
    const tr_model_field fields[] = {
        {"depth", 1, 10000, &c.depth, NULL},
        {"width", 1, 4096, &c.width, NULL},
        {"num_channels", 1, 4096, &c.num_channels, NULL},
        {"image_size", 1, LARGEST, &c.image_size, NULL},
        {"num_labels", 1, LABELS, &c.num_labels, NULL},
        {"batch_norm_eps", 1e-30, 1, NULL, &c.batch_norm_eps},
        {"batch_norm_momentum", 0, 1, NULL, &c.batch_norm_momentum},
    };
    tr_status status =
        strict ? tr__fields_known(keys, names, COUNT_OF(names), err) : TR_OK;
    status =
        status == TR_OK ? tr__fields_read(keys, fields, COUNT_OF(fields), err) : status;
    status = status == TR_OK ? set_shape(keys, &c, err) : status;
    if (status != TR_OK) {
        return status;
    }
    set_defaults(&c);
    int shortcut = tr__field_choice(keys, "shortcut", shortcuts, COUNT_OF(shortcuts),
                                    c.imagenet, err);
    int statistic =
        tr__field_choice(keys, "batch_norm", statistics, COUNT_OF(statistics), 0, err);
    if (shortcut < 0 || statistic < 0) {
        return TR_USAGE;
    }
    c.projection = shortcut == 1;
    c.batch_norm = (tr_batch_scope)statistic;
    return tr__model_resnet(&c, out, err);
}

const tr_architecture tr__architecture_resnet = {.type = "resnet",
                                                 .from_json = from_json};

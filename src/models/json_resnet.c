// Residual networks from the keys of a run file, and their units.
#include "models/units.h"

#include <stdio.h>
#include <string.h>

enum { LARGEST = 1 << 20, LABELS = 1 << 24 };

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

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
    return tr_fail(err, TR_USAGE,
                   "%s: depth %lld is no residual network of the paper: 8, 14, 20, 32, "
                   "44, 56 and 110 are those for small images, 18, 34, 50, 101 and 152 "
                   "those for large ones",
                   keys->origin, (long long)c->depth);
}

// What a depth has by itself.
static void set_defaults(tr_resnet_config *c) {
    c->width = c->width ? c->width : c->imagenet ? 64 : 16;
    c->image_size = c->image_size ? c->image_size : c->imagenet ? 224 : 32;
    c->num_labels = c->num_labels ? c->num_labels : c->imagenet ? 1000 : 10;
}

// ---- the units

static void add_blocks(tr_units *units, const tr_resnet_config *c) {
    int at = 0, factor = c->bottleneck ? 4 : 1;
    int64_t in = c->width;
    for (int s = 0; s < c->stages; s++) {
        for (int i = 0; i < c->blocks[s]; i++, at++) {
            tr_resnet_block *block = &units->blocks[at];
            char name[32], kind[64], prefix[48];
            *block = (tr_resnet_block){c, c->width << s, (c->width << s) * factor,
                                       s > 0 && i == 0 ? 2 : 1};
            snprintf(name, sizeof name, "layer%d.%d", s + 1, i);
            snprintf(kind, sizeof kind, "block %lld to %lld, stride %d", (long long)in,
                     (long long)block->out, block->stride);
            snprintf(prefix, sizeof prefix, "layer%d.%d.", s + 1, i);
            tr__units_set(units, at + 1,
                          (tr_model_unit){name, kind, prefix, tr__resnet_block, block});
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
    tr_units *units = tr__units_create(count);
    if (!units || !tr__units_blocks(units, count - 2)) {
        tr_model_destroy(units ? &units->model : NULL);
        return tr_fail(err, TR_MEMORY, "no memory for a model's units");
    }
    units->resnet = *config;
    const tr_resnet_config *c = &units->resnet;
    tr__units_set(units, 0, (tr_model_unit){"stem", "stem", "", tr__resnet_stem, c});
    add_blocks(units, c);
    tr__units_set(units, count - 1,
                  (tr_model_unit){"head", "head", "", tr__resnet_head, c});
    units->model.type = "resnet";
    units->model.input = (tr_tensor_desc){
        TR_F32, TR_SHAPE3(c->image_size, c->image_size, c->num_channels)};
    units->model.target = (tr_tensor_desc){TR_I32, {0}};
    units->model.classes = c->num_labels;
    units->model.classifier = true;
    return tr__units_finish(units, to_json(c), out, err);
}

// ---- the keys

tr_status tr__resnet_from_json(const tr_model_keys *keys, bool strict, tr_model **out,
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

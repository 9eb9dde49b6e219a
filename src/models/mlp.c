#include "models/mlp.h"

#include "models/models.h"
#include "models/units.h"

#include <math.h>
#include <stdio.h>

enum { LARGEST = 1 << 30 };

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

// What one unit of it is made from.
typedef struct tr_mlp_layer {
    int64_t in, out;
    bool first; // takes the batch's features
} tr_mlp_layer;

// torch.nn.Linear draws weight and bias uniformly in +-1/sqrt(fan in).
static tr_init uniform(int64_t fan_in) {
    float bound = (float)(1 / sqrt((double)fan_in));
    return (tr_init){TR_INIT_UNIFORM, -bound, bound};
}

// The first layer takes the batch's features, the others what the one before hands on.
static tr_value layer_input(tr_graph *g, const tr_mlp_layer *layer) {
    return layer->first ? tr_graph_data(g, "features") : tr_graph_input(g, 0);
}

static void build_hidden(tr_graph *g, const void *config) {
    const tr_mlp_layer *c = config;
    tr_value x = layer_input(g, c); // [B, in]
    tr_value w = tr_graph_param(g, "weight", TR_SHAPE2(c->out, c->in), uniform(c->in));
    tr_value b = tr_graph_param(g, "bias", TR_SHAPE1(c->out), uniform(c->in));
    tr_graph_output(g, tr_linear_relu(g, TR_LINEAR_OUT_IN, x, w, b));
}

static void build_head(tr_graph *g, const void *config) {
    const tr_mlp_layer *c = config;
    tr_value x = layer_input(g, c); // [B, in]
    tr_value w = tr_graph_param(g, "weight", TR_SHAPE2(c->out, c->in), uniform(c->in));
    tr_value b = tr_graph_param(g, "bias", TR_SHAPE1(c->out), uniform(c->in));
    tr_value targets = tr_graph_data(g, "labels"); // [B]
    tr_linear_cross_entropy(g, TR_LINEAR_OUT_IN, x, w, b, targets);
}

// ---- the model

static json_t *to_json(const tr_mlp_config *c) {
    json_t *sizes = json_array();
    for (int i = 0; i <= c->layers; i++) {
        if (json_array_append_new(sizes, json_integer(c->size[i])) != 0) {
            json_decref(sizes);
            return NULL;
        }
    }
    return json_pack("{s:s, s:o, s:s}", "model_type", "mlp", "layer_sizes", sizes,
                     "activation", "relu");
}

tr_status tr__model_mlp(const tr_mlp_config *config, tr_model **out, tr_error *err) {
    tr_units *own =
        tr__units_create(&tr__architecture_mlp, config->layers, config, sizeof *config);
    if (!own || !tr__units_parts(own, config->layers, sizeof(tr_mlp_layer))) {
        tr_model_destroy(own ? &own->model : NULL);
        return tr_fail(err, TR_MEMORY, "no memory for a model's layers");
    }
    tr_mlp_layer *layers = own->parts;
    for (int i = 0; i < config->layers; i++) {
        bool last = i + 1 == config->layers;
        tr_mlp_layer *layer = &layers[i];
        *layer = (tr_mlp_layer){config->size[i], config->size[i + 1], i == 0};
        char name[32], kind[64], prefix[32];
        snprintf(name, sizeof name, "layer.%d", i);
        snprintf(kind, sizeof kind, "%s %lld x %lld%s", last ? "head" : "hidden",
                 (long long)layer->in, (long long)layer->out, i ? "" : " first");
        snprintf(prefix, sizeof prefix, "layers.%d.", i);
        tr__units_set(own, i,
                      (tr_model_unit){name, kind, prefix,
                                      last ? build_head : build_hidden, layer});
    }
    own->model.batch = tr_batch_features(config->size[0]);
    own->model.classes = config->size[config->layers];
    own->model.classifier = true;
    return tr__units_finish(own, to_json(config), out, err);
}

// ---- its keys

static tr_status from_json(const tr_model_keys *keys, bool strict, tr_model **out,
                           tr_error *err) {
    static const char *const names[] = {"model_type", "layer_sizes", "activation"};
    static const char *const activations[] = {"relu"};
    tr_mlp_config c = {0};
    tr_status status =
        strict ? tr__fields_known(keys, names, COUNT_OF(names), err) : TR_OK;
    if (status != TR_OK) {
        return status;
    }
    if (tr__field_choice(keys, "activation", activations, COUNT_OF(activations), 0,
                         err) < 0) {
        return TR_USAGE;
    }
    const json_t *sizes = json_object_get(keys->object, "layer_sizes");
    size_t count = json_array_size(sizes);
    if (count < 2 || count > TR_MLP_LAYERS_MAX + 1) {
        return tr_fail(
            err, TR_USAGE,
            "%s: layer_sizes must be a list of 2 to %d sizes, features first "
            "and classes last",
            keys->origin, TR_MLP_LAYERS_MAX + 1);
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *size = json_array_get(sizes, i);
        int64_t value = 0;
        if (!tr__field_whole(size, &value) || value < 1 || value > LARGEST) {
            return tr_fail(err, TR_USAGE,
                           "%s: layer_sizes[%zu] must be a whole number from 1 to %d",
                           keys->origin, i, (int)LARGEST);
        }
        c.size[i] = value;
    }
    c.layers = (int)count - 1;
    return tr__model_mlp(&c, out, err);
}

const tr_architecture tr__architecture_mlp = {.type = "mlp", .from_json = from_json};

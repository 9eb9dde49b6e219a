// Architectures from JSON: "model_type" says which.
#include "models/fields.h"
#include "models/units.h"

#include <stdio.h>
#include <string.h>

enum { LARGEST = 1 << 30 };

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

// ---- gpt2: the keys and defaults of Hugging Face's GPT2Config
// ------------------------

static const char *const gpt2_names[] = {
    "model_type", "n_layer", "n_embd", "n_head", "n_positions", "n_ctx", "vocab_size",
    "n_inner", "activation_function", "layer_norm_epsilon", "initializer_range",
    "resid_pdrop", "embd_pdrop", "attn_pdrop", "tie_word_embeddings",
    "scale_attn_weights", "scale_attn_by_inverse_layer_idx", "add_cross_attention",
    // Without meaning for training one GPT-2:
    "architectures", "torch_dtype", "dtype", "transformers_version", "_name_or_path",
    "gradient_checkpointing"};

// Nor have these, but those who use the trained model read them.
static const char *const gpt2_kept[] = {"bos_token_id",
                                        "eos_token_id",
                                        "pad_token_id",
                                        "use_cache",
                                        "reorder_and_upcast_attn",
                                        "summary_type",
                                        "summary_use_proj",
                                        "summary_activation",
                                        "summary_proj_to_labels",
                                        "summary_first_dropout",
                                        "task_specific_params"};

static tr_status check_gpt2_names(const tr_model_keys *keys, tr_error *err) {
    const char *names[COUNT_OF(gpt2_names) + COUNT_OF(gpt2_kept)];
    memcpy(names, gpt2_names, sizeof gpt2_names);
    memcpy(names + COUNT_OF(gpt2_names), gpt2_kept, sizeof gpt2_kept);
    return tr__fields_known(keys, names, COUNT_OF(names), err);
}

static tr_status check_gpt2(const tr_model_keys *keys, const tr_gpt2_config *c,
                            tr_error *err) {
    if (c->n_embd % c->n_head != 0) {
        return tr_fail(err, TR_USAGE,
                       "%s: n_embd %lld is not a multiple of n_head %lld", keys->origin,
                       (long long)c->n_embd, (long long)c->n_head);
    }
    tr_status status = tr__field_only(keys, "tie_word_embeddings", true, err);
    if (status == TR_OK) {
        status = tr__field_only(keys, "scale_attn_weights", true, err);
    }
    if (status == TR_OK) {
        status = tr__field_only(keys, "scale_attn_by_inverse_layer_idx", false, err);
    }
    return status == TR_OK ? tr__field_only(keys, "add_cross_attention", false, err)
                           : status;
}

static tr_status make_gpt2(const tr_model_keys *keys, const tr_gpt2_config *config,
                           tr_model **out, tr_error *err) {
    tr_model *model = NULL;
    tr_status status = tr__model_gpt2(config, &model, err);
    if (status == TR_OK) {
        status =
            tr__model_keep(model, keys->object, gpt2_kept, COUNT_OF(gpt2_kept), err);
    }
    if (status != TR_OK) {
        tr_model_destroy(model);
        return status;
    }
    *out = model;
    return TR_OK;
}

static tr_status gpt2_from_json(const tr_model_keys *keys, bool strict, tr_model **out,
                                tr_error *err) {
    static const char *const activations[] = {"gelu_new", "gelu", "gelu_pytorch_tanh"};
    tr_gpt2_config c = {.n_layer = 12,
                        .n_embd = 768,
                        .n_head = 12,
                        .n_positions = 1024,
                        .vocab_size = 50257,
                        .layer_norm_epsilon = 1e-5,
                        .initializer_range = 0.02,
                        .resid_pdrop = 0.1,
                        .embd_pdrop = 0.1,
                        .attn_pdrop = 0.1};
    const tr_model_field fields[] = {
        {"n_layer", 1, 10000, &c.n_layer, NULL},
        {"n_embd", 1, LARGEST, &c.n_embd, NULL},
        {"n_head", 1, 65536, &c.n_head, NULL},
        {"n_ctx", 1, LARGEST, &c.n_positions, NULL},
        {"n_positions", 1, LARGEST, &c.n_positions, NULL},
        {"vocab_size", 1, LARGEST, &c.vocab_size, NULL},
        {"n_inner", 1, LARGEST, &c.n_inner, NULL},
        {"layer_norm_epsilon", 0, 1, NULL, &c.layer_norm_epsilon},
        {"initializer_range", 0, 1000, NULL, &c.initializer_range},
        {"resid_pdrop", 0, 0.999, NULL, &c.resid_pdrop},
        {"embd_pdrop", 0, 0.999, NULL, &c.embd_pdrop},
        {"attn_pdrop", 0, 0.999, NULL, &c.attn_pdrop},
    };
    tr_status status = TR_OK;
    if (strict) {
        status = check_gpt2_names(keys, err);
    }
    if (status == TR_OK) {
        status = tr__fields_read(keys, fields, COUNT_OF(fields), err);
    }
    if (status != TR_OK) {
        return status;
    }
    int activation = tr__field_choice(keys, "activation_function", activations,
                                      COUNT_OF(activations), 0, err);
    if (activation < 0) {
        return TR_USAGE;
    }
    c.gelu_tanh = activation != 1;
    c.n_inner = c.n_inner ? c.n_inner : 4 * c.n_embd;
    status = check_gpt2(keys, &c, err);
    return status == TR_OK ? make_gpt2(keys, &c, out, err) : status;
}

// ---- mlp
// -----------------------------------------------------------------------------

static tr_status mlp_from_json(const tr_model_keys *keys, bool strict, tr_model **out,
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

// ---- all
// -----------------------------------------------------------------------------

tr_status tr__model_from_json(const json_t *object, const char *origin, bool strict,
                              tr_model **out, tr_error *err) {
    static const char *const types[] = {"gpt2", "mlp", "resnet"};
    tr_model_keys keys = {object, origin};
    if (!json_is_object(object)) {
        return tr_fail(err, TR_USAGE, "%s: must be an object with a \"model_type\"",
                       origin);
    }
    switch (tr__field_choice(&keys, "model_type", types, COUNT_OF(types), -2, err)) {
    case 0:
        return gpt2_from_json(&keys, strict, out, err);
    case 1:
        return mlp_from_json(&keys, strict, out, err);
    case 2:
        return tr__resnet_from_json(&keys, strict, out, err);
    case -2:
        return tr_fail(err, TR_USAGE,
                       "%s: has no \"model_type\" (\"gpt2\", \"mlp\" or \"resnet\")",
                       origin);
    default:
        return TR_USAGE;
    }
}

// Radford et al. 2019, table 2, as published in Hugging Face's configs.
static const struct {
    const char *name;
    int layers, width, heads;
} presets[] = {
    {"gpt2", 12, 768, 12},
    {"gpt2-medium", 24, 1024, 16},
    {"gpt2-large", 36, 1280, 20},
    {"gpt2-xl", 48, 1600, 25},
};

json_t *tr__model_preset(const char *name) {
    for (size_t i = 0; i < COUNT_OF(presets); i++) {
        if (strcmp(presets[i].name, name) == 0) {
            return json_pack("{s:s, s:i, s:i, s:i}", "model_type", "gpt2", "n_layer",
                             presets[i].layers, "n_embd", presets[i].width, "n_head",
                             presets[i].heads);
        }
    }
    return NULL;
}

size_t tr__model_preset_names(const char *const **names) {
    static const char *const list[] = {"gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl"};
    *names = list;
    return COUNT_OF(list);
}

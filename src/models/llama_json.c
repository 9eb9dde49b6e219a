// The keys and defaults of Hugging Face's LlamaConfig, MistralConfig, Qwen2Config and
// Qwen3Config.
#include "models/llama.h"

#include "models/models.h"
#include "models/rope_json.h"
#include "models/units.h"

#include <string.h>

enum { LARGEST = 1 << 30 };

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

// Keys that all have.
static const char *const common[] = {
    "model_type", "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
    "num_attention_heads", "num_key_value_heads", "head_dim", "hidden_act",
    "max_position_embeddings", "initializer_range", "rms_norm_eps",
    "tie_word_embeddings", "attention_dropout", "rope_theta", "rope_scaling",
    "rope_parameters", "partial_rotary_factor",
    // Without meaning for training one model:
    "architectures", "torch_dtype", "dtype", "transformers_version", "_name_or_path",
    "gradient_checkpointing"};

// Keys without a meaning here, which those who use the trained model read; and those of
// single families, which are read and kept as they are.
static const char *const kept[] = {
    "bos_token_id",     "eos_token_id",       "pad_token_id",      "use_cache",
    "pretraining_tp",   "attention_bias",     "mlp_bias",          "sliding_window",
    "layer_types",      "use_sliding_window", "max_window_layers", "is_llama_config",
    "rope_interleaved", "id2label",           "label2id",          "problem_type",
    "num_labels"};

// Those of the keys above that every family has.
static const char *const for_others[] = {"bos_token_id", "eos_token_id", "pad_token_id",
                                         "use_cache",    "id2label",     "label2id",
                                         "problem_type", "num_labels"};

// Keys of one family, beside those that all have; NULL at the end.
static const char *const llama_keys[] = {"attention_bias",   "mlp_bias",
                                         "pretraining_tp",   "is_llama_config",
                                         "rope_interleaved", NULL};
static const char *const mistral_keys[] = {"sliding_window", "layer_types", NULL};
static const char *const qwen2_keys[] = {
    "sliding_window", "layer_types", "use_sliding_window", "max_window_layers", NULL};
static const char *const qwen3_keys[] = {"sliding_window",     "layer_types",
                                         "use_sliding_window", "max_window_layers",
                                         "attention_bias",     NULL};

static tr_status check_names(const tr_model_keys *keys, const char *const *own,
                             tr_error *err) {
    const char *names[COUNT_OF(common) + COUNT_OF(kept)];
    size_t count = COUNT_OF(common) + COUNT_OF(for_others);
    memcpy(names, common, sizeof common);
    memcpy(names + COUNT_OF(common), for_others, sizeof for_others);
    for (; *own; own++) {
        names[count++] = *own;
    }
    return tr__fields_known(keys, names, count, err);
}

static tr_status check_shape(const tr_model_keys *keys, const tr_llama_config *c,
                             tr_error *err) {
    if (c->head_dim % 2 != 0) {
        return tr_fail(err, TR_USAGE, "%s: head_dim is %lld; it must be even",
                       keys->origin, (long long)c->head_dim);
    }
    if (c->num_attention_heads % c->num_key_value_heads != 0) {
        return tr_fail(err, TR_USAGE,
                       "%s: num_attention_heads %lld is not a multiple of "
                       "num_key_value_heads %lld",
                       keys->origin, (long long)c->num_attention_heads,
                       (long long)c->num_key_value_heads);
    }
    return TR_OK;
}

// What an absent key means where that follows from others.
static tr_status set_defaults(const tr_model_keys *keys, tr_llama_config *c,
                              tr_error *err) {
    if (c->num_key_value_heads == 0) {
        c->num_key_value_heads = c->num_attention_heads;
    }
    if (c->head_dim == 0 && c->hidden_size % c->num_attention_heads != 0) {
        return tr_fail(err, TR_USAGE,
                       "%s: hidden_size %lld is not a multiple of num_attention_heads "
                       "%lld, and there is no head_dim",
                       keys->origin, (long long)c->hidden_size,
                       (long long)c->num_attention_heads);
    }
    if (c->head_dim == 0) {
        c->head_dim = c->hidden_size / c->num_attention_heads;
    }
    return TR_OK;
}

// A key that is true or false; `value` where it is not there.
static tr_status read_bool(const tr_model_keys *keys, const char *name, bool *value,
                           tr_error *err) {
    const json_t *given = json_object_get(keys->object, name);
    if (given && !json_is_null(given) && !json_is_boolean(given)) {
        return tr_fail(err, TR_USAGE, "%s: %s must be true or false", keys->origin,
                       name);
    }
    *value = json_is_boolean(given) ? json_is_true(given) : *value;
    return TR_OK;
}

// transformers makes the embedding with padding_idx = pad_token_id, which counts from
// the end where it is negative.
static tr_status read_padding(const tr_model_keys *keys, tr_llama_config *c,
                              tr_error *err) {
    const json_t *given = json_object_get(keys->object, "pad_token_id");
    int64_t token = -1;
    const tr_model_field field = {"pad_token_id", -LARGEST, LARGEST, &token, NULL};
    tr_status status = tr__fields_read(keys, &field, 1, err);
    token += token < 0 ? c->vocab_size : 0;
    c->padding = given && !json_is_null(given) && token >= 0 ? token + 1 : 0;
    return status;
}

// All that the families have in common, and with `strict` that there are no other keys
// than these and the family's own.
static tr_status read_common(const tr_model_keys *keys, const char *const *own,
                             bool strict, tr_llama_config *c, tr_error *err) {
    static const char *const activations[] = {"silu", "swish"};
    const tr_model_field fields[] = {
        {"vocab_size", 1, LARGEST, &c->vocab_size, NULL},
        {"hidden_size", 1, LARGEST, &c->hidden_size, NULL},
        {"intermediate_size", 1, LARGEST, &c->intermediate_size, NULL},
        {"num_hidden_layers", 1, 10000, &c->num_hidden_layers, NULL},
        {"num_attention_heads", 1, 65536, &c->num_attention_heads, NULL},
        {"num_key_value_heads", 1, 65536, &c->num_key_value_heads, NULL},
        {"head_dim", 1, 65536, &c->head_dim, NULL},
        {"max_position_embeddings", 1, LARGEST, &c->max_position_embeddings, NULL},
        {"rms_norm_eps", 0, 1, NULL, &c->rms_norm_eps},
        {"initializer_range", 0, 1000, NULL, &c->initializer_range},
        {"attention_dropout", 0, 0.999, NULL, &c->attention_dropout},
    };
    tr_status status = strict ? check_names(keys, own, err) : TR_OK;
    if (status == TR_OK) {
        status = tr__fields_read(keys, fields, COUNT_OF(fields), err);
    }
    if (status == TR_OK &&
        tr__field_choice(keys, "hidden_act", activations, 2, 0, err) < 0) {
        status = TR_USAGE;
    }
    status = status == TR_OK ? set_defaults(keys, c, err) : status;
    status = status == TR_OK ? check_shape(keys, c, err) : status;
    status = status == TR_OK ? read_padding(keys, c, err) : status;
    status = status == TR_OK ? read_bool(keys, "tie_word_embeddings", &c->tied, err)
                             : status;
    return status == TR_OK
               ? tr__rope_read(keys, c->max_position_embeddings, &c->rope, err)
               : status;
}

// The kinds of layers, where the keys name each.
static tr_status read_layer_types(const tr_model_keys *keys, tr_model *model,
                                  tr_error *err) {
    static const char *const types[] = {"full_attention", "sliding_attention"};
    const json_t *given = json_object_get(keys->object, "layer_types");
    int layers = model->unit_count - 2;
    if (!given || json_is_null(given)) {
        return TR_OK;
    }
    if (json_array_size(given) != (size_t)layers) {
        return tr_fail(err, TR_USAGE, "%s: layer_types must be a list of %d layers",
                       keys->origin, layers);
    }
    for (int i = 0; i < layers; i++) {
        const char *type = json_string_value(json_array_get(given, (size_t)i));
        bool sliding = type && strcmp(type, types[1]) == 0;
        if (!type || (!sliding && strcmp(type, types[0]) != 0)) {
            return tr_fail(err, TR_USAGE,
                           "%s: layer_types[%d] is \"%.64s\"; supported are \"%s\" and "
                           "\"%s\"",
                           keys->origin, i, type ? type : "(not a text)", types[0],
                           types[1]);
        }
        tr__llama_set_layer(model->owned, i, sliding);
    }
    return TR_OK;
}

static tr_status make(const tr_architecture *family, const tr_model_keys *keys,
                      const tr_llama_config *config, tr_model **out, tr_error *err) {
    tr_model *model = NULL;
    tr_status status = tr__model_llama(family, config, &model, err);
    if (status == TR_OK) {
        status = read_layer_types(keys, model, err);
    }
    if (status != TR_OK) {
        tr_model_destroy(model);
        return status;
    }
    return tr__model_keep(model, keys->object, kept, COUNT_OF(kept), out, err);
}

// One key for all four projections of the attention.
static tr_status read_bias(const tr_model_keys *keys, tr_llama_config *c,
                           tr_error *err) {
    tr_status status = read_bool(keys, "attention_bias", &c->qkv_bias, err);
    c->output_bias = c->qkv_bias;
    return status;
}

// ---- llama

static tr_status llama_from_json(const tr_model_keys *keys, bool strict, tr_model **out,
                                 tr_error *err) {
    tr_llama_config c = {.vocab_size = 32000,
                         .hidden_size = 4096,
                         .intermediate_size = 11008,
                         .num_hidden_layers = 32,
                         .num_attention_heads = 32,
                         .max_position_embeddings = 2048,
                         .rms_norm_eps = 1e-6,
                         .initializer_range = 0.02};
    tr_status status = read_common(keys, llama_keys, strict, &c, err);
    status = status == TR_OK ? read_bias(keys, &c, err) : status;
    status = status == TR_OK ? read_bool(keys, "mlp_bias", &c.mlp_bias, err) : status;
    return status == TR_OK ? make(&tr__architecture_llama, keys, &c, out, err) : status;
}

// ---- windows

// How many keys a query sees, in layers that have a window; null: none has.
static tr_status read_window(const tr_model_keys *keys, int64_t fallback,
                             tr_llama_config *c, tr_error *err) {
    const json_t *given = json_object_get(keys->object, "sliding_window");
    const tr_model_field field = {"sliding_window", 1, LARGEST, &c->window, NULL};
    c->window = json_is_null(given) ? 0 : fallback;
    return tr__fields_read(keys, &field, 1, err);
}

// ---- mistral

static tr_status mistral_from_json(const tr_model_keys *keys, bool strict,
                                   tr_model **out, tr_error *err) {
    tr_llama_config c = {.vocab_size = 32000,
                         .hidden_size = 4096,
                         .intermediate_size = 14336,
                         .num_hidden_layers = 32,
                         .num_attention_heads = 32,
                         .num_key_value_heads = 8,
                         .max_position_embeddings = 4096 * 32,
                         .rms_norm_eps = 1e-6,
                         .initializer_range = 0.02};
    tr_status status = read_common(keys, mistral_keys, strict, &c, err);
    status = status == TR_OK ? read_window(keys, 4096, &c, err) : status;
    return status == TR_OK ? make(&tr__architecture_mistral, keys, &c, out, err)
                           : status;
}

// ---- qwen2

// The window counts only where use_sliding_window says so, from layer max_window_layers
// on.
static tr_status read_switched_window(const tr_model_keys *keys, tr_llama_config *c,
                                      tr_error *err) {
    bool uses = false;
    c->first_windowed = 28;
    const tr_model_field layers = {"max_window_layers", 0, LARGEST, &c->first_windowed,
                                   NULL};
    tr_status status = read_bool(keys, "use_sliding_window", &uses, err);
    status = status == TR_OK ? tr__fields_read(keys, &layers, 1, err) : status;
    status = status == TR_OK ? read_window(keys, 4096, c, err) : status;
    c->window = uses ? c->window : 0;
    return status;
}

static tr_status qwen2_from_json(const tr_model_keys *keys, bool strict, tr_model **out,
                                 tr_error *err) {
    tr_llama_config c = {.vocab_size = 151936,
                         .hidden_size = 4096,
                         .intermediate_size = 22016,
                         .num_hidden_layers = 32,
                         .num_attention_heads = 32,
                         .num_key_value_heads = 32,
                         .max_position_embeddings = 32768,
                         .rms_norm_eps = 1e-6,
                         .initializer_range = 0.02,
                         .qkv_bias = true};
    tr_status status = read_common(keys, qwen2_keys, strict, &c, err);
    status = status == TR_OK ? read_switched_window(keys, &c, err) : status;
    return status == TR_OK ? make(&tr__architecture_qwen2, keys, &c, out, err) : status;
}

// ---- qwen3

static tr_status qwen3_from_json(const tr_model_keys *keys, bool strict, tr_model **out,
                                 tr_error *err) {
    tr_llama_config c = {.vocab_size = 151936,
                         .hidden_size = 4096,
                         .intermediate_size = 22016,
                         .num_hidden_layers = 32,
                         .num_attention_heads = 32,
                         .num_key_value_heads = 32,
                         .head_dim = 128,
                         .max_position_embeddings = 32768,
                         .rms_norm_eps = 1e-6,
                         .initializer_range = 0.02,
                         .head_norm = true};
    tr_status status = read_common(keys, qwen3_keys, strict, &c, err);
    status = status == TR_OK ? read_bias(keys, &c, err) : status;
    status = status == TR_OK ? read_switched_window(keys, &c, err) : status;
    return status == TR_OK ? make(&tr__architecture_qwen3, keys, &c, out, err) : status;
}

// ---- the architectures

static int64_t *vocabulary(void *config) {
    return &((tr_llama_config *)config)->vocab_size;
}

static int64_t positions(const void *config) {
    return ((const tr_llama_config *)config)->max_position_embeddings;
}

static int *slices(void *config) {
    return &((tr_llama_config *)config)->vocabulary_slices;
}

static const tr_dropout_key dropout[] = {{"attention_dropout", "attention"},
                                         {NULL, NULL}};

static const tr_token_model tokens = {
    .vocabulary = vocabulary,
    .positions = positions,
    .slices = slices,
    .tensors = tr__llama_token_tensors,
};

static int64_t width(const void *config) {
    return ((const tr_llama_config *)config)->hidden_size;
}

static tr_task_settings *task(void *config) {
    return &((tr_llama_config *)config)->task;
}

static const char *const heads[] = {"score.", "logit_scale", NULL};

#define TEXTS(name)                                                                    \
    {                                                                                  \
        .classes = (name), .width = width, .task = task,                               \
        .set_units = tr__llama_set_units, .heads = heads                               \
    }
static const tr_text_model llama_texts = TEXTS("Llama"),
                           mistral_texts = TEXTS("Mistral"),
                           qwen2_texts = TEXTS("Qwen2"), qwen3_texts = TEXTS("Qwen3");

const tr_architecture tr__architecture_llama = {.type = "llama",
                                                .from_json = llama_from_json,
                                                .tokens = &tokens,
                                                .texts = &llama_texts,
                                                .dropout = dropout,
                                                .hugging_face = "LlamaForCausalLM"};
const tr_architecture tr__architecture_mistral = {.type = "mistral",
                                                  .from_json = mistral_from_json,
                                                  .tokens = &tokens,
                                                  .texts = &mistral_texts,
                                                  .dropout = dropout,
                                                  .hugging_face = "MistralForCausalLM"};
const tr_architecture tr__architecture_qwen2 = {.type = "qwen2",
                                                .from_json = qwen2_from_json,
                                                .tokens = &tokens,
                                                .texts = &qwen2_texts,
                                                .dropout = dropout,
                                                .hugging_face = "Qwen2ForCausalLM"};
const tr_architecture tr__architecture_qwen3 = {.type = "qwen3",
                                                .from_json = qwen3_from_json,
                                                .tokens = &tokens,
                                                .texts = &qwen3_texts,
                                                .dropout = dropout,
                                                .hugging_face = "Qwen3ForCausalLM"};

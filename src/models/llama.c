#include "models/llama.h"

#include "base/checked.h"
#include "models/models.h"
#include "models/rope_json.h"
#include "models/units.h"
#include "models/vocabulary.h"

#include <stdio.h>
#include <string.h>

enum {
    LARGEST = 1 << 30,
    CONTEXT = 2048, // positions of a sample at most, where nobody says how many
};

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

#define EMBEDDING "model.embed_tokens.weight"

static const tr_init zeros = {TR_INIT_CONSTANT, 0, 0};
static const tr_init ones = {TR_INIT_CONSTANT, 1, 0};

// ---- the units

static tr_vocabulary_tensors vocabulary_of(const tr_llama_config *c) {
    return (tr_vocabulary_tensors){.embedding = EMBEDDING,
                                   .output = "lm_head.weight",
                                   .tied = c->tied,
                                   .tokens = c->vocab_size,
                                   .width = c->hidden_size,
                                   .slices = c->vocabulary_slices,
                                   .init = tr__init_normal(c->initializer_range)};
}

// ids: [B, S] -> [B, S, C]
static void build_embedding(tr_graph *g, const void *config) {
    tr_vocabulary_tensors v = vocabulary_of(config);
    tr_value ids = tr_graph_data(g, "input_ids");
    tr_value tokens = tr__vocabulary_first(g, &v);
    tr_value x = tr_embedding(g, ids, tokens, TR_NO_VALUE);
    tr_graph_output(g, tr__vocabulary_rest(g, &v, ids, x));
}

static tr_value norm(tr_graph *g, const tr_llama_config *c, const char *name,
                     tr_value x) {
    tr_value weight = tr_graph_param(g, name, TR_SHAPE1(c->hidden_size), ones);
    return tr_rms_norm(g, x, weight, (float)c->rms_norm_eps);
}

// x [B, S, in] -> [B, S, out]
static tr_value project(tr_graph *g, const tr_llama_config *c, const char *name,
                        bool biased, tr_value x, int64_t in, int64_t out) {
    char weight[64], bias[64];
    snprintf(weight, sizeof weight, "%s.weight", name);
    snprintf(bias, sizeof bias, "%s.bias", name);
    tr_value w = tr_graph_param(g, weight, TR_SHAPE2(out, in),
                                tr__init_normal(c->initializer_range));
    tr_value b = biased ? tr_graph_param(g, bias, TR_SHAPE1(out), zeros) : TR_NO_VALUE;
    return tr_linear(g, TR_LINEAR_OUT_IN, x, w, b);
}

// Queries, keys and values by one product: x [B, S, C] -> [B, S, (heads + 2 kv) D].
static tr_value project_qkv(tr_graph *g, const tr_llama_config *c, tr_value x) {
    int64_t q = c->num_attention_heads * c->head_dim;
    int64_t kv = c->num_key_value_heads * c->head_dim;
    const tr_param_rows weights[] = {{"self_attn.q_proj.weight", q},
                                     {"self_attn.k_proj.weight", kv},
                                     {"self_attn.v_proj.weight", kv}};
    const tr_param_rows biases[] = {{"self_attn.q_proj.bias", q},
                                    {"self_attn.k_proj.bias", kv},
                                    {"self_attn.v_proj.bias", kv}};
    tr_shape shape = TR_SHAPE2(q + 2 * kv, c->hidden_size);
    tr_init draw = tr__init_normal(c->initializer_range);
    tr_value w = tr_graph_stacked(g, weights, 3, shape, draw), b = TR_NO_VALUE;
    if (c->qkv_bias) {
        b = tr_graph_stacked(g, biases, 3, TR_SHAPE1(q + 2 * kv), zeros);
    }
    return tr_linear(g, TR_LINEAR_OUT_IN, x, w, b);
}

static tr_value norm_heads(tr_graph *g, const tr_llama_config *c, tr_value qkv) {
    int D = (int)c->head_dim;
    const tr_param_rows weights[] = {{"self_attn.q_norm.weight", D},
                                     {"self_attn.k_norm.weight", D}};
    tr_value w = tr_graph_stacked(g, weights, 2, TR_SHAPE1(2 * D), ones);
    return tr_head_norm(g, qkv, w, D, (int)c->num_attention_heads,
                        (int)c->num_key_value_heads, (float)c->rms_norm_eps);
}

static tr_value attention(tr_graph *g, const tr_llama_config *c, int64_t window,
                          tr_value x) {
    int heads = (int)c->num_attention_heads, kv = (int)c->num_key_value_heads;
    tr_rope_options rope = c->rope;
    rope.heads = heads + kv;
    rope.head_dim = (int)c->head_dim;
    tr_value qkv = project_qkv(g, c, x);
    if (c->head_norm) {
        qkv = norm_heads(g, c, qkv);
    }
    qkv = tr_rope(g, qkv, &rope);
    tr_value y = tr_grouped_attention(g, qkv, heads, kv, (int)window,
                                      (float)c->attention_dropout);
    return project(g, c, "self_attn.o_proj", c->output_bias, y, heads * c->head_dim,
                   c->hidden_size);
}

// The gate and the values that it opens to, by one product.
static tr_value mlp(tr_graph *g, const tr_llama_config *c, tr_value x) {
    int64_t I = c->intermediate_size;
    const tr_param_rows weights[] = {{"mlp.gate_proj.weight", I},
                                     {"mlp.up_proj.weight", I}};
    const tr_param_rows biases[] = {{"mlp.gate_proj.bias", I}, {"mlp.up_proj.bias", I}};
    tr_value w = tr_graph_stacked(g, weights, 2, TR_SHAPE2(2 * I, c->hidden_size),
                                  tr__init_normal(c->initializer_range));
    tr_value b = c->mlp_bias ? tr_graph_stacked(g, biases, 2, TR_SHAPE1(2 * I), zeros)
                             : TR_NO_VALUE;
    tr_value h = tr_swiglu(g, tr_linear(g, TR_LINEAR_OUT_IN, x, w, b));
    return project(g, c, "mlp.down_proj", c->mlp_bias, h, I, c->hidden_size);
}

static void build_layer(tr_graph *g, const tr_llama_config *c, int64_t window) {
    tr_value x = tr_graph_input(g, 0); // [B, S, C]
    x = tr_residual(
        g, x, attention(g, c, window, norm(g, c, "input_layernorm.weight", x)), 0);
    tr_value n = norm(g, c, "post_attention_layernorm.weight", x);
    tr_graph_output(g, tr_residual(g, x, mlp(g, c, n), 0));
}

static void build_block(tr_graph *g, const void *config) {
    build_layer(g, config, 0);
}

static void build_windowed_block(tr_graph *g, const void *config) {
    build_layer(g, config, ((const tr_llama_config *)config)->window);
}

static void build_head(tr_graph *g, const void *config) {
    const tr_llama_config *c = config;
    tr_vocabulary_tensors v = vocabulary_of(c);
    tr_value x = tr_graph_input(g, 0); // [B, S, C]
    tr__vocabulary_head(g, &v, norm(g, c, "model.norm.weight", x));
}

// ---- the model

static json_t *to_json(const char *type, const tr_llama_config *c) {
    json_t *json = json_pack(
        "{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:f, s:f, s:f, s:b}",
        "model_type", type, "vocab_size", (json_int_t)c->vocab_size, "hidden_size",
        (json_int_t)c->hidden_size, "intermediate_size",
        (json_int_t)c->intermediate_size, "num_hidden_layers",
        (json_int_t)c->num_hidden_layers, "num_attention_heads",
        (json_int_t)c->num_attention_heads, "num_key_value_heads",
        (json_int_t)c->num_key_value_heads, "head_dim", (json_int_t)c->head_dim,
        "max_position_embeddings", (json_int_t)c->max_position_embeddings, "hidden_act",
        "silu", "rms_norm_eps", c->rms_norm_eps, "initializer_range",
        c->initializer_range, "attention_dropout", c->attention_dropout,
        "tie_word_embeddings", (int)c->tied);
    if (json && !tr__rope_write(&c->rope, json)) {
        json_decref(json);
        return NULL;
    }
    return json;
}

static void set_layer(tr_units *own, int i, bool windowed) {
    const tr_llama_config *c = own->config;
    char name[32], prefix[48];
    windowed = windowed && c->window > 0;
    snprintf(name, sizeof name, "layers.%d", i);
    snprintf(prefix, sizeof prefix, "model.layers.%d.", i);
    tr__units_set(own, i + 1,
                  (tr_model_unit){name, windowed ? "windowed block" : "block", prefix,
                                  windowed ? build_windowed_block : build_block, c});
}

tr_status tr__model_llama(const tr_architecture *family, const tr_llama_config *config,
                          tr_model **out, tr_error *err) {
    int layers = (int)config->num_hidden_layers;
    tr_units *own = tr__units_create(family, layers + 2, config, sizeof *config);
    if (!own) {
        return tr_fail(err, TR_MEMORY, "no memory for a model's units");
    }
    const tr_llama_config *c = own->config;
    tr__units_set(own, 0,
                  (tr_model_unit){"embedding", "embedding", "", build_embedding, c});
    for (int i = 0; i < layers; i++) {
        set_layer(own, i, i >= c->first_windowed);
    }
    tr__units_set(own, layers + 1, (tr_model_unit){"head", "head", "", build_head, c});
    own->model.batch =
        tr_batch_tokens(tr__min_i64(c->max_position_embeddings, CONTEXT));
    own->model.classes = c->vocab_size;
    return tr__units_finish(own, to_json(family->type, c), out, err);
}

// ---- the keys and defaults of Hugging Face's LlamaConfig, MistralConfig, Qwen2Config
// and Qwen3Config

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
    "bos_token_id",    "eos_token_id",       "pad_token_id",      "use_cache",
    "pretraining_tp",  "attention_bias",     "mlp_bias",          "sliding_window",
    "layer_types",     "use_sliding_window", "max_window_layers", "is_llama_config",
    "rope_interleaved"};

// Those of the keys above that every family has.
static const char *const for_others[] = {"bos_token_id", "eos_token_id", "pad_token_id",
                                         "use_cache"};

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
        set_layer(model->owned, i, sliding);
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
    if (status == TR_OK) {
        status = tr__model_keep(model, keys->object, kept, COUNT_OF(kept), err);
    }
    if (status != TR_OK) {
        tr_model_destroy(model);
        return status;
    }
    *out = model;
    return TR_OK;
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

static const char *const token_tensors[] = {EMBEDDING, "lm_head.weight", NULL};

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
    .tensors = token_tensors,
};

const tr_architecture tr__architecture_llama = {.type = "llama",
                                                .from_json = llama_from_json,
                                                .tokens = &tokens,
                                                .dropout = dropout,
                                                .hugging_face = "LlamaForCausalLM"};
const tr_architecture tr__architecture_mistral = {.type = "mistral",
                                                  .from_json = mistral_from_json,
                                                  .tokens = &tokens,
                                                  .dropout = dropout,
                                                  .hugging_face = "MistralForCausalLM"};
const tr_architecture tr__architecture_qwen2 = {.type = "qwen2",
                                                .from_json = qwen2_from_json,
                                                .tokens = &tokens,
                                                .dropout = dropout,
                                                .hugging_face = "Qwen2ForCausalLM"};
const tr_architecture tr__architecture_qwen3 = {.type = "qwen3",
                                                .from_json = qwen3_from_json,
                                                .tokens = &tokens,
                                                .dropout = dropout,
                                                .hugging_face = "Qwen3ForCausalLM"};

// The units of Llama and its kin: embedding, blocks, head.
#include "models/llama.h"

#include "base/checked.h"
#include "models/label_head.h"
#include "models/rope_json.h"
#include "models/units.h"
#include "models/vocabulary.h"

#include <stdio.h>
#include <string.h>

enum { CONTEXT = 2048 }; // positions of a sample at most, where nobody says how many

enum { EMBEDDING, OUTPUT };
const char *const tr__llama_token_tensors[] = {
    [EMBEDDING] = "model.embed_tokens.weight", [OUTPUT] = "lm_head.weight", NULL};

static const tr_init zeros = {TR_INIT_CONSTANT, 0, 0};
static const tr_init ones = {TR_INIT_CONSTANT, 1, 0};

// ---- the units

static tr_vocabulary_tensors vocabulary_of(const tr_llama_config *c) {
    return (tr_vocabulary_tensors){.embedding = tr__llama_token_tensors[EMBEDDING],
                                   .output = tr__llama_token_tensors[OUTPUT],
                                   .tied = c->tied,
                                   .tokens = c->vocab_size,
                                   .width = c->hidden_size,
                                   .slices = c->vocabulary_slices,
                                   .padding = c->padding,
                                   .init = tr__init_normal(c->initializer_range)};
}

// ids: [B, S] -> [B, S, C]
static void build_embedding(tr_graph *g, const void *config) {
    tr_vocabulary_tensors v = vocabulary_of(config);
    tr_value ids = tr_graph_data(g, "input_ids");
    tr_value tokens = tr__vocabulary_first(g, &v);
    tr_value x =
        tr_embedding_padded(g, ids, tokens, 0, v.padding - 1, TR_NO_VALUE, TR_NO_VALUE);
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
    rope.kv_heads = kv;
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

static void build_text_head(tr_graph *g, const void *config) {
    const tr_llama_config *c = config;
    tr_value x = norm(g, c, "model.norm.weight", tr_graph_input(g, 0));
    tr__text_head(g, &c->task, x, tr__init_normal(c->initializer_range));
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

void tr__llama_set_layer(tr_units *own, int i, bool windowed) {
    const tr_llama_config *c = own->config;
    char name[32], prefix[48];
    windowed = windowed && c->window > 0;
    snprintf(name, sizeof name, "layers.%d", i);
    snprintf(prefix, sizeof prefix, "model.layers.%d.", i);
    tr__units_set(own, i + 1,
                  (tr_model_unit){name, windowed ? "windowed block" : "block", prefix,
                                  windowed ? build_windowed_block : build_block, c});
}

void tr__llama_set_units(tr_units *own) {
    const tr_llama_config *c = own->config;
    bool texts = c->task.task != TR_TASK_CAUSAL_LM;
    tr__units_set(
        own, (int)c->num_hidden_layers + 1,
        (tr_model_unit){"head", "head", "", texts ? build_text_head : build_head, c});
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
        tr__llama_set_layer(own, i, i >= c->first_windowed);
    }
    tr__llama_set_units(own);
    own->model.batch =
        tr_batch_tokens(tr__min_i64(c->max_position_embeddings, CONTEXT));
    own->model.classes = c->vocab_size;
    return tr__units_finish(own, to_json(family->type, c), out, err);
}

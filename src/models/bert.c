// The units of BERT and RoBERTa: embeddings, blocks that normalize behind each branch,
// and the head of the task.
#include "models/bert.h"

#include "models/units.h"

#include <stdio.h>

const char *const tr__bert_token_tensors[] = {"embeddings.word_embeddings.weight",
                                              NULL};

static const tr_init zeros = {TR_INIT_CONSTANT, 0, 0};
static const tr_init ones = {TR_INIT_CONSTANT, 1, 0};

// A table of `rows` embeddings.
static tr_value table(tr_graph *g, const tr_bert_config *c, const char *name,
                      int64_t rows) {
    return tr_graph_param(g, name, TR_SHAPE2(rows, c->hidden_size),
                          tr__init_normal(c->initializer_range));
}

// x [..., in] -> [..., out]
static tr_value project(tr_graph *g, const tr_bert_config *c, const char *name,
                        tr_value x, int64_t in, int64_t out) {
    char weight[64], bias[64];
    snprintf(weight, sizeof weight, "%s.weight", name);
    snprintf(bias, sizeof bias, "%s.bias", name);
    tr_value w = tr_graph_param(g, weight, TR_SHAPE2(out, in),
                                tr__init_normal(c->initializer_range));
    tr_value b = tr_graph_param(g, bias, TR_SHAPE1(out), zeros);
    return tr_linear(g, TR_LINEAR_OUT_IN, x, w, b);
}

typedef struct norm_params {
    tr_value weight, bias;
} norm_params;

static norm_params norm_of(tr_graph *g, const tr_bert_config *c, const char *name) {
    char weight[64], bias[64];
    snprintf(weight, sizeof weight, "%s.weight", name);
    snprintf(bias, sizeof bias, "%s.bias", name);
    tr_value w = tr_graph_param(g, weight, TR_SHAPE1(c->hidden_size), ones);
    return (norm_params){w, tr_graph_param(g, bias, TR_SHAPE1(c->hidden_size), zeros)};
}

// Words, types and positions: ids [B, S] -> [B, S, C]
static void build_embedding(tr_graph *g, const void *config) {
    const tr_bert_config *c = config;
    tr_value ids = tr_graph_data(g, "input_ids");
    tr_value types = tr_graph_data(g, "token_type_ids");
    tr_value places = tr_graph_data(g, "position_ids");
    tr_value words = table(g, c, "embeddings.word_embeddings.weight", c->vocab_size);
    tr_value at = table(g, c, "embeddings.position_embeddings.weight",
                        c->max_position_embeddings);
    tr_value kinds =
        table(g, c, "embeddings.token_type_embeddings.weight", c->type_vocab_size);
    norm_params norm = norm_of(g, c, "embeddings.LayerNorm");
    tr_value x = tr_embedding(g, ids, words, TR_NO_VALUE);
    x = tr_embedding_slice(g, types, kinds, 0, TR_NO_VALUE, x);
    x = tr_embedding_slice(g, places, at, -c->first_position, TR_NO_VALUE, x);
    x = tr_layer_norm(g, x, norm.weight, norm.bias, (float)c->layer_norm_eps);
    tr_graph_output(g, tr_dropout(g, x, (float)c->hidden_dropout_prob));
}

// Queries, keys and values by one product: x [B, S, C] -> [B, S, 3 C].
static tr_value project_qkv(tr_graph *g, const tr_bert_config *c, tr_value x) {
    int64_t C = c->hidden_size;
    const tr_param_rows weights[] = {{"attention.self.query.weight", C},
                                     {"attention.self.key.weight", C},
                                     {"attention.self.value.weight", C}};
    const tr_param_rows biases[] = {{"attention.self.query.bias", C},
                                    {"attention.self.key.bias", C},
                                    {"attention.self.value.bias", C}};
    tr_value w = tr_graph_stacked(g, weights, 3, TR_SHAPE2(3 * C, C),
                                  tr__init_normal(c->initializer_range));
    tr_value b = tr_graph_stacked(g, biases, 3, TR_SHAPE1(3 * C), zeros);
    return tr_linear(g, TR_LINEAR_OUT_IN, x, w, b);
}

// The norm of x + dropout(branch).
static tr_value add_and_norm(tr_graph *g, const tr_bert_config *c, const char *name,
                             tr_value x, tr_value branch) {
    tr_value normalized;
    norm_params norm = norm_of(g, c, name);
    tr_residual_norm(g, x, branch, (float)c->hidden_dropout_prob, norm.weight,
                     norm.bias, (float)c->layer_norm_eps, &normalized);
    return normalized;
}

static void build_block(tr_graph *g, const void *config) {
    const tr_bert_config *c = config;
    int64_t C = c->hidden_size, I = c->intermediate_size;
    int heads = (int)c->num_attention_heads;
    tr_value x = tr_graph_input(g, 0); // [B, S, C]
    tr_value a = tr_bidirectional_attention(g, project_qkv(g, c, x), heads, heads,
                                            (float)c->attention_probs_dropout_prob);
    a = project(g, c, "attention.output.dense", a, C, C);
    x = add_and_norm(g, c, "attention.output.LayerNorm", x, a);
    tr_value h = project(g, c, "intermediate.dense", x, C, I);
    h = project(g, c, "output.dense", tr_gelu(g, h, c->gelu_tanh), I, C);
    tr_graph_output(g, add_and_norm(g, c, "output.LayerNorm", x, h));
}

// A row for each text of the labels: x [B, S, C], labels [B, texts].
static void build_embeddings_head(tr_graph *g, const void *config) {
    const tr_bert_config *c = config;
    tr_value x = tr_graph_input(g, 0);
    tr_value labels = tr_graph_data(g, "labels");
    int texts = (int)tr_graph_desc(g, labels).shape.dim[1];
    tr_value pooled = tr_text_pool(g, x, c->embedding.pooling, texts);
    tr_contrastive(g, pooled, labels, c->embedding.normalize);
}

tr_status tr__model_bert(const tr_architecture *type, const tr_bert_config *config,
                         json_t *json, tr_model **out, tr_error *err) {
    int layers = (int)config->num_hidden_layers;
    tr_units *own = tr__units_create(type, layers + 2, config, sizeof *config);
    if (!own) {
        json_decref(json);
        return tr_fail(err, TR_MEMORY, "no memory for a model's units");
    }
    const tr_bert_config *c = own->config;
    tr__units_set(own, 0,
                  (tr_model_unit){"embedding", "embedding", "", build_embedding, c});
    for (int i = 0; i < layers; i++) {
        char name[32], prefix[48];
        snprintf(name, sizeof name, "layer.%d", i);
        snprintf(prefix, sizeof prefix, "encoder.layer.%d.", i);
        tr__units_set(own, i + 1,
                      (tr_model_unit){name, "block", prefix, build_block, c});
    }
    tr__units_set(own, layers + 1,
                  (tr_model_unit){"head", "head", "", build_embeddings_head, c});
    own->model.batch =
        tr_batch_texts(c->max_position_embeddings - c->first_position, 1);
    own->model.classes = c->vocab_size;
    own->model.embedding_width = c->hidden_size;
    return tr__units_finish(own, json, out, err);
}

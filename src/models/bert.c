// The units of BERT and RoBERTa: embeddings, blocks that normalize behind each branch,
// and the head of the task.
#include "models/bert.h"

#include "base/batch.h"
#include "graph/graph.h"
#include "models/label_head.h"
#include "models/units.h"

#include <stdio.h>

#define WORDS        "embeddings.word_embeddings.weight"
#define BERT_BIAS    "cls.predictions.bias"
#define ROBERTA_BIAS "lm_head.bias"
#define POOLER       "bert.pooler.dense"

const char *const tr__bert_token_tensors[] = {
    WORDS, "bert." WORDS, "roberta." WORDS, BERT_BIAS, ROBERTA_BIAS, NULL};

const char *const tr__bert_heads[] = {"bert.pooler.", "classifier.", "cls.",
                                      "lm_head.",     "logit_scale", NULL};

static const tr_init zeros = {TR_INIT_CONSTANT, 0, 0};
static const tr_init ones = {TR_INIT_CONSTANT, 1, 0};

// A table of `rows` embeddings.
static tr_value table(tr_graph *g, const tr_bert_config *c, const char *name,
                      int64_t rows) {
    return tr_graph_param(g, name, TR_SHAPE2(rows, c->hidden_size),
                          tr__init_normal(c->initializer_range));
}

// That of words, which the head of a masked model uses, too.
static tr_value word_table(tr_graph *g, const tr_bert_config *c) {
    if (c->task.task != TR_TASK_MASKED_LM) {
        return table(g, c, WORDS, c->vocab_size);
    }
    return tr_graph_shared(g, c->pooler ? "bert." WORDS : "roberta." WORDS,
                           TR_SHAPE2(c->vocab_size, c->hidden_size),
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
    tr_value words = word_table(g, c);
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

// A row for each text of the labels: x [B, S, C], labels [B, texts, ...].
static tr_value pool(tr_graph *g, tr_text_pooling kind, tr_value labels) {
    int texts = (int)tr_graph_desc(g, labels).shape.dim[1];
    return tr_text_pool(g, tr_graph_input(g, 0), kind, texts);
}

static void build_embeddings_head(tr_graph *g, const void *config) {
    const tr_bert_config *c = config;
    tr_value labels = tr_graph_data(g, "labels");
    tr_value pooled = pool(g, c->task.embedding.pooling, labels);
    tr__embedding_head(g, &c->task, pooled, labels);
}

// BERT: the pooler, and a product. RoBERTa: as much, with dropout before it, too.
static void build_classifier(tr_graph *g, const void *config) {
    const tr_bert_config *c = config;
    int64_t C = c->hidden_size;
    float drop = (float)(c->classifier_dropout < 0 ? c->hidden_dropout_prob
                                                   : c->classifier_dropout);
    tr_value labels = tr_graph_data(g, "labels");
    tr_value x = pool(g, TR_TEXT_CLS, labels);
    x = c->pooler ? x : tr_dropout(g, x, drop);
    x = project(g, c, c->pooler ? POOLER : "classifier.dense", x, C, C);
    x = tr_dropout(g, tr_tanh(g, x), drop);
    const tr_label_head head = {c->pooler ? "classifier" : "classifier.out_proj", true,
                                C, tr__init_normal(c->initializer_range)};
    tr__label_head(g, &head, &c->task.labels, x, labels);
}

// Does the second span follow the first? By the pooler, as BertForPreTraining does it.
static void build_next_sentence(tr_graph *g, const tr_bert_config *c) {
    int64_t C = c->hidden_size;
    tr_value labels = tr_graph_data(g, "next_sentence_label");
    tr_value x = pool(g, TR_TEXT_CLS, labels);
    x = tr_tanh(g, project(g, c, POOLER, x, C, C));
    x = project(g, c, "cls.seq_relationship", x, C, 2);
    tr__graph_auxiliary_loss(g, x, labels, tr_graph_data(g, TR_LOSS_WEIGHTS));
}

// A dense layer, and the embedding as the output projection.
static void build_words(tr_graph *g, const void *config) {
    const tr_bert_config *c = config;
    int64_t C = c->hidden_size;
    bool bert = c->pooler;
    tr_value x = tr_graph_input(g, 0);
    x = project(g, c, bert ? "cls.predictions.transform.dense" : "lm_head.dense", x, C,
                C);
    // RoBERTa's is always gelu.
    x = tr_gelu(g, x, bert && c->gelu_tanh);
    norm_params norm = norm_of(
        g, c, bert ? "cls.predictions.transform.LayerNorm" : "lm_head.layer_norm");
    x = tr_layer_norm(g, x, norm.weight, norm.bias, (float)c->layer_norm_eps);
    tr_value words = word_table(g, c);
    tr_value bias = tr_graph_param(g, bert ? BERT_BIAS : ROBERTA_BIAS,
                                   TR_SHAPE1(c->vocab_size), zeros);
    if (c->task.next_sentence) {
        build_next_sentence(g, c);
    }
    tr__graph_head(g, TR_LINEAR_OUT_IN,
                   (tr_value[]){x, words, bias, tr_graph_data(g, "labels")},
                   c->task.masked);
}

// Classes with a head have the names of the bare model behind "bert.".
static void set_units(tr_units *own, const tr_bert_config *c) {
    int layers = (int)c->num_hidden_layers;
    bool bare = c->task.task == TR_TASK_CONTRASTIVE;
    const char *before = bare ? "" : c->pooler ? "bert." : "roberta.";
    tr__units_set(
        own, 0, (tr_model_unit){"embedding", "embedding", before, build_embedding, c});
    for (int i = 0; i < layers; i++) {
        char name[32], prefix[48];
        snprintf(name, sizeof name, "layer.%d", i);
        snprintf(prefix, sizeof prefix, "%sencoder.layer.%d.", before, i);
        tr__units_set(own, i + 1,
                      (tr_model_unit){name, "block", prefix, build_block, c});
    }
    tr__units_set(own, layers + 1,
                  (tr_model_unit){"head", "head", "",
                                  bare ? build_embeddings_head
                                  : c->task.task == TR_TASK_CLASSIFICATION
                                      ? build_classifier
                                      : build_words,
                                  c});
}

void tr__bert_set_units(tr_units *own) {
    set_units(own, own->config);
}

tr_status tr__model_bert(const tr_architecture *type, const tr_bert_config *config,
                         json_t *json, tr_model **out, tr_error *err) {
    int layers = (int)config->num_hidden_layers;
    tr_units *own = tr__units_create(type, layers + 2, config, sizeof *config);
    if (!own) {
        json_decref(json);
        return tr_fail(err, TR_MEMORY, "no memory for a model's units");
    }
    set_units(own, own->config);
    own->model.batch =
        tr_batch_texts(config->max_position_embeddings - config->first_position, 1);
    own->model.classes = config->vocab_size;
    return tr__units_finish(own, json, out, err);
}

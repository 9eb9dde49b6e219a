// BERT (Devlin et al., arXiv 1810.04805) and RoBERTa (Liu et al., arXiv 1907.11692).
#ifndef TR_MODELS_BERT_H
#define TR_MODELS_BERT_H

#include "models/architecture.h"

typedef struct tr_bert_config {
    int64_t vocab_size, hidden_size, num_hidden_layers, num_attention_heads;
    int64_t intermediate_size, max_position_embeddings, type_vocab_size;
    double layer_norm_eps, initializer_range;
    double hidden_dropout_prob, attention_probs_dropout_prob;
    double classifier_dropout; // below 0: hidden_dropout_prob
    bool gelu_tanh;
    int64_t first_position; // the row of the table that a text's first token takes
    bool pooler;            // RoBERTa's classes for texts have none
    tr_task_settings task;
} tr_bert_config;

extern const char *const tr__bert_token_tensors[];
// What the files of a class for another task may lack, NULL at the end: see
// tr_token_model.
extern const char *const tr__bert_heads[];

struct tr_units; // models/units.h
// The units of a model whose config has another task now.
void tr__bert_set_units(struct tr_units *own);

// json: the keys of config.json, taken over. The units are those of `type`.
tr_status tr__model_bert(const tr_architecture *type, const tr_bert_config *config,
                         json_t *json, tr_model **out, tr_error *err);

#endif

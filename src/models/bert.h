// BERT (Devlin et al., arXiv 1810.04805) and RoBERTa (Liu et al., arXiv 1907.11692).
#ifndef TR_MODELS_BERT_H
#define TR_MODELS_BERT_H

#include "models/architecture.h"

typedef struct tr_bert_config {
    int64_t vocab_size, hidden_size, num_hidden_layers, num_attention_heads;
    int64_t intermediate_size, max_position_embeddings, type_vocab_size;
    double layer_norm_eps, initializer_range;
    double hidden_dropout_prob, attention_probs_dropout_prob;
    bool gelu_tanh;
    int64_t first_position; // the row of the table that a text's first token takes
    tr_model_task task;
    tr_embedding_way embedding;
} tr_bert_config;

extern const char *const tr__bert_token_tensors[];

// json: the keys of config.json, taken over. The units are those of `type`.
tr_status tr__model_bert(const tr_architecture *type, const tr_bert_config *config,
                         json_t *json, tr_model **out, tr_error *err);

#endif

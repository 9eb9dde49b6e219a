// Llama (Touvron et al., arXiv 2302.13971; Grattafiori et al., arXiv 2407.21783) and
// its kin, in the parameter names and layouts of Hugging Face: Mistral (Jiang et al.,
// arXiv 2310.06825) with its sliding window, Qwen2 (Yang et al., arXiv 2407.10671) with
// biases on queries, keys and values, Qwen3 (Yang et al., arXiv 2505.09388) with norms
// on the heads of queries and keys.
#ifndef TR_MODELS_LLAMA_H
#define TR_MODELS_LLAMA_H

#include "models/architecture.h"

typedef struct tr_llama_config {
    int64_t num_hidden_layers, hidden_size, intermediate_size, vocab_size;
    int64_t padding; // 1 + the token whose look-ups train no row (padding_idx); 0: none
    int64_t num_attention_heads, num_key_value_heads, head_dim;
    int64_t max_position_embeddings;
    int64_t window; // keys that a query sees in the layers that have one; 0: none has
    int64_t first_windowed; // the layer from which they have
    double rms_norm_eps, initializer_range, attention_dropout;
    bool qkv_bias, output_bias, mlp_bias;
    bool head_norm;       // queries and keys are normalized, head by head
    bool tied;            // the token embedding is also the output projection
    tr_rope_options rope; // but for the heads
    int vocabulary_slices;
    tr_task_settings task;
} tr_llama_config;

// From an architecture's own numbers. The caller destroys the model.
tr_status tr__model_llama(const tr_architecture *family, const tr_llama_config *config,
                          tr_model **out, tr_error *err);

struct tr_units; // models/units.h
// Makes layer i of such a model one of those with a window, where the model has any, or
// one without.
void tr__llama_set_layer(struct tr_units *own, int i, bool windowed);

// The units of a model whose config has another task now.
void tr__llama_set_units(struct tr_units *own);

// Tensors whose rows are tokens, NULL at the end.
extern const char *const tr__llama_token_tensors[];

#endif

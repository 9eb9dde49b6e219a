// GPT-2 (Radford et al. 2019), in the parameter names and layouts of Hugging Face.
#ifndef TR_MODELS_GPT2_H
#define TR_MODELS_GPT2_H

#include "models/task.h"

typedef struct tr_gpt2_config {
    int64_t n_layer, n_embd, n_head, n_positions, vocab_size;
    int64_t n_inner; // width inside of the MLP; 4 n_embd unless given
    bool gelu_tanh;  // activation_function: gelu_new, or gelu
    double layer_norm_epsilon, initializer_range;
    double resid_pdrop, embd_pdrop, attn_pdrop;
    int vocabulary_slices; // the token embedding is used in so many; 0: 1
    tr_task_settings task;
} tr_gpt2_config;

// From an architecture's own numbers. The caller destroys the model.
tr_status tr__model_gpt2(const tr_gpt2_config *config, tr_model **out, tr_error *err);

#endif

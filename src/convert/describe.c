#include "convert/describe.h"

#include "convert/rope.h"
#include "convert/values.h"
#include "models/gpt2.h"
#include "models/llama.h"
#include "models/units.h"

#include <string.h>

// In llama.cpp every layer of these architectures sees all that is before.
static void note_windows(const tr_model *model, const tr_llama_config *c,
                         const tr_log *log) {
    int windows = 0;
    for (int i = 0; i < model->unit_count; i++) {
        windows += strcmp(model->units[i].kind, "windowed block") == 0;
    }
    if (windows > 0 && c->window < c->max_position_embeddings) {
        tr__note(log,
                 "llama.cpp has no sliding windows for this architecture: of texts "
                 "beyond %lld tokens its results differ",
                 (long long)c->window);
    }
}

static tr_status describe_llama(tr_gguf_writer *w, const char *name,
                                const tr_llama_config *c, tr_error *err) {
    tr__value_put_u32(w, name, "block_count", c->num_hidden_layers);
    tr__value_put_u32(w, name, "context_length", c->max_position_embeddings);
    tr__value_put_u32(w, name, "embedding_length", c->hidden_size);
    tr__value_put_u32(w, name, "feed_forward_length", c->intermediate_size);
    tr__value_put_u32(w, name, "attention.head_count", c->num_attention_heads);
    tr__value_put_u32(w, name, "attention.head_count_kv", c->num_key_value_heads);
    tr__value_put_u32(w, name, "attention.key_length", c->head_dim);
    tr__value_put_u32(w, name, "attention.value_length", c->head_dim);
    tr__value_put_float(w, name, "attention.layer_norm_rms_epsilon", c->rms_norm_eps);
    tr__value_put_u32(w, name, "vocab_size", c->vocab_size);
    tr__value_put_u32(w, name, "rope.dimension_count", c->head_dim);
    return tr__rope_describe(w, name, &c->rope, err);
}

static tr_status describe_gpt2(tr_gguf_writer *w, const tr_gpt2_config *c,
                               tr_error *err) {
    static const char name[] = "gpt2";
    if (!c->gelu_tanh) {
        return tr_fail(err, TR_USAGE,
                       "activation_function \"gelu\" cannot be exported: llama.cpp "
                       "computes GPT-2 with \"gelu_new\"");
    }
    tr__value_put_u32(w, name, "block_count", c->n_layer);
    tr__value_put_u32(w, name, "context_length", c->n_positions);
    tr__value_put_u32(w, name, "embedding_length", c->n_embd);
    tr__value_put_u32(w, name, "feed_forward_length", c->n_inner);
    tr__value_put_u32(w, name, "attention.head_count", c->n_head);
    tr__value_put_float(w, name, "attention.layer_norm_epsilon", c->layer_norm_epsilon);
    tr__value_put_u32(w, name, "vocab_size", c->vocab_size);
    return TR_OK;
}

tr_status tr__describe_model(tr_gguf_writer *writer, const tr_model *model,
                             const char *architecture, const tr_log *log,
                             tr_error *err) {
    const tr_units *own = model->owned;
    if (strcmp(architecture, "gpt2") == 0) {
        return describe_gpt2(writer, own->config, err);
    }
    note_windows(model, own->config, log);
    return describe_llama(writer, architecture, own->config, err);
}

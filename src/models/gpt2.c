#include "models/gpt2.h"

#include <math.h>

#define WTE "transformer.wte.weight"

static tr_init normal(double deviation) {
    return (tr_init){TR_INIT_NORMAL, 0, (float)deviation};
}

static const tr_init zeros = {TR_INIT_CONSTANT, 0, 0};
static const tr_init ones = {TR_INIT_CONSTANT, 1, 0};

// The token embedding, also the output projection ("Using the output embedding to
// improve language models", Press and Wolf, arXiv 1608.05859).
static tr_value wte(tr_graph *g, const tr_gpt2_config *c) {
    return tr_graph_shared(g, WTE, TR_SHAPE2(c->vocab_size, c->n_embd),
                           normal(c->initializer_range));
}

// Where slice `k` of the vocabulary begins; slice k of K ends where k + 1 begins.
static int64_t slice_begin(const tr_gpt2_config *c, int k) {
    return c->vocab_size * k / c->vocabulary_slices;
}

static tr_value wte_slice(tr_graph *g, const tr_gpt2_config *c, int k) {
    int64_t first = slice_begin(c, k), rows = slice_begin(c, k + 1) - first;
    return tr_graph_shared_rows(g, WTE, TR_SHAPE2(c->vocab_size, c->n_embd), first,
                                rows, normal(c->initializer_range));
}

static tr_value wpe(tr_graph *g, const tr_gpt2_config *c) {
    return tr_graph_param(g, "wpe.weight", TR_SHAPE2(c->n_positions, c->n_embd),
                          normal(c->initializer_range));
}

// ids: [B, S] -> [B, S, C]
static tr_value embed(tr_graph *g, const tr_gpt2_config *c, tr_value ids) {
    tr_value tokens, x;
    if (c->vocabulary_slices <= 1) {
        tokens = wte(g, c);
        return tr_embedding(g, ids, tokens, wpe(g, c));
    }
    tokens = wte_slice(g, c, 0);
    x = tr_embedding_slice(g, ids, tokens, 0, wpe(g, c), TR_NO_VALUE);
    for (int k = 1; k < c->vocabulary_slices; k++) {
        tr_graph_segment(g);
        tokens = wte_slice(g, c, k);
        x = tr_embedding_slice(g, ids, tokens, slice_begin(c, k), TR_NO_VALUE, x);
    }
    return x;
}

void tr__gpt2_embedding(tr_graph *g, const void *config) {
    const tr_gpt2_config *c = config;
    tr_value x = embed(g, c, tr_graph_data(g, TR_DATA_INPUT));
    tr_graph_output(g, tr_dropout(g, x, (float)c->embd_pdrop));
}

void tr__gpt2_block(tr_graph *g, const void *config) {
    const tr_gpt2_config *c = config;
    int64_t C = c->n_embd, I = c->n_inner;
    float eps = (float)c->layer_norm_epsilon, drop = (float)c->resid_pdrop;
    tr_init draw = normal(c->initializer_range);
    // Projections that end in the residual stream are drawn smaller: 1 / sqrt(2
    // layers).
    tr_init last = normal(c->initializer_range / sqrt(2.0 * (double)c->n_layer));

    tr_value x = tr_graph_input(g, 0); // [B, S, C]
    tr_value ln_1_w = tr_graph_param(g, "ln_1.weight", TR_SHAPE1(C), ones);
    tr_value ln_1_b = tr_graph_param(g, "ln_1.bias", TR_SHAPE1(C), zeros);
    tr_value qkv_w = tr_graph_param(g, "attn.c_attn.weight", TR_SHAPE2(C, 3 * C), draw);
    tr_value qkv_b = tr_graph_param(g, "attn.c_attn.bias", TR_SHAPE1(3 * C), zeros);
    tr_value out_w = tr_graph_param(g, "attn.c_proj.weight", TR_SHAPE2(C, C), last);
    tr_value out_b = tr_graph_param(g, "attn.c_proj.bias", TR_SHAPE1(C), zeros);
    tr_value ln_2_w = tr_graph_param(g, "ln_2.weight", TR_SHAPE1(C), ones);
    tr_value ln_2_b = tr_graph_param(g, "ln_2.bias", TR_SHAPE1(C), zeros);
    tr_value fc_w = tr_graph_param(g, "mlp.c_fc.weight", TR_SHAPE2(C, I), draw);
    tr_value fc_b = tr_graph_param(g, "mlp.c_fc.bias", TR_SHAPE1(I), zeros);
    tr_value proj_w = tr_graph_param(g, "mlp.c_proj.weight", TR_SHAPE2(I, C), last);
    tr_value proj_b = tr_graph_param(g, "mlp.c_proj.bias", TR_SHAPE1(C), zeros);

    tr_value n = tr_layer_norm(g, x, ln_1_w, ln_1_b, eps);
    tr_value qkv = tr_linear(g, TR_LINEAR_IN_OUT, n, qkv_w, qkv_b); // [B, S, 3 C]
    tr_value a = tr_attention(g, qkv, (int)c->n_head, (float)c->attn_pdrop);
    tr_value p = tr_linear(g, TR_LINEAR_IN_OUT, a, out_w, out_b);
    tr_value s = tr_residual_norm(g, x, p, drop, ln_2_w, ln_2_b, eps, &n);
    tr_value h = tr_linear(g, TR_LINEAR_IN_OUT, n, fc_w, fc_b); // [B, S, I]
    h = tr_gelu(g, h, c->gelu_tanh);
    h = tr_linear(g, TR_LINEAR_IN_OUT, h, proj_w, proj_b);
    tr_graph_output(g, tr_residual(g, s, h, drop));
}

void tr__gpt2_head(tr_graph *g, const void *config) {
    const tr_gpt2_config *c = config;
    tr_value x = tr_graph_input(g, 0); // [B, S, C]
    tr_value ln_w = tr_graph_param(g, "ln_f.weight", TR_SHAPE1(c->n_embd), ones);
    tr_value ln_b = tr_graph_param(g, "ln_f.bias", TR_SHAPE1(c->n_embd), zeros);
    tr_value n = tr_layer_norm(g, x, ln_w, ln_b, (float)c->layer_norm_epsilon);
    tr_value targets = tr_graph_data(g, TR_DATA_TARGET); // [B, S]
    if (c->vocabulary_slices <= 1) {
        tr_head(g, TR_LINEAR_OUT_IN, n, wte(g, c), TR_NO_VALUE, targets);
        return;
    }
    tr_head_running running = TR_HEAD_BEGIN;
    for (int k = 0; k < c->vocabulary_slices; k++) {
        if (k > 0) {
            tr_graph_segment(g);
        }
        running = tr_head_slice(g, TR_LINEAR_OUT_IN, n, wte_slice(g, c, k), TR_NO_VALUE,
                                targets, slice_begin(c, k), running);
    }
    tr_head_slice_loss(g, running, targets);
}

#include "convert/names.h"

#include "base/memory.h"
#include "base/text.h"
#include "models/gpt2.h"
#include "models/llama.h"
#include "models/units.h"

#include <stdio.h>
#include <string.h>

// Sizes of a model that tensors have.
typedef enum size {
    ONE, // a vector has one row
    WIDTH,
    INNER,
    QUERIES,
    KEYS,
    HEAD,
    ALL, // queries, keys and values
    TOKENS,
    POSITIONS,
    SIZES
} size;

// When a tensor is there.
typedef enum when { ALWAYS, QKV_BIAS, OUTPUT_BIAS, MLP_BIAS, HEAD_NORM, UNTIED } when;

typedef struct named_tensor {
    const char *ours, *theirs; // behind the layer's prefix
    size rows, columns;
    when when;
    tr_row_order order; // of llama's queries and keys alone, where it is PAIRED
} named_tensor;

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static const named_tensor llama_first[] = {
    {"model.embed_tokens.weight", "token_embd.weight", TOKENS, WIDTH, ALWAYS, 0}};
static const named_tensor llama_layer[] = {
    {"input_layernorm.weight", "attn_norm.weight", ONE, WIDTH, ALWAYS, 0},
    {"self_attn.q_proj.weight", "attn_q.weight", QUERIES, WIDTH, ALWAYS,
     TR_ROWS_PAIRED},
    {"self_attn.q_proj.bias", "attn_q.bias", ONE, QUERIES, QKV_BIAS, TR_ROWS_PAIRED},
    {"self_attn.k_proj.weight", "attn_k.weight", KEYS, WIDTH, ALWAYS, TR_ROWS_PAIRED},
    {"self_attn.k_proj.bias", "attn_k.bias", ONE, KEYS, QKV_BIAS, TR_ROWS_PAIRED},
    {"self_attn.v_proj.weight", "attn_v.weight", KEYS, WIDTH, ALWAYS, 0},
    {"self_attn.v_proj.bias", "attn_v.bias", ONE, KEYS, QKV_BIAS, 0},
    {"self_attn.q_norm.weight", "attn_q_norm.weight", ONE, HEAD, HEAD_NORM, 0},
    {"self_attn.k_norm.weight", "attn_k_norm.weight", ONE, HEAD, HEAD_NORM, 0},
    {"self_attn.o_proj.weight", "attn_output.weight", WIDTH, QUERIES, ALWAYS, 0},
    {"self_attn.o_proj.bias", "attn_output.bias", ONE, WIDTH, OUTPUT_BIAS, 0},
    {"post_attention_layernorm.weight", "ffn_norm.weight", ONE, WIDTH, ALWAYS, 0},
    {"mlp.gate_proj.weight", "ffn_gate.weight", INNER, WIDTH, ALWAYS, 0},
    {"mlp.gate_proj.bias", "ffn_gate.bias", ONE, INNER, MLP_BIAS, 0},
    {"mlp.up_proj.weight", "ffn_up.weight", INNER, WIDTH, ALWAYS, 0},
    {"mlp.up_proj.bias", "ffn_up.bias", ONE, INNER, MLP_BIAS, 0},
    {"mlp.down_proj.weight", "ffn_down.weight", WIDTH, INNER, ALWAYS, 0},
    {"mlp.down_proj.bias", "ffn_down.bias", ONE, WIDTH, MLP_BIAS, 0}};
static const named_tensor llama_last[] = {
    {"model.norm.weight", "output_norm.weight", ONE, WIDTH, ALWAYS, 0},
    {"lm_head.weight", "output.weight", TOKENS, WIDTH, UNTIED, 0}};

static const named_tensor gpt2_first[] = {
    {"transformer.wte.weight", "token_embd.weight", TOKENS, WIDTH, ALWAYS, 0},
    {"transformer.wpe.weight", "position_embd.weight", POSITIONS, WIDTH, ALWAYS, 0}};
static const named_tensor gpt2_layer[] = {
    {"ln_1.weight", "attn_norm.weight", ONE, WIDTH, ALWAYS, 0},
    {"ln_1.bias", "attn_norm.bias", ONE, WIDTH, ALWAYS, 0},
    {"attn.c_attn.weight", "attn_qkv.weight", ALL, WIDTH, ALWAYS, TR_ROWS_TURNED},
    {"attn.c_attn.bias", "attn_qkv.bias", ONE, ALL, ALWAYS, 0},
    {"attn.c_proj.weight", "attn_output.weight", WIDTH, WIDTH, ALWAYS, TR_ROWS_TURNED},
    {"attn.c_proj.bias", "attn_output.bias", ONE, WIDTH, ALWAYS, 0},
    {"ln_2.weight", "ffn_norm.weight", ONE, WIDTH, ALWAYS, 0},
    {"ln_2.bias", "ffn_norm.bias", ONE, WIDTH, ALWAYS, 0},
    {"mlp.c_fc.weight", "ffn_up.weight", INNER, WIDTH, ALWAYS, TR_ROWS_TURNED},
    {"mlp.c_fc.bias", "ffn_up.bias", ONE, INNER, ALWAYS, 0},
    {"mlp.c_proj.weight", "ffn_down.weight", WIDTH, INNER, ALWAYS, TR_ROWS_TURNED},
    {"mlp.c_proj.bias", "ffn_down.bias", ONE, WIDTH, ALWAYS, 0}};
static const named_tensor gpt2_last[] = {
    {"transformer.ln_f.weight", "output_norm.weight", ONE, WIDTH, ALWAYS, 0},
    {"transformer.ln_f.bias", "output_norm.bias", ONE, WIDTH, ALWAYS, 0}};

static const struct {
    const char *type, *architecture;
} architectures[] = {{"llama", "llama"},
                     {"mistral", "llama"},
                     {"qwen2", "qwen2"},
                     {"qwen3", "qwen3"},
                     {"gpt2", "gpt2"}};

const char *tr__gguf_architecture(const char *type) {
    for (size_t i = 0; i < COUNT_OF(architectures); i++) {
        if (strcmp(architectures[i].type, type) == 0) {
            return architectures[i].architecture;
        }
    }
    return NULL;
}

// What the list is made of.
typedef struct maker {
    int64_t sizes[SIZES];
    bool has[UNTIED + 1];
    bool paired; // rows of queries and keys
    int64_t layers;
    tr_name_list *list;
} maker;

static void measure_llama(const tr_llama_config *c, maker *m) {
    m->layers = c->num_hidden_layers;
    m->sizes[WIDTH] = c->hidden_size;
    m->sizes[INNER] = c->intermediate_size;
    m->sizes[HEAD] = c->head_dim;
    m->sizes[QUERIES] = c->num_attention_heads * c->head_dim;
    m->sizes[KEYS] = c->num_key_value_heads * c->head_dim;
    m->sizes[TOKENS] = c->vocab_size;
    m->has[QKV_BIAS] = c->qkv_bias;
    m->has[OUTPUT_BIAS] = c->output_bias;
    m->has[MLP_BIAS] = c->mlp_bias;
    m->has[HEAD_NORM] = c->head_norm;
    m->has[UNTIED] = !c->tied;
}

static void measure_gpt2(const tr_gpt2_config *c, maker *m) {
    m->layers = c->n_layer;
    m->sizes[WIDTH] = c->n_embd;
    m->sizes[INNER] = c->n_inner;
    m->sizes[ALL] = 3 * c->n_embd;
    m->sizes[TOKENS] = c->vocab_size;
    m->sizes[POSITIONS] = c->n_positions;
}

// ours, theirs: what stands before the names.
static bool add(maker *m, const named_tensor *r, const char *ours, const char *theirs) {
    tr_name_list *list = m->list;
    if (!m->has[r->when]) {
        return true;
    }
    if (!tr__grow((void **)&list->pair, &list->capacity, list->count + 1,
                  sizeof *list->pair)) {
        return false;
    }
    tr_name_pair *pair = &list->pair[list->count++];
    *pair = (tr_name_pair){.rank = r->rows == ONE ? 1 : 2,
                           .rows = m->sizes[r->rows],
                           .columns = m->sizes[r->columns],
                           .order = r->order,
                           .head = m->sizes[HEAD]};
    if (r->order == TR_ROWS_PAIRED && !m->paired) {
        pair->order = TR_ROWS_SAME;
    }
    // llama.cpp asks for vectors and positions as f32.
    pair->plain = pair->rank == 1 || tr__ends_with(r->theirs, "position_embd.weight");
    snprintf(pair->ours, sizeof pair->ours, "%s%s", ours, r->ours);
    snprintf(pair->theirs, sizeof pair->theirs, "%s%s", theirs, r->theirs);
    return true;
}

static bool add_all(maker *m, const named_tensor *rows, size_t count, const char *ours,
                    const char *theirs) {
    bool good = true;
    for (size_t i = 0; i < count && good; i++) {
        good = add(m, &rows[i], ours, theirs);
    }
    return good;
}

static bool add_layers(maker *m, const named_tensor *rows, size_t count,
                       const char *prefix) {
    bool good = true;
    for (int64_t i = 0; i < m->layers && good; i++) {
        char ours[32], theirs[32];
        snprintf(ours, sizeof ours, "%s.%d.", prefix, (int)i);
        snprintf(theirs, sizeof theirs, "blk.%d.", (int)i);
        good = add_all(m, rows, count, ours, theirs);
    }
    return good;
}

tr_status tr__names_of(const tr_model *model, tr_name_list *out, tr_error *err) {
    const tr_units *own = model->owned;
    maker m = {.sizes = {[ONE] = 1}, .has = {[ALWAYS] = true}, .list = out};
    bool good;
    *out = (tr_name_list){0};
    if (strcmp(model->type, "gpt2") == 0) {
        measure_gpt2(own->config, &m);
        good = add_all(&m, gpt2_first, COUNT_OF(gpt2_first), "", "") &&
               add_layers(&m, gpt2_layer, COUNT_OF(gpt2_layer), "transformer.h") &&
               add_all(&m, gpt2_last, COUNT_OF(gpt2_last), "", "");
    } else {
        measure_llama(own->config, &m);
        m.paired = strcmp(tr__gguf_architecture(model->type), "llama") == 0;
        good = add_all(&m, llama_first, COUNT_OF(llama_first), "", "") &&
               add_layers(&m, llama_layer, COUNT_OF(llama_layer), "model.layers") &&
               add_all(&m, llama_last, COUNT_OF(llama_last), "", "");
    }
    return good ? TR_OK : tr_fail(err, TR_MEMORY, "no memory for a list of tensors");
}

void tr__names_release(tr_name_list *list) {
    tr__free(list->pair);
    *list = (tr_name_list){0};
}

int64_t tr__names_row(const tr_name_pair *pair, int64_t row) {
    if (pair->order != TR_ROWS_PAIRED) {
        return row;
    }
    int64_t within = row % pair->head;
    return row - within + within / 2 + within % 2 * (pair->head / 2);
}

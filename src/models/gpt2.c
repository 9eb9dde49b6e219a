#include "models/gpt2.h"

#include "models/label_head.h"
#include "models/models.h"
#include "models/units.h"
#include "models/vocabulary.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LARGEST = 1 << 30 };

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

#define WTE "transformer.wte.weight"

static const tr_init zeros = {TR_INIT_CONSTANT, 0, 0};
static const tr_init ones = {TR_INIT_CONSTANT, 1, 0};

// The token embedding, also the output projection ("Using the output embedding to
// improve language models", Press and Wolf, arXiv 1608.05859).
static tr_vocabulary_tensors vocabulary_of(const tr_gpt2_config *c) {
    return (tr_vocabulary_tensors){.embedding = WTE,
                                   .tied = true,
                                   .tokens = c->vocab_size,
                                   .width = c->n_embd,
                                   .slices = c->vocabulary_slices,
                                   .init = tr__init_normal(c->initializer_range)};
}

static tr_value wpe(tr_graph *g, const tr_gpt2_config *c) {
    return tr_graph_param(g, "wpe.weight", TR_SHAPE2(c->n_positions, c->n_embd),
                          tr__init_normal(c->initializer_range));
}

// ids: [B, S] -> [B, S, C]
static void build_embedding(tr_graph *g, const void *config) {
    const tr_gpt2_config *c = config;
    tr_vocabulary_tensors v = vocabulary_of(c);
    tr_value ids = tr_graph_data(g, "input_ids");
    tr_value tokens = tr__vocabulary_first(g, &v);
    tr_value x = tr_embedding(g, ids, tokens, wpe(g, c));
    x = tr__vocabulary_rest(g, &v, ids, x);
    tr_graph_output(g, tr_dropout(g, x, (float)c->embd_pdrop));
}

static void build_block(tr_graph *g, const void *config) {
    const tr_gpt2_config *c = config;
    int64_t C = c->n_embd, I = c->n_inner;
    float eps = (float)c->layer_norm_epsilon, drop = (float)c->resid_pdrop;
    tr_init draw = tr__init_normal(c->initializer_range);
    // Projections that end in the residual stream are drawn smaller: 1 / sqrt(2
    // layers).
    tr_init last =
        tr__init_normal(c->initializer_range / sqrt(2.0 * (double)c->n_layer));

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

static void build_head(tr_graph *g, const void *config) {
    const tr_gpt2_config *c = config;
    tr_value x = tr_graph_input(g, 0); // [B, S, C]
    tr_value ln_w = tr_graph_param(g, "ln_f.weight", TR_SHAPE1(c->n_embd), ones);
    tr_value ln_b = tr_graph_param(g, "ln_f.bias", TR_SHAPE1(c->n_embd), zeros);
    tr_value n = tr_layer_norm(g, x, ln_w, ln_b, (float)c->layer_norm_epsilon);
    tr_vocabulary_tensors v = vocabulary_of(c);
    tr__vocabulary_head(g, &v, n);
}

// Its parameters have their full names: that of the labels is not the transformer's.
static void build_text_head(tr_graph *g, const void *config) {
    const tr_gpt2_config *c = config;
    tr_shape shape = TR_SHAPE1(c->n_embd);
    tr_value w = tr_graph_param(g, "transformer.ln_f.weight", shape, ones);
    tr_value b = tr_graph_param(g, "transformer.ln_f.bias", shape, zeros);
    tr_value x =
        tr_layer_norm(g, tr_graph_input(g, 0), w, b, (float)c->layer_norm_epsilon);
    tr__text_head(g, &c->task, x, tr__init_normal(c->initializer_range));
}

static void set_units(tr_units *own) {
    const tr_gpt2_config *c = own->config;
    bool texts = c->task.task != TR_TASK_CAUSAL_LM;
    tr__units_set(own, (int)c->n_layer + 1,
                  texts
                      ? (tr_model_unit){"head", "head", "", build_text_head, c}
                      : (tr_model_unit){"head", "head", "transformer.", build_head, c});
}

// ---- the model

static json_t *to_json(const tr_gpt2_config *c) {
    return json_pack(
        "{s:s, s:[s], s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:f, s:f, s:f, s:f, s:f, "
        "s:b}",
        "model_type", "gpt2", "architectures", "GPT2LMHeadModel", "n_layer",
        (json_int_t)c->n_layer, "n_embd", (json_int_t)c->n_embd, "n_head",
        (json_int_t)c->n_head, "n_positions", (json_int_t)c->n_positions, "n_ctx",
        (json_int_t)c->n_positions, "vocab_size", (json_int_t)c->vocab_size, "n_inner",
        (json_int_t)c->n_inner, "activation_function",
        c->gelu_tanh ? "gelu_new" : "gelu", "layer_norm_epsilon", c->layer_norm_epsilon,
        "initializer_range", c->initializer_range, "resid_pdrop", c->resid_pdrop,
        "embd_pdrop", c->embd_pdrop, "attn_pdrop", c->attn_pdrop, "tie_word_embeddings",
        1);
}

tr_status tr__model_gpt2(const tr_gpt2_config *config, tr_model **out, tr_error *err) {
    tr_units *own = tr__units_create(&tr__architecture_gpt2, (int)config->n_layer + 2,
                                     config, sizeof *config);
    if (!own) {
        return tr_fail(err, TR_MEMORY, "no memory for a model's units");
    }
    const tr_gpt2_config *c = own->config;
    tr__units_set(
        own, 0,
        (tr_model_unit){"embedding", "embedding", "transformer.", build_embedding, c});
    for (int i = 0; i < (int)c->n_layer; i++) {
        char name[32], prefix[48];
        snprintf(name, sizeof name, "h.%d", i);
        snprintf(prefix, sizeof prefix, "transformer.h.%d.", i);
        tr__units_set(own, i + 1,
                      (tr_model_unit){name, "block", prefix, build_block, c});
    }
    set_units(own);
    own->model.batch = tr_batch_tokens(c->n_positions);
    own->model.classes = c->vocab_size;
    return tr__units_finish(own, to_json(c), out, err);
}

// ---- the keys and defaults of Hugging Face's GPT2Config

static const char *const known[] = {
    "model_type", "n_layer", "n_embd", "n_head", "n_positions", "n_ctx", "vocab_size",
    "n_inner", "activation_function", "layer_norm_epsilon", "initializer_range",
    "resid_pdrop", "embd_pdrop", "attn_pdrop", "tie_word_embeddings",
    "scale_attn_weights", "scale_attn_by_inverse_layer_idx", "add_cross_attention",
    // Without meaning for training one GPT-2:
    "architectures", "torch_dtype", "dtype", "transformers_version", "_name_or_path",
    "gradient_checkpointing"};

// Nor have these, but those who use the trained model read them.
static const char *const kept[] = {"bos_token_id",
                                   "eos_token_id",
                                   "pad_token_id",
                                   "use_cache",
                                   "reorder_and_upcast_attn",
                                   "summary_type",
                                   "summary_use_proj",
                                   "summary_activation",
                                   "summary_proj_to_labels",
                                   "summary_first_dropout",
                                   "task_specific_params",
                                   "id2label",
                                   "label2id",
                                   "problem_type",
                                   "num_labels"};

static tr_status check_names(const tr_model_keys *keys, tr_error *err) {
    const char *names[COUNT_OF(known) + COUNT_OF(kept)];
    memcpy(names, known, sizeof known);
    memcpy(names + COUNT_OF(known), kept, sizeof kept);
    return tr__fields_known(keys, names, COUNT_OF(names), err);
}

static tr_status check(const tr_model_keys *keys, const tr_gpt2_config *c,
                       tr_error *err) {
    if (c->n_embd % c->n_head != 0) {
        return tr_fail(err, TR_USAGE,
                       "%s: n_embd %lld is not a multiple of n_head %lld", keys->origin,
                       (long long)c->n_embd, (long long)c->n_head);
    }
    tr_status status = tr__field_only(keys, "tie_word_embeddings", true, err);
    if (status == TR_OK) {
        status = tr__field_only(keys, "scale_attn_weights", true, err);
    }
    if (status == TR_OK) {
        status = tr__field_only(keys, "scale_attn_by_inverse_layer_idx", false, err);
    }
    return status == TR_OK ? tr__field_only(keys, "add_cross_attention", false, err)
                           : status;
}

static tr_status make(const tr_model_keys *keys, const tr_gpt2_config *config,
                      tr_model **out, tr_error *err) {
    tr_model *model = NULL;
    tr_status status = tr__model_gpt2(config, &model, err);
    return status == TR_OK
               ? tr__model_keep(model, keys->object, kept, COUNT_OF(kept), out, err)
               : status;
}

static tr_status from_json(const tr_model_keys *keys, bool strict, tr_model **out,
                           tr_error *err) {
    static const char *const activations[] = {"gelu_new", "gelu", "gelu_pytorch_tanh"};
    tr_gpt2_config c = {.n_layer = 12,
                        .n_embd = 768,
                        .n_head = 12,
                        .n_positions = 1024,
                        .vocab_size = 50257,
                        .layer_norm_epsilon = 1e-5,
                        .initializer_range = 0.02,
                        .resid_pdrop = 0.1,
                        .embd_pdrop = 0.1,
                        .attn_pdrop = 0.1};
    const tr_model_field fields[] = {
        {"n_layer", 1, 10000, &c.n_layer, NULL},
        {"n_embd", 1, LARGEST, &c.n_embd, NULL},
        {"n_head", 1, 65536, &c.n_head, NULL},
        {"n_ctx", 1, LARGEST, &c.n_positions, NULL},
        {"n_positions", 1, LARGEST, &c.n_positions, NULL},
        {"vocab_size", 1, LARGEST, &c.vocab_size, NULL},
        {"n_inner", 1, LARGEST, &c.n_inner, NULL},
        {"layer_norm_epsilon", 0, 1, NULL, &c.layer_norm_epsilon},
        {"initializer_range", 0, 1000, NULL, &c.initializer_range},
        {"resid_pdrop", 0, 0.999, NULL, &c.resid_pdrop},
        {"embd_pdrop", 0, 0.999, NULL, &c.embd_pdrop},
        {"attn_pdrop", 0, 0.999, NULL, &c.attn_pdrop},
    };
    tr_status status = TR_OK;
    if (strict) {
        status = check_names(keys, err);
    }
    if (status == TR_OK) {
        status = tr__fields_read(keys, fields, COUNT_OF(fields), err);
    }
    if (status != TR_OK) {
        return status;
    }
    int activation = tr__field_choice(keys, "activation_function", activations,
                                      COUNT_OF(activations), 0, err);
    if (activation < 0) {
        return TR_USAGE;
    }
    c.gelu_tanh = activation != 1;
    c.n_inner = c.n_inner ? c.n_inner : 4 * c.n_embd;
    status = check(keys, &c, err);
    return status == TR_OK ? make(keys, &c, out, err) : status;
}

// ---- the architecture

static int64_t *vocabulary(void *config) {
    return &((tr_gpt2_config *)config)->vocab_size;
}

static int64_t positions(const void *config) {
    return ((const tr_gpt2_config *)config)->n_positions;
}

static int *slices(void *config) {
    return &((tr_gpt2_config *)config)->vocabulary_slices;
}

// Radford et al. 2019, table 2, as published in Hugging Face's configs.
#define PRESET(layers, width, heads)                                                   \
    "{\"model_type\": \"gpt2\", \"n_layer\": " #layers ", \"n_embd\": " #width         \
    ", \"n_head\": " #heads "}"
static const tr_model_preset presets[] = {
    {"gpt2", PRESET(12, 768, 12)},
    {"gpt2-medium", PRESET(24, 1024, 16)},
    {"gpt2-large", PRESET(36, 1280, 20)},
    {"gpt2-xl", PRESET(48, 1600, 25)},
    {NULL, NULL},
};

static const char *const token_tensors[] = {WTE, NULL};

static const tr_dropout_key dropout[] = {{"resid_pdrop", "residual"},
                                         {"embd_pdrop", "embedding"},
                                         {"attn_pdrop", "attention"},
                                         {NULL, NULL}};

static const tr_token_model tokens = {
    .vocabulary = vocabulary,
    .positions = positions,
    .slices = slices,
    .tensors = token_tensors,
};

static int64_t width(const void *config) {
    return ((const tr_gpt2_config *)config)->n_embd;
}

static tr_task_settings *task(void *config) {
    return &((tr_gpt2_config *)config)->task;
}

static const char *const heads[] = {"score.", "logit_scale", NULL};

static const tr_text_model texts = {.classes = "GPT2",
                                    .width = width,
                                    .task = task,
                                    .set_units = set_units,
                                    .heads = heads};

const tr_architecture tr__architecture_gpt2 = {
    .type = "gpt2",
    .from_json = from_json,
    .tokens = &tokens,
    .texts = &texts,
    .presets = presets,
    .dropout = dropout,
};

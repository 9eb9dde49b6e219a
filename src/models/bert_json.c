// The keys and defaults of Hugging Face's BertConfig and RobertaConfig.
#include "models/bert.h"

#include "models/models.h"
#include "models/units.h"

#include <stdio.h>
#include <string.h>

enum { LARGEST = 1 << 30 };

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static const char *const known[] = {
    "model_type", "vocab_size", "hidden_size", "num_hidden_layers",
    "num_attention_heads", "intermediate_size", "hidden_act", "hidden_dropout_prob",
    "attention_probs_dropout_prob", "max_position_embeddings", "type_vocab_size",
    "initializer_range", "layer_norm_eps", "pad_token_id", "position_embedding_type",
    "is_decoder", "add_cross_attention", "architectures",
    // Without meaning here:
    "torch_dtype", "dtype", "transformers_version", "_name_or_path",
    "gradient_checkpointing", "use_cache"};

// Nor have these, but those who use the model read them.
static const char *const kept[] = {
    "bos_token_id",       "eos_token_id",        "pad_token_id",
    "classifier_dropout", "tie_word_embeddings", "id2label",
    "label2id",           "problem_type",        "num_labels"};

// What of RoBERTa is another than of BERT.
typedef struct bert_family {
    const tr_architecture *type;
    int64_t vocabulary, padding;
    bool behind_padding; // positions begin behind the row of padding
} bert_family;

static tr_status check_names(const tr_model_keys *keys, tr_error *err) {
    const char *names[COUNT_OF(known) + COUNT_OF(kept)];
    memcpy(names, known, sizeof known);
    memcpy(names + COUNT_OF(known), kept, sizeof kept);
    return tr__fields_known(keys, names, COUNT_OF(names), err);
}

static tr_status check(const tr_model_keys *keys, const tr_bert_config *c,
                       tr_error *err) {
    static const char *const absolute[] = {"absolute"};
    if (c->hidden_size % c->num_attention_heads != 0) {
        return tr_fail(err, TR_USAGE,
                       "%s: hidden_size %lld is not a multiple of num_attention_heads "
                       "%lld",
                       keys->origin, (long long)c->hidden_size,
                       (long long)c->num_attention_heads);
    }
    if (c->max_position_embeddings <= c->first_position) {
        return tr_fail(err, TR_USAGE,
                       "%s: max_position_embeddings is %lld, and the first position of "
                       "a text is pad_token_id + 1 = %lld",
                       keys->origin, (long long)c->max_position_embeddings,
                       (long long)c->first_position);
    }
    if (tr__field_choice(keys, "position_embedding_type", absolute, 1, 0, err) < 0) {
        return TR_USAGE;
    }
    tr_status status = tr__field_only(keys, "is_decoder", false, err);
    return status == TR_OK ? tr__field_only(keys, "add_cross_attention", false, err)
                           : status;
}

static json_t *to_json(const bert_family *family, const tr_bert_config *c,
                       int64_t padding) {
    return json_pack(
        "{s:s, s:I, s:I, s:I, s:I, s:I, s:s, s:f, s:f, s:I, s:I, s:f, s:f, s:I}",
        "model_type", family->type->type, "vocab_size", (json_int_t)c->vocab_size,
        "hidden_size", (json_int_t)c->hidden_size, "num_hidden_layers",
        (json_int_t)c->num_hidden_layers, "num_attention_heads",
        (json_int_t)c->num_attention_heads, "intermediate_size",
        (json_int_t)c->intermediate_size, "hidden_act",
        c->gelu_tanh ? "gelu_new" : "gelu", "hidden_dropout_prob",
        c->hidden_dropout_prob, "attention_probs_dropout_prob",
        c->attention_probs_dropout_prob, "max_position_embeddings",
        (json_int_t)c->max_position_embeddings, "type_vocab_size",
        (json_int_t)c->type_vocab_size, "initializer_range", c->initializer_range,
        "layer_norm_eps", c->layer_norm_eps, "pad_token_id", (json_int_t)padding);
}

static tr_status make(const tr_model_keys *keys, const bert_family *family,
                      const tr_bert_config *c, int64_t padding, tr_model **out,
                      tr_error *err) {
    tr_model *model = NULL;
    tr_status status =
        tr__model_bert(family->type, c, to_json(family, c, padding), &model, err);
    return status == TR_OK
               ? tr__model_keep(model, keys->object, kept, COUNT_OF(kept), out, err)
               : status;
}

static tr_status read_fields(const tr_model_keys *keys, tr_bert_config *c,
                             int64_t *padding, tr_error *err) {
    static const char *const activations[] = {"gelu", "gelu_new", "gelu_pytorch_tanh"};
    const tr_model_field fields[] = {
        {"vocab_size", 1, LARGEST, &c->vocab_size, NULL},
        {"hidden_size", 1, LARGEST, &c->hidden_size, NULL},
        {"num_hidden_layers", 1, 10000, &c->num_hidden_layers, NULL},
        {"num_attention_heads", 1, 65536, &c->num_attention_heads, NULL},
        {"intermediate_size", 1, LARGEST, &c->intermediate_size, NULL},
        {"max_position_embeddings", 1, LARGEST, &c->max_position_embeddings, NULL},
        {"type_vocab_size", 1, LARGEST, &c->type_vocab_size, NULL},
        {"pad_token_id", 0, LARGEST, padding, NULL},
        {"layer_norm_eps", 0, 1, NULL, &c->layer_norm_eps},
        {"initializer_range", 0, 1000, NULL, &c->initializer_range},
        {"hidden_dropout_prob", 0, 0.999, NULL, &c->hidden_dropout_prob},
        {"attention_probs_dropout_prob", 0, 0.999, NULL,
         &c->attention_probs_dropout_prob},
        {"classifier_dropout", 0, 0.999, NULL, &c->classifier_dropout},
    };
    tr_status status = tr__fields_read(keys, fields, COUNT_OF(fields), err);
    if (status != TR_OK) {
        return status;
    }
    int activation = tr__field_choice(keys, "hidden_act", activations,
                                      COUNT_OF(activations), 0, err);
    c->gelu_tanh = activation > 0;
    return activation < 0 ? TR_USAGE : TR_OK;
}

static tr_status from_json(const tr_model_keys *keys, bool strict,
                           const bert_family *family, tr_model **out, tr_error *err) {
    int64_t padding = family->padding;
    tr_bert_config c = {.vocab_size = family->vocabulary,
                        .hidden_size = 768,
                        .num_hidden_layers = 12,
                        .num_attention_heads = 12,
                        .intermediate_size = 3072,
                        .max_position_embeddings = 512,
                        .type_vocab_size = 2,
                        .layer_norm_eps = 1e-12,
                        .initializer_range = 0.02,
                        .hidden_dropout_prob = 0.1,
                        .attention_probs_dropout_prob = 0.1,
                        .classifier_dropout = -1,
                        .pooler = !family->behind_padding,
                        .task = {.task = tr__class_task(keys->object, true),
                                 .embedding = {TR_TEXT_MEAN, true}}};
    tr_status status = strict ? check_names(keys, err) : TR_OK;
    if (status == TR_OK) {
        status = read_fields(keys, &c, &padding, err);
    }
    c.first_position = family->behind_padding ? padding + 1 : 0;
    if (status == TR_OK) {
        status = check(keys, &c, err);
    }
    return status == TR_OK ? make(keys, family, &c, padding, out, err) : status;
}

static tr_status bert_from_json(const tr_model_keys *keys, bool strict, tr_model **out,
                                tr_error *err) {
    static const bert_family bert = {&tr__architecture_bert, 30522, 0, false};
    return from_json(keys, strict, &bert, out, err);
}

static tr_status roberta_from_json(const tr_model_keys *keys, bool strict,
                                   tr_model **out, tr_error *err) {
    static const bert_family roberta = {&tr__architecture_roberta, 50265, 1, true};
    return from_json(keys, strict, &roberta, out, err);
}

// ---- the architectures

static int64_t *vocabulary(void *config) {
    return &((tr_bert_config *)config)->vocab_size;
}

static int64_t positions(const void *config) {
    const tr_bert_config *c = config;
    return c->max_position_embeddings - c->first_position;
}

static int64_t types(const void *config) {
    return ((const tr_bert_config *)config)->type_vocab_size;
}

static int64_t width(const void *config) {
    return ((const tr_bert_config *)config)->hidden_size;
}

static tr_task_settings *task(void *config) {
    return &((tr_bert_config *)config)->task;
}

#define PRESET(type, vocabulary, layers, width, heads, inner, more)                    \
    "{\"model_type\": \"" type "\", \"vocab_size\": " #vocabulary                      \
    ", \"num_hidden_layers\": " #layers ", \"hidden_size\": " #width                   \
    ", \"num_attention_heads\": " #heads ", \"intermediate_size\": " #inner more "}"
#define ROBERTA                                                                        \
    ", \"max_position_embeddings\": 514, \"type_vocab_size\": 1, \"layer_norm_eps\": " \
    "1e-5"

// As published in Hugging Face's configs.
static const tr_model_preset bert_presets[] = {
    {"bert-base-uncased", PRESET("bert", 30522, 12, 768, 12, 3072, "")},
    {"bert-large-uncased", PRESET("bert", 30522, 24, 1024, 16, 4096, "")},
    {"bert-base-cased", PRESET("bert", 28996, 12, 768, 12, 3072, "")},
    {"bert-large-cased", PRESET("bert", 28996, 24, 1024, 16, 4096, "")},
    {NULL, NULL},
};
static const tr_model_preset roberta_presets[] = {
    {"roberta-base", PRESET("roberta", 50265, 12, 768, 12, 3072, ROBERTA)},
    {"roberta-large", PRESET("roberta", 50265, 24, 1024, 16, 4096, ROBERTA)},
    {NULL, NULL},
};

static const tr_dropout_key dropout[] = {{"hidden_dropout_prob", "hidden"},
                                         {"attention_probs_dropout_prob", "attention"},
                                         {NULL, NULL}};

static const tr_token_model tokens = {.vocabulary = vocabulary,
                                      .positions = positions,
                                      .tensors = tr__bert_token_tensors};

static const tr_text_model bert_texts = {.classes = "Bert",
                                         .pretraining = "ForPreTraining",
                                         .encoder = true,
                                         .types = types,
                                         .width = width,
                                         .task = task,
                                         .set_units = tr__bert_set_units,
                                         .heads = tr__bert_heads};
static const tr_text_model roberta_texts = {.classes = "Roberta",
                                            .encoder = true,
                                            .types = types,
                                            .width = width,
                                            .task = task,
                                            .set_units = tr__bert_set_units,
                                            .heads = tr__bert_heads};

const tr_architecture tr__architecture_bert = {.type = "bert",
                                               .from_json = bert_from_json,
                                               .tokens = &tokens,
                                               .texts = &bert_texts,
                                               .presets = bert_presets,
                                               .dropout = dropout};
const tr_architecture tr__architecture_roberta = {.type = "roberta",
                                                  .from_json = roberta_from_json,
                                                  .tokens = &tokens,
                                                  .texts = &roberta_texts,
                                                  .presets = roberta_presets,
                                                  .dropout = dropout};

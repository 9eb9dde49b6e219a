#include "convert/config.h"

#include "convert/rope.h"
#include "convert/values.h"
#include "models/models.h"

#include <stdio.h>
#include <string.h>

typedef struct reader {
    const tr_gguf *gguf;
    const char *name; // of the architecture
    json_t *keys;     // of config.json
} reader;

// A number under the architecture's prefix, and what config.json calls it.
typedef struct key {
    const char *theirs, *ours;
    bool real;
} key;

static const key llama_keys[] = {
    {"block_count", "num_hidden_layers", false},
    {"context_length", "max_position_embeddings", false},
    {"embedding_length", "hidden_size", false},
    {"feed_forward_length", "intermediate_size", false},
    {"attention.head_count", "num_attention_heads", false},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps", true}};
static const key gpt2_keys[] = {
    {"block_count", "n_layer", false},
    {"context_length", "n_positions", false},
    {"embedding_length", "n_embd", false},
    {"feed_forward_length", "n_inner", false},
    {"attention.head_count", "n_head", false},
    {"attention.layer_norm_epsilon", "layer_norm_epsilon", true}};

// Others that are read, or that change nothing that llama.cpp computes.
static const char *const others[] = {"vocab_size",
                                     "expert_count",
                                     "tensor_data_layout",
                                     "attention.head_count_kv",
                                     "attention.key_length",
                                     "attention.value_length",
                                     "attention.sliding_window",
                                     "rope.dimension_count",
                                     "rope.freq_base",
                                     "rope.scaling.type",
                                     "rope.scaling.factor",
                                     "rope.scaling.original_context_length",
                                     "rope.scaling.finetuned",
                                     "rope.scaling.attn_factor",
                                     "rope.scaling.yarn_beta_fast",
                                     "rope.scaling.yarn_beta_slow"};

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static tr_status no_memory(tr_error *err) {
    return tr_fail(err, TR_MEMORY, "no memory for a config.json");
}

// ---- what kind of file

static tr_status check_kind(const tr_gguf *gguf, tr_error *err) {
    const char *type = "model", *path = tr__gguf_path(gguf);
    int64_t parts = 1;
    tr_status status = tr__value_text(gguf, "general.type", &type, err);
    if (status == TR_OK) {
        status = tr__value_integer(gguf, "split.count", &parts, err);
    }
    if (status != TR_OK) {
        return status;
    }
    if (strcmp(type, "model") != 0) {
        return tr_fail(err, TR_IO,
                       "%s: general.type is \"%.40s\"; only models can be imported",
                       path, type);
    }
    return parts <= 1 ? TR_OK
                      : tr_fail(err, TR_IO,
                                "%s: is one of %lld parts of a model; join them first "
                                "(llama-gguf-split --merge)",
                                path, (long long)parts);
}

static tr_status find_architecture(const tr_gguf *gguf, const char **out,
                                   tr_error *err) {
    static const char *const known[] = {"llama", "qwen2", "qwen3", "gpt2"};
    const char *name = "(none)";
    tr_status status = tr__value_text(gguf, "general.architecture", &name, err);
    for (size_t i = 0; i < COUNT_OF(known) && status == TR_OK; i++) {
        if (strcmp(known[i], name) == 0) {
            *out = known[i];
            return TR_OK;
        }
    }
    return status == TR_OK
               ? tr_fail(err, TR_IO,
                         "%s: its architecture \"%.40s\" is not supported; supported "
                         "are llama, qwen2, qwen3 and gpt2",
                         tr__gguf_path(gguf), name)
               : status;
}

static bool is_known(const char *name, const key *keys, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(keys[i].theirs, name) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        if (strcmp(others[i], name) == 0) {
            return true;
        }
    }
    return false;
}

// A key that is not known may change what the model computes.
static tr_status check_known(const reader *r, const key *keys, size_t count,
                             tr_error *err) {
    size_t length = strlen(r->name);
    for (size_t i = 0; i < tr__gguf_value_count(r->gguf); i++) {
        const char *name = tr__gguf_value_at(r->gguf, i)->key;
        bool own = strncmp(name, r->name, length) == 0 && name[length] == '.';
        if (own && !is_known(name + length + 1, keys, count)) {
            return tr_fail(err, TR_IO, "%s: the metadata's %.80s is not supported",
                           tr__gguf_path(r->gguf), name);
        }
    }
    return TR_OK;
}

// ---- numbers

static tr_status set(const reader *r, const char *name, json_t *value, tr_error *err) {
    return json_object_set_new(r->keys, name, value) == 0 ? TR_OK : no_memory(err);
}

// *out: -1 where the key is not there.
static tr_status read_own(const reader *r, const char *name, int64_t *out,
                          tr_error *err) {
    char full[TR_VALUE_KEY_MAX];
    *out = -1;
    return tr__value_integer(r->gguf, tr__value_key(full, r->name, name), out, err);
}

static tr_status copy_key(const reader *r, const key *one, tr_error *err) {
    char full[TR_VALUE_KEY_MAX];
    double number = -1;
    int64_t whole = -1;
    tr__value_key(full, r->name, one->theirs);
    tr_status status = one->real ? tr__value_number(r->gguf, full, &number, err)
                                 : tr__value_integer(r->gguf, full, &whole, err);
    if (status != TR_OK) {
        return status;
    }
    if (!tr__gguf_find(r->gguf, full)) {
        return tr_fail(err, TR_IO, "%s: its metadata has no %s", tr__gguf_path(r->gguf),
                       full);
    }
    return set(r, one->ours, one->real ? json_real(number) : json_integer(whole), err);
}

static tr_status copy_keys(const reader *r, const key *keys, size_t count,
                           tr_error *err) {
    tr_status status = check_known(r, keys, count, err);
    for (size_t i = 0; i < count && status == TR_OK; i++) {
        status = copy_key(r, &keys[i], err);
    }
    return status;
}

static int64_t number_of(const reader *r, const char *name) {
    return (int64_t)json_integer_value(json_object_get(r->keys, name));
}

static tr_status read_heads(const reader *r, tr_error *err) {
    int64_t heads = number_of(r, "num_attention_heads");
    int64_t width = number_of(r, "hidden_size"), kv = 0, keys = 0, values = 0;
    tr_status status = read_own(r, "attention.head_count_kv", &kv, err);
    status = status == TR_OK ? read_own(r, "attention.key_length", &keys, err) : status;
    if (status == TR_OK) {
        status = read_own(r, "attention.value_length", &values, err);
    }
    if (status != TR_OK) {
        return status;
    }
    int64_t usual = heads > 0 ? width / heads : 0;
    keys = keys < 0 ? usual : keys;
    values = values < 0 ? usual : values;
    if (keys != values) {
        return tr_fail(err, TR_IO,
                       "%s: heads have keys of %lld numbers and values of %lld, which "
                       "is not supported",
                       tr__gguf_path(r->gguf), (long long)keys, (long long)values);
    }
    status = set(r, "head_dim", json_integer(keys), err);
    return status == TR_OK
               ? set(r, "num_key_value_heads", json_integer(kv < 0 ? heads : kv), err)
               : status;
}

// ---- what the tensors say

static bool has(const reader *r, const char *tensor) {
    return tr__gguf_find_tensor(r->gguf, tensor) != NULL;
}

static tr_status read_vocabulary(const reader *r, tr_error *err) {
    const tr_gguf_tensor *tensor = tr__gguf_find_tensor(r->gguf, "token_embd.weight");
    return tensor ? set(r, "vocab_size", json_integer(tensor->dim[1]), err)
                  : tr_fail(err, TR_IO, "%s: has no tensor token_embd.weight",
                            tr__gguf_path(r->gguf));
}

static tr_status read_flags(const reader *r, tr_error *err) {
    bool llama = strcmp(r->name, "llama") == 0, qwen2 = strcmp(r->name, "qwen2") == 0;
    tr_status status =
        set(r, "tie_word_embeddings", json_boolean(!has(r, "output.weight")), err);
    if (status == TR_OK && !qwen2) {
        status =
            set(r, "attention_bias", json_boolean(has(r, "blk.0.attn_q.bias")), err);
    }
    return status == TR_OK && llama
               ? set(r, "mlp_bias", json_boolean(has(r, "blk.0.ffn_gate.bias")), err)
               : status;
}

static tr_status read_token(const reader *r, const char *theirs, const char *ours,
                            tr_error *err) {
    int64_t id = -1;
    tr_status status = tr__value_integer(r->gguf, theirs, &id, err);
    return status == TR_OK && id >= 0 && id < number_of(r, "vocab_size")
               ? set(r, ours, json_integer(id), err)
               : status;
}

static tr_status read_tokens(const reader *r, tr_error *err) {
    tr_status status =
        read_token(r, "tokenizer.ggml.bos_token_id", "bos_token_id", err);
    if (status == TR_OK) {
        status = read_token(r, "tokenizer.ggml.eos_token_id", "eos_token_id", err);
    }
    return status == TR_OK
               ? read_token(r, "tokenizer.ggml.padding_token_id", "pad_token_id", err)
               : status;
}

// ---- the families

static tr_status read_llama(const reader *r, tr_error *err) {
    int64_t experts = 0;
    tr_status status = copy_keys(r, llama_keys, COUNT_OF(llama_keys), err);
    status = status == TR_OK ? read_own(r, "expert_count", &experts, err) : status;
    if (status == TR_OK && experts > 0) {
        return tr_fail(err, TR_IO,
                       "%s: is a mixture of experts, which is not supported",
                       tr__gguf_path(r->gguf));
    }
    status = status == TR_OK ? read_heads(r, err) : status;
    status = status == TR_OK ? read_flags(r, err) : status;
    int64_t head = number_of(r, "head_dim");
    if (status == TR_OK && (head < 2 || head > 65536)) {
        return tr_fail(err, TR_IO, "%s: heads of %lld numbers cannot be",
                       tr__gguf_path(r->gguf), (long long)head);
    }
    return status == TR_OK ? tr__rope_config(r->gguf, r->name, (int)head, r->keys, err)
                           : status;
}

static tr_status read_all(const reader *r, tr_error *err) {
    tr_status status = set(r, "model_type", json_string(r->name), err);
    status = status == TR_OK ? read_vocabulary(r, err) : status;
    if (status == TR_OK) {
        status = strcmp(r->name, "gpt2") == 0
                     ? copy_keys(r, gpt2_keys, COUNT_OF(gpt2_keys), err)
                     : read_llama(r, err);
    }
    return status == TR_OK ? read_tokens(r, err) : status;
}

// The keys come from a file, so what is wrong with them is wrong with it.
static tr_status make(const reader *r, tr_model **out, tr_error *err) {
    tr_error own = {0};
    tr_status status =
        tr__model_from_json(r->keys, tr__gguf_path(r->gguf), true, out, &own);
    return status == TR_OK
               ? TR_OK
               : tr_fail(err, status == TR_USAGE ? TR_IO : status, "%s", own.message);
}

tr_status tr__config_model(const tr_gguf *gguf, tr_model **out, tr_error *err) {
    reader r = {.gguf = gguf, .keys = json_object()};
    tr_status status = r.keys ? check_kind(gguf, err) : no_memory(err);
    status = status == TR_OK ? find_architecture(gguf, &r.name, err) : status;
    status = status == TR_OK ? read_all(&r, err) : status;
    status = status == TR_OK ? make(&r, out, err) : status;
    json_decref(r.keys);
    return status;
}

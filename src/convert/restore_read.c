// The list of tokens in a GGUF file.
#include "base/memory.h"
#include "convert/restore.h"
#include "convert/values.h"
#include "text/tokenizer/vocabulary.h"
#include "text/unicode/utf8.h"

#include <stdio.h>
#include <string.h>

static tr_status fail(const tr_restorer *r, const char *key, const char *problem,
                      tr_error *err) {
    return tr_fail(err, TR_IO, "%s: the metadata's %s %s", r->path, key, problem);
}

// A list of this many elements; *out is NULL where it may be missing, and is.
static tr_status find_list(const tr_restorer *r, const char *key, bool texts,
                           const tr_gguf_value **out, tr_error *err) {
    *out = tr__gguf_find(r->gguf, key);
    if (*out && (!(*out)->array || ((*out)->kind == TR_GGUF_TEXT) != texts)) {
        return fail(r, key, texts ? "must be a list of texts" : "must be numbers", err);
    }
    return TR_OK;
}

static tr_status find_column(const tr_restorer *r, const char *key,
                             const tr_gguf_value **out, tr_error *err) {
    tr_status status = find_list(r, key, false, out, err);
    return status == TR_OK && *out && (*out)->count != r->count
               ? fail(r, key, "must have a number for each token", err)
               : status;
}

static tr_status fail_token(const tr_restorer *r, int64_t id, const char *problem,
                            tr_error *err) {
    return tr_fail(err, TR_IO, "%s: token %lld of tokenizer.ggml.tokens %s", r->path,
                   (long long)id, problem);
}

static tr_status check_token(const tr_restorer *r, int64_t id, tr_error *err) {
    const tr_listed_token *one = &r->token[id];
    if (one->bytes == 0 || one->bytes > TR_TOKEN_BYTES_MAX) {
        return fail_token(r, id, "is empty or too long", err);
    }
    return tr__utf8_valid((const unsigned char *)one->text, one->bytes) == one->bytes &&
                   !memchr(one->text, 0, one->bytes)
               ? TR_OK
               : fail_token(r, id, "is no text in UTF-8", err);
}

// An id without a token, as converters name it.
static bool is_padding(const tr_listed_token *one, int64_t id) {
    char text[32];
    snprintf(text, sizeof text, "[PAD%lld]", (long long)id);
    return one->type == TR_GGUF_UNUSED && strcmp(text, one->text) == 0;
}

static tr_status add_token(tr_restorer *r, int64_t id, tr_error *err) {
    tr_listed_token *one = &r->token[id];
    tr_status status = check_token(r, id, err);
    if (status != TR_OK) {
        return status;
    }
    if (is_padding(one, id)) {
        one->text = NULL;
        return TR_OK;
    }
    if (json_object_get(r->vocabulary, one->text)) {
        return fail_token(r, id, "is there twice", err);
    }
    return json_object_set_new(r->vocabulary, one->text, json_integer(id)) == 0
               ? TR_OK
               : tr_fail(err, TR_MEMORY, "no memory for a vocabulary");
}

static tr_status read_list(tr_restorer *r, tr_error *err) {
    const tr_gguf_value *texts, *types, *scores;
    tr_status status = find_list(r, "tokenizer.ggml.tokens", true, &texts, err);
    if (status == TR_OK && (!texts || texts->count != r->count)) {
        return fail(r, "tokenizer.ggml.tokens",
                    "must have as many tokens as token_embd.weight has rows", err);
    }
    if (status == TR_OK) {
        status = find_column(r, "tokenizer.ggml.token_type", &types, err);
    }
    if (status == TR_OK) {
        status = find_column(r, "tokenizer.ggml.scores", &scores, err);
    }
    for (int64_t i = 0; i < r->count && status == TR_OK; i++) {
        int64_t type = TR_GGUF_NORMAL;
        double score = 0;
        r->token[i].text = tr__gguf_text(texts, i, &r->token[i].bytes);
        if ((types && !tr__gguf_integer(types, i, &type)) ||
            (scores && !tr__gguf_number(scores, i, &score))) {
            return fail_token(r, i, "has a type or a score that is no number", err);
        }
        r->token[i].type = (int)type;
        r->token[i].score = (float)score;
        status = add_token(r, i, err);
    }
    return status;
}

static tr_status read_roles(tr_restorer *r, tr_error *err) {
    static const char *const keys[TR_ROLES] = {
        [TR_ROLE_BOS] = "tokenizer.ggml.bos_token_id",
        [TR_ROLE_EOS] = "tokenizer.ggml.eos_token_id",
        [TR_ROLE_UNK] = "tokenizer.ggml.unknown_token_id",
        [TR_ROLE_PAD] = "tokenizer.ggml.padding_token_id"};
    tr_status status = TR_OK;
    for (int i = 0; i < TR_ROLES && status == TR_OK; i++) {
        int64_t id = -1;
        status = tr__value_integer(r->gguf, keys[i], &id, err);
        bool there = id >= 0 && id < r->count && r->token[id].text;
        r->role[i] = there ? (int32_t)id : -1;
    }
    return status;
}

static tr_status read_flags(tr_restorer *r, tr_error *err) {
    // What llama.cpp takes where the file does not say.
    r->add_bos = !r->bytes || r->pre->ignore_merges;
    r->add_prefix = !r->bytes;
    tr_status status =
        tr__value_bool(r->gguf, "tokenizer.ggml.add_bos_token", &r->add_bos, err);
    if (status == TR_OK) {
        status =
            tr__value_bool(r->gguf, "tokenizer.ggml.add_eos_token", &r->add_eos, err);
    }
    if (status == TR_OK && !r->bytes) {
        status = tr__value_bool(r->gguf, "tokenizer.ggml.add_space_prefix",
                                &r->add_prefix, err);
    }
    r->add_bos = r->add_bos && r->role[TR_ROLE_BOS] >= 0;
    r->add_eos = r->add_eos && r->role[TR_ROLE_EOS] >= 0;
    return status;
}

static tr_status read_pre(tr_restorer *r, tr_error *err) {
    const char *name = "(none)";
    tr_status status = tr__value_text(r->gguf, "tokenizer.ggml.pre", &name, err);
    r->pre = tr__pre_named(name);
    return status != TR_OK || r->pre || !r->bytes
               ? status
               : tr_fail(err, TR_IO,
                         "%s: the pre-tokenizer \"%.40s\" (tokenizer.ggml.pre) is not "
                         "supported",
                         r->path, name);
}

tr_status tr__restore_read(tr_restorer *r, int64_t vocabulary, tr_error *err) {
    r->count = vocabulary;
    r->token = tr__calloc((size_t)vocabulary, sizeof *r->token);
    r->vocabulary = json_object();
    if (!r->token || !r->vocabulary) {
        return tr_fail(err, TR_MEMORY, "no memory for a vocabulary");
    }
    tr_status status = read_pre(r, err);
    status = status == TR_OK ? read_list(r, err) : status;
    status = status == TR_OK ? read_roles(r, err) : status;
    return status == TR_OK ? read_flags(r, err) : status;
}

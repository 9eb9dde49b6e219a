// A tokenizer.json as the metadata of a GGUF file.
#include "base/files.h"
#include "base/memory.h"
#include "convert/pre.h"
#include "convert/tokens.h"
#include "text/tokenizer/byte_level.h"
#include "text/tokenizer/tokenizer.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FILE_MAX = 512 << 20, BYTES = 256, PADDING_BYTES = 24 };
// Of a token that no merge makes: below those of all that one makes.
static const float unmade = -1e6f;

typedef struct describer {
    tr_gguf_writer *writer;
    const char *file;
    const json_t *root, *model; // of tokenizer.json
    tr_tokenizer *tokenizer;
    tr_listed_token *token; // [count]
    size_t count;
    char (*padding)[PADDING_BYTES]; // [count] texts of ids without a token
    const tr_log *log;
} describer;

bool tr__is_byte_token(const char *text, size_t bytes) {
    static const char digits[] = "0123456789ABCDEF";
    return bytes == 6 && memcmp(text, "<0x", 3) == 0 && text[5] == '>' &&
           memchr(digits, text[3], 16) && memchr(digits, text[4], 16);
}

static const char *text_of(const json_t *object, const char *key) {
    return json_string_value(json_object_get(object, key));
}

static bool is_type(const json_t *object, const char *type) {
    const char *text = text_of(object, "type");
    return text && strcmp(text, type) == 0;
}

static bool has_text(const json_t *object, const char *key) {
    return json_string_length(json_object_get(object, key)) > 0;
}

static tr_status refuse(const describer *d, const char *part, tr_error *err) {
    return tr_fail(err, TR_DATA,
                   "%s: its %s is none that llama.cpp has, so the tokenizer cannot be "
                   "exported",
                   d->file, part);
}

// ---- the list

static tr_status list_tokens(describer *d, int64_t vocabulary, tr_error *err) {
    d->count = (size_t)vocabulary;
    d->token = tr__calloc(d->count, sizeof *d->token);
    d->padding = tr__calloc(d->count, sizeof *d->padding);
    if (!d->token || !d->padding) {
        return tr_fail(err, TR_MEMORY, "no memory for a list of tokens");
    }
    if (tr_tokenizer_vocabulary(d->tokenizer) > vocabulary) {
        return tr_fail(err, TR_DATA,
                       "%s: has %lld tokens, and the model %lld; is this its "
                       "tokenizer?",
                       d->file, (long long)tr_tokenizer_vocabulary(d->tokenizer),
                       (long long)vocabulary);
    }
    for (size_t i = 0; i < d->count; i++) {
        tr_listed_token *one = &d->token[i];
        one->text = tr_tokenizer_token(d->tokenizer, (int32_t)i, &one->bytes);
        one->type = TR_GGUF_NORMAL;
        if (!one->text) {
            one->bytes = (size_t)snprintf(d->padding[i], PADDING_BYTES, "[PAD%zu]", i);
            one->text = d->padding[i];
            one->type = TR_GGUF_UNUSED;
        }
    }
    const tr_added *added = &d->tokenizer->added;
    for (size_t i = 0; i < added->count; i++) {
        size_t id = (size_t)added->token[i].id;
        d->token[id].type =
            added->token[i].special ? TR_GGUF_CONTROL : TR_GGUF_USER_DEFINED;
    }
    return TR_OK;
}

static void put_list(const describer *d, bool scores) {
    tr_gguf_writer *w = d->writer;
    tr__gguf_put_list(w, "tokenizer.ggml.tokens", TR_GGUF_TEXT, d->count);
    for (size_t i = 0; i < d->count; i++) {
        tr__gguf_add_text(w, d->token[i].text, d->token[i].bytes);
    }
    if (scores) {
        tr__gguf_put_list(w, "tokenizer.ggml.scores", TR_GGUF_FLOAT, d->count);
    }
    for (size_t i = 0; i < d->count && scores; i++) {
        tr__gguf_add_float(w, d->token[i].score);
    }
    tr__gguf_put_list(w, "tokenizer.ggml.token_type", TR_GGUF_I32, d->count);
    for (size_t i = 0; i < d->count; i++) {
        tr__gguf_add_i32(w, d->token[i].type);
    }
}

static void put_text(tr_gguf_writer *w, const char *key, const char *text) {
    tr__gguf_put_text(w, key, text, strlen(text));
}

// ---- merges

// A merge as "a b", whichever way the file has it: text [*bytes], blank: of the blank.
// false: no memory, or it is none (which the tokenizer has found out before).
static bool merge_text(const json_t *merge, char **text, size_t *bytes, size_t *blank) {
    const json_t *a = json_array_get(merge, 0), *b = json_array_get(merge, 1);
    if (json_is_string(merge)) {
        *text = tr__strdup(json_string_value(merge));
        *bytes = json_string_length(merge);
    } else {
        *text = tr__format("%s %s", json_string_value(a), json_string_value(b));
        *bytes = json_string_length(a) + json_string_length(b) + 1;
    }
    if (!*text) {
        return false;
    }
    const char *found = strchr(*text, ' ');
    *blank = json_is_string(merge) ? (size_t)(found ? found - *text : 0)
                                   : json_string_length(a);
    return true;
}

static tr_status put_merges(const describer *d, tr_error *err) {
    const json_t *merges = json_object_get(d->model, "merges");
    size_t count = json_array_size(merges);
    tr__gguf_put_list(d->writer, "tokenizer.ggml.merges", TR_GGUF_TEXT, count);
    for (size_t i = 0; i < count; i++) {
        char *text = NULL;
        size_t bytes = 0, blank = 0;
        if (!merge_text(json_array_get(merges, i), &text, &bytes, &blank)) {
            return tr_fail(err, TR_MEMORY, "no memory for a merge");
        }
        tr__gguf_add_text(d->writer, text, bytes);
        tr__free(text);
    }
    return TR_OK;
}

// SentencePiece has no list of merges: of two neighbours that make a token, those that
// make the one with the highest score are joined first.
static tr_status score_tokens(const describer *d, tr_error *err) {
    const json_t *merges = json_object_get(d->model, "merges");
    float rank = 0;
    for (size_t i = 0; i < d->count; i++) {
        d->token[i].score = d->token[i].type == TR_GGUF_NORMAL ? unmade : 0;
    }
    for (size_t i = 0; i < json_array_size(merges); i++) {
        char *text = NULL;
        size_t bytes = 0, blank = 0;
        if (!merge_text(json_array_get(merges, i), &text, &bytes, &blank)) {
            return tr_fail(err, TR_MEMORY, "no memory for a merge");
        }
        memmove(text + blank, text + blank + 1, bytes - blank);
        int32_t id = tr_tokenizer_find(d->tokenizer, text);
        if (id >= 0 && d->token[id].score == unmade) {
            d->token[id].score = -rank++;
        }
        tr__free(text);
    }
    return TR_OK;
}

// ---- the two kinds

static tr_status describe_bytes(describer *d, tr_error *err) {
    const json_t *normalizer = json_object_get(d->root, "normalizer");
    bool ignore = json_is_true(json_object_get(d->model, "ignore_merges"));
    const tr_pre *pre = tr__pre_of(json_object_get(d->root, "pre_tokenizer"), ignore);
    if (!pre) {
        return refuse(d, "pre-tokenizer", err);
    }
    if (json_is_object(normalizer) && !is_type(normalizer, "NFC")) {
        return refuse(d, "normalizer", err);
    }
    if (json_is_object(normalizer) && !pre->nfc) {
        tr__note(d->log, "llama.cpp does not normalize texts (NFC), as %s does",
                 d->file);
    }
    if (has_text(d->model, "continuing_subword_prefix") ||
        has_text(d->model, "end_of_word_suffix")) {
        return refuse(d, "model", err);
    }
    put_text(d->writer, "tokenizer.ggml.model", "gpt2");
    put_text(d->writer, "tokenizer.ggml.pre", pre->names[0]);
    put_list(d, false);
    return put_merges(d, err);
}

// Blanks become "▁", and one may come before the text.
static bool sees_blanks(const json_t *step, bool *prefix) {
    static const char mark[] = "\xe2\x96\x81";
    const char *scheme = text_of(step, "prepend_scheme");
    const char *to = text_of(step, "content");
    const char *put = text_of(step, "prepend");
    if (is_type(step, "Prepend")) {
        *prefix = true;
        return put && strcmp(put, mark) == 0;
    }
    if (is_type(step, "Metaspace")) {
        *prefix = scheme ? strcmp(scheme, "never") != 0
                         : !json_is_false(json_object_get(step, "add_prefix_space"));
        return !json_is_true(json_object_get(step, "split"));
    }
    return is_type(step, "Replace") && to && strcmp(to, mark) == 0;
}

static bool all_see_blanks(const json_t *part, const char *list, bool *prefix) {
    const json_t *steps = json_object_get(part, list);
    bool good = true;
    if (!json_is_object(part) || !is_type(part, "Sequence")) {
        return !json_is_object(part) || sees_blanks(part, prefix);
    }
    for (size_t i = 0; i < json_array_size(steps) && good; i++) {
        good = sees_blanks(json_array_get(steps, i), prefix);
    }
    return good;
}

static tr_status describe_pieces(describer *d, tr_error *err) {
    const char *unknown = text_of(d->model, "unk_token");
    bool prefix = false;
    if (!all_see_blanks(json_object_get(d->root, "normalizer"), "normalizers",
                        &prefix)) {
        return refuse(d, "normalizer", err);
    }
    if (!all_see_blanks(json_object_get(d->root, "pre_tokenizer"), "pretokenizers",
                        &prefix)) {
        return refuse(d, "pre-tokenizer", err);
    }
    for (size_t i = 0; i < d->count; i++) {
        tr_listed_token *one = &d->token[i];
        if (tr__is_byte_token(one->text, one->bytes)) {
            one->type = TR_GGUF_BYTE;
        }
    }
    int32_t id = unknown ? tr_tokenizer_find(d->tokenizer, unknown) : -1;
    if (id >= 0) {
        d->token[id].type = TR_GGUF_UNKNOWN;
    }
    tr_status status = score_tokens(d, err);
    put_text(d->writer, "tokenizer.ggml.model", "llama");
    put_text(d->writer, "tokenizer.ggml.pre", "default");
    put_list(d, true);
    tr__gguf_put_bool(d->writer, "tokenizer.ggml.add_space_prefix", prefix);
    return status;
}

static tr_status describe_file(describer *d, int64_t vocabulary, tr_error *err) {
    d->model = json_object_get(d->root, "model");
    tr_status status = list_tokens(d, vocabulary, err);
    if (status != TR_OK) {
        return status;
    }
    if (d->tokenizer->model != TR_TOKENS_BPE) {
        return refuse(d, "model", err);
    }
    return json_is_true(json_object_get(d->model, "byte_fallback"))
               ? describe_pieces(d, err)
               : describe_bytes(d, err);
}

// ---- without a tokenizer.json

// Each byte is a token. 0xff, which no text in UTF-8 has, ends one: files cannot say
// that none does.
static void describe_plain_bytes(tr_gguf_writer *w) {
    put_text(w, "tokenizer.ggml.model", "gpt2");
    put_text(w, "tokenizer.ggml.pre", "gpt-2");
    tr__gguf_put_list(w, "tokenizer.ggml.tokens", TR_GGUF_TEXT, BYTES);
    for (int i = 0; i < BYTES; i++) {
        unsigned char text[TR_UTF8_MAX];
        size_t bytes = tr__utf8_write(tr__byte_level_character((unsigned char)i), text);
        tr__gguf_add_text(w, (const char *)text, bytes);
    }
    tr__gguf_put_list(w, "tokenizer.ggml.token_type", TR_GGUF_I32, BYTES);
    for (int i = 0; i < BYTES; i++) {
        tr__gguf_add_i32(w, TR_GGUF_NORMAL);
    }
    tr__gguf_put_list(w, "tokenizer.ggml.merges", TR_GGUF_TEXT, 0);
    tr__gguf_put_u32(w, "tokenizer.ggml.bos_token_id", BYTES - 1);
    tr__gguf_put_u32(w, "tokenizer.ggml.eos_token_id", BYTES - 1);
    tr__gguf_put_bool(w, "tokenizer.ggml.add_bos_token", false);
    tr__gguf_put_bool(w, "tokenizer.ggml.add_eos_token", false);
}

static tr_status read_root(describer *d, json_t **root, tr_error *err) {
    char *text = NULL;
    size_t bytes = 0;
    json_error_t problem;
    tr_status status = tr__file_read(d->file, FILE_MAX, &text, &bytes, err);
    if (status != TR_OK) {
        return status;
    }
    *root = json_loadb(text, bytes, JSON_ALLOW_NUL, &problem);
    tr__free(text);
    d->root = *root;
    return *root ? TR_OK
                 : tr_fail(err, TR_DATA, "%s: line %d, column %d: not valid JSON: %s",
                           d->file, problem.line, problem.column, problem.text);
}

tr_status tr__tokens_describe(tr_gguf_writer *writer, const char *folder,
                              int64_t vocabulary, const tr_log *log, tr_error *err) {
    char file[PATH_MAX];
    json_t *root = NULL;
    describer d = {.writer = writer, .file = file, .log = log};
    tr_status status = tr__path_join(file, sizeof file, folder, "tokenizer.json", err);
    if (status == TR_OK && access(file, F_OK) != 0) {
        if (vocabulary == BYTES) {
            describe_plain_bytes(writer);
            tr__note(log, "without a tokenizer.json, the 256 tokens are bytes");
        } else {
            put_text(writer, "tokenizer.ggml.model", "none");
            tr__note(log, "without a tokenizer.json, the file has token ids alone");
        }
        return TR_OK;
    }
    status = status == TR_OK ? tr_tokenizer_load(file, &d.tokenizer, err) : status;
    status = status == TR_OK ? read_root(&d, &root, err) : status;
    status = status == TR_OK ? describe_file(&d, vocabulary, err) : status;
    if (status == TR_OK) {
        status = tr__special_describe(writer, folder, d.tokenizer, log, err);
    }
    tr__free(d.token);
    tr__free(d.padding);
    tr_tokenizer_destroy(d.tokenizer);
    json_decref(root);
    return status;
}

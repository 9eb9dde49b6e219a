// The files of a tokenizer in a folder, of a GGUF file's metadata.
#include "base/files.h"
#include "base/memory.h"
#include "convert/restore.h"
#include "convert/values.h"
#include "files/safetensors/json.h"

#include <limits.h>
#include <string.h>

static tr_status write_text(const char *folder, const char *name, const char *text,
                            size_t bytes, tr_error *err) {
    char path[PATH_MAX];
    tr_status status = tr__path_join(path, sizeof path, folder, name, err);
    return status == TR_OK ? tr__file_replace(path, text, bytes, err) : status;
}

// Takes `root`; NULL: no memory.
static tr_status write_json(const char *folder, const char *name, json_t *root,
                            size_t flags, tr_error *err) {
    char *text = root ? tr__json_text(root, flags) : NULL;
    json_decref(root);
    tr_status status = text ? write_text(folder, name, text, strlen(text), err)
                            : tr_fail(err, TR_MEMORY, "no memory for %s", name);
    tr__free(text);
    return status;
}

static tr_status write_tokenizer(const tr_restorer *r, const char *folder,
                                 tr_error *err) {
    tr_error own = {0};
    json_t *root = tr__restore_json(r, &own);
    return root ? write_json(folder, "tokenizer.json", root, JSON_COMPACT, err)
                : tr_fail(err, own.status, "%s", own.message);
}

static tr_status write_config(const tr_restorer *r, const char *folder, tr_error *err) {
    static const char *const keys[TR_ROLES] = {[TR_ROLE_BOS] = "bos_token",
                                               [TR_ROLE_EOS] = "eos_token",
                                               [TR_ROLE_UNK] = "unk_token",
                                               [TR_ROLE_PAD] = "pad_token"};
    json_t *root = json_pack("{s:s, s:b}", "tokenizer_class", "PreTrainedTokenizerFast",
                             "clean_up_tokenization_spaces", 0);
    bool good = root != NULL;
    for (int i = 0; i < TR_ROLES && good; i++) {
        good = r->role[i] < 0 ||
               json_object_set_new(root, keys[i],
                                   json_string(r->token[r->role[i]].text)) == 0;
    }
    if (!good) {
        json_decref(root);
        root = NULL;
    }
    return write_json(folder, "tokenizer_config.json", root, JSON_INDENT(2), err);
}

static tr_status write_template(const tr_gguf *gguf, const char *folder,
                                tr_error *err) {
    const char *text = NULL;
    tr_status status = tr__value_text(gguf, "tokenizer.chat_template", &text, err);
    return status == TR_OK && text
               ? write_text(folder, "chat_template.jinja", text, strlen(text), err)
               : status;
}

static tr_status restore(tr_restorer *r, const char *folder, int64_t vocabulary,
                         tr_error *err) {
    tr_status status = tr__restore_read(r, vocabulary, err);
    status = status == TR_OK ? write_tokenizer(r, folder, err) : status;
    status = status == TR_OK ? write_config(r, folder, err) : status;
    return status == TR_OK ? write_template(r->gguf, folder, err) : status;
}

tr_status tr__tokens_restore(const tr_gguf *gguf, const char *folder,
                             int64_t vocabulary, tr_error *err) {
    const char *kind = "none";
    tr_restorer r = {.gguf = gguf, .path = tr__gguf_path(gguf)};
    tr_status status = tr__value_text(gguf, "tokenizer.ggml.model", &kind, err);
    if (status != TR_OK || strcmp(kind, "none") == 0 || strcmp(kind, "no_vocab") == 0) {
        return status;
    }
    r.bytes = strcmp(kind, "gpt2") == 0;
    if (!r.bytes && strcmp(kind, "llama") != 0) {
        return tr_fail(err, TR_IO,
                       "%s: a tokenizer of kind \"%.40s\" (tokenizer.ggml.model) is "
                       "not supported; supported are \"gpt2\" and \"llama\"",
                       r.path, kind);
    }
    status = restore(&r, folder, vocabulary, err);
    tr__free(r.token);
    json_decref(r.vocabulary);
    return status;
}

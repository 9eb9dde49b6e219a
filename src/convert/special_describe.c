// Special tokens and the chat template of a folder as the metadata of a GGUF file.
#include "base/files.h"
#include "base/memory.h"
#include "convert/tokens.h"
#include "text/tokenizer/tokenizer.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FILE_MAX = 64 << 20 };

// The files that name tokens, in the order in which they count.
typedef struct folder_files {
    json_t *tokenizer, *map, *model;
    const char *folder;
} folder_files;

// *root: NULL where there is no such file. Numbers do not matter, and one may be of
// more than 64 bits.
static tr_status read_json(const char *folder, const char *name, json_t **root,
                           tr_error *err) {
    char path[PATH_MAX], *text = NULL;
    size_t bytes = 0;
    json_error_t problem;
    tr_status status = tr__path_join(path, sizeof path, folder, name, err);
    if (status != TR_OK || access(path, F_OK) != 0) {
        return status;
    }
    status = tr__file_read(path, FILE_MAX, &text, &bytes, err);
    if (status != TR_OK) {
        return status;
    }
    *root = json_loadb(text, bytes, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &problem);
    tr__free(text);
    return json_is_object(*root) ? TR_OK
                                 : tr_fail(err, TR_DATA, "%s: is no JSON object", path);
}

static tr_status open_files(const char *folder, folder_files *f, tr_error *err) {
    f->folder = folder;
    tr_status status = read_json(folder, "tokenizer_config.json", &f->tokenizer, err);
    if (status == TR_OK) {
        status = read_json(folder, "special_tokens_map.json", &f->map, err);
    }
    return status == TR_OK ? read_json(folder, "config.json", &f->model, err) : status;
}

static void close_files(folder_files *f) {
    json_decref(f->tokenizer);
    json_decref(f->map);
    json_decref(f->model);
}

// ---- tokens with a role

// "<eos>", or {"content": "<eos>", ...}
static int32_t named(const tr_tokenizer *t, const json_t *root, const char *role) {
    char key[32];
    snprintf(key, sizeof key, "%s_token", role);
    const json_t *token = json_object_get(root, key);
    token = json_is_object(token) ? json_object_get(token, "content") : token;
    return json_is_string(token) ? tr_tokenizer_find(t, json_string_value(token)) : -1;
}

// A number, or a list of which the first counts.
static int32_t numbered(const tr_tokenizer *t, const json_t *root, const char *role) {
    char key[32];
    size_t bytes;
    snprintf(key, sizeof key, "%s_token_id", role);
    const json_t *value = json_object_get(root, key);
    value = json_is_array(value) ? json_array_get(value, 0) : value;
    double id = json_is_number(value) ? json_number_value(value) : -1;
    bool good =
        id >= 0 && id <= TR_TOKEN_ID_MAX && tr_tokenizer_token(t, (int32_t)id, &bytes);
    return good ? (int32_t)id : -1;
}

static int32_t find_role(const tr_tokenizer *t, const folder_files *f,
                         const char *role) {
    int32_t id = named(t, f->tokenizer, role);
    id = id < 0 ? named(t, f->map, role) : id;
    return id < 0 ? numbered(t, f->model, role) : id;
}

static void put_id(tr_gguf_writer *writer, const char *key, int32_t id) {
    if (id >= 0) {
        tr__gguf_put_u32(writer, key, (uint32_t)id);
    }
}

static bool is_one(const tr_token_ids *ids, int32_t id) {
    return ids->count == 1 && ids->id[0] == id && id >= 0;
}

static void describe_roles(tr_gguf_writer *writer, const folder_files *f,
                           const tr_tokenizer *t, const tr_log *log) {
    const tr_template *frame = &t->template;
    int32_t bos = find_role(t, f, "bos"), eos = find_role(t, f, "eos");
    if (bos < 0 && frame->before.count == 1) {
        bos = frame->before.id[0];
    }
    bool add_bos = is_one(&frame->before, bos), add_eos = is_one(&frame->after, eos);
    put_id(writer, "tokenizer.ggml.bos_token_id", bos);
    put_id(writer, "tokenizer.ggml.eos_token_id", eos);
    put_id(writer, "tokenizer.ggml.unknown_token_id", find_role(t, f, "unk"));
    put_id(writer, "tokenizer.ggml.padding_token_id", find_role(t, f, "pad"));
    if (eos < 0) {
        tr__note(log, "no token is known to end a text (eos_token of "
                      "tokenizer_config.json): llama.cpp takes one by its number");
    }
    tr__gguf_put_bool(writer, "tokenizer.ggml.add_bos_token", add_bos);
    tr__gguf_put_bool(writer, "tokenizer.ggml.add_eos_token", add_eos);
    if ((frame->before.count > 0 && !add_bos) || (frame->after.count > 0 && !add_eos)) {
        tr__note(log, "the tokens that tokenizer.json puts around a text are more than "
                      "llama.cpp knows, which puts none there");
    }
}

// ---- the template

// Of a list of named templates the one called "default".
static const json_t *find_template(const json_t *root, bool *others) {
    const json_t *found = json_object_get(root, "chat_template");
    for (size_t i = 0; json_is_array(found) && i < json_array_size(found); i++) {
        const json_t *one = json_array_get(found, i);
        const char *name = json_string_value(json_object_get(one, "name"));
        *others = true;
        if (name && strcmp(name, "default") == 0) {
            return json_object_get(one, "template");
        }
    }
    return found;
}

static tr_status describe_template(tr_gguf_writer *writer, const folder_files *f,
                                   const tr_log *log, tr_error *err) {
    static const char key[] = "tokenizer.chat_template";
    char path[PATH_MAX], *text = NULL;
    size_t bytes = 0;
    bool others = false;
    const json_t *inside = find_template(f->tokenizer, &others);
    tr_status status =
        tr__path_join(path, sizeof path, f->folder, "chat_template.jinja", err);
    if (status == TR_OK && access(path, F_OK) == 0) {
        status = tr__file_read(path, FILE_MAX, &text, &bytes, err);
        if (status == TR_OK) {
            tr__gguf_put_text(writer, key, text, bytes);
        }
        tr__free(text);
    } else if (status == TR_OK && json_is_string(inside)) {
        tr__gguf_put_text(writer, key, json_string_value(inside),
                          json_string_length(inside));
    }
    if (others) {
        tr__note(log, "of the chat templates, the one called \"default\" is exported "
                      "alone");
    }
    return status;
}

tr_status tr__special_describe(tr_gguf_writer *writer, const char *folder,
                               const tr_tokenizer *tokenizer, const tr_log *log,
                               tr_error *err) {
    folder_files f = {0};
    tr_status status = open_files(folder, &f, err);
    if (status == TR_OK) {
        describe_roles(writer, &f, tokenizer, log);
        status = describe_template(writer, &f, log, err);
    }
    close_files(&f);
    return status;
}

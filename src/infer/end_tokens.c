#include "infer/end_tokens.h"

#include "base/files.h"
#include "base/memory.h"
#include "files/safetensors/json.h"

#include <limits.h>
#include <unistd.h>

enum { CONFIG_MAX_BYTES = 1 << 20 };

static tr_status add(const char *path, const json_t *id, tr_end_tokens *out,
                     tr_error *err) {
    json_int_t value = json_is_integer(id) ? json_integer_value(id) : -1;
    if (value < 0 || value > INT32_MAX) {
        return tr_fail(err, TR_USAGE,
                       "%s: eos_token_id: expected a token id or a list of token ids",
                       path);
    }
    if (out->count == TR_END_TOKENS_MAX) {
        return tr_fail(err, TR_USAGE, "%s: eos_token_id: more than %d tokens", path,
                       TR_END_TOKENS_MAX);
    }
    out->id[out->count++] = (int32_t)value;
    return TR_OK;
}

static tr_status read_ids(const char *path, const json_t *ids, tr_end_tokens *out,
                          tr_error *err) {
    tr_status status = TR_OK;
    if (!json_is_array(ids)) {
        return add(path, ids, out, err);
    }
    for (size_t i = 0; i < json_array_size(ids) && status == TR_OK; i++) {
        status = add(path, json_array_get(ids, i), out, err);
    }
    return status;
}

// *found: the file is there and has the key.
static tr_status read_file(const char *folder, const char *name, bool *found,
                           tr_end_tokens *out, tr_error *err) {
    char path[PATH_MAX], *text = NULL;
    size_t bytes = 0;
    json_t *keys = NULL;
    *found = false;
    tr_status status = tr__path_join(path, sizeof path, folder, name, err);
    if (status != TR_OK || access(path, F_OK) != 0) {
        return status;
    }
    status = tr__file_read(path, CONFIG_MAX_BYTES, &text, &bytes, err);
    if (status == TR_OK) {
        status = tr__json_parse(path, text, bytes, &keys, err);
    }
    const json_t *ids = keys ? json_object_get(keys, "eos_token_id") : NULL;
    if (status == TR_OK && ids && !json_is_null(ids)) {
        *found = true;
        status = read_ids(path, ids, out, err);
    }
    json_decref(keys);
    tr__free(text);
    return status;
}

tr_status tr__end_tokens_read(const char *folder, tr_end_tokens *out, tr_error *err) {
    bool found = false;
    out->count = 0;
    tr_status status = read_file(folder, "generation_config.json", &found, out, err);
    return status == TR_OK && !found
               ? read_file(folder, "config.json", &found, out, err)
               : status;
}

bool tr__end_tokens_have(const tr_end_tokens *tokens, int32_t token) {
    for (int i = 0; i < tokens->count; i++) {
        if (tokens->id[i] == token) {
            return true;
        }
    }
    return false;
}

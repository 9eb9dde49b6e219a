#include "files/checkpoint/state.h"

#include "base/files.h"
#include "base/hash.h"
#include "base/memory.h"
#include "files/checkpoint/state_table.h"
#include "files/safetensors/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char format_name[] = "tranche checkpoint";
enum { FORMAT_VERSION = 1, STATE_BYTES_MAX = 1 << 20 };

// ---- the plain fields

static json_t *field_encode(const tr_state_row *item, const tr_state *state) {
    const void *at = (const char *)state + item->offset;
    switch (item->kind) {
    case TR_STATE_INTEGER:
        return json_integer(*(const int64_t *)at);
    case TR_STATE_UNSIGNED:
        return tr__json_u64(*(const uint64_t *)at);
    case TR_STATE_HASH:
        return tr__json_hash(*(const uint64_t *)at);
    case TR_STATE_REAL:
        return tr__json_double(*(const double *)at);
    }
    return NULL;
}

static bool field_decode(const tr_state_row *item, const json_t *value,
                         tr_state *state) {
    void *at = (char *)state + item->offset;
    switch (item->kind) {
    case TR_STATE_INTEGER:
        *(int64_t *)at = json_integer_value(value);
        return json_is_integer(value) && json_integer_value(value) >= 0;
    case TR_STATE_UNSIGNED:
        return tr__json_get_u64(value, at);
    case TR_STATE_HASH:
        return tr__json_get_hash(value, at);
    case TR_STATE_REAL:
        return tr__json_get_double(value, at);
    }
    return false;
}

// The object a field lives in, made when it is not there yet; NULL: no memory.
static json_t *section_of(json_t *root, const char *name) {
    json_t *section = name ? json_object_get(root, name) : root;
    if (!section && json_object_set_new(root, name, json_object()) == 0) {
        section = json_object_get(root, name);
    }
    return section;
}

// ---- numbers by name

// NULL: no memory, or a name that is not UTF-8.
static json_t *numbers_encode(const tr_state_numbers *numbers) {
    json_t *object = json_object();
    int failed = !object;
    for (int i = 0; !failed && i < numbers->count; i++) {
        failed = json_object_set_new(object, numbers->item[i].name,
                                     tr__json_double(numbers->item[i].value));
    }
    if (failed) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static bool numbers_decode(const json_t *object, tr_state_numbers *numbers) {
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value) {
        double number;
        if (!tr__json_get_double(value, &number) ||
            !tr__state_numbers_set(numbers, name, number)) {
            return false;
        }
    }
    return json_is_object(object);
}

// ---- betas

// NULL: no memory.
static json_t *betas_encode(const tr_state *state) {
    json_t *list = json_array();
    int failed = !list;
    for (int64_t i = 0; !failed && i < state->group_count; i++) {
        const double *power = state->beta_power[i];
        json_t *pair = json_array();
        failed = json_array_append_new(pair, tr__json_double(power[0])) != 0 ||
                 json_array_append_new(pair, tr__json_double(power[1])) != 0;
        if (failed) {
            json_decref(pair);
        } else {
            failed = json_array_append_new(list, pair);
        }
    }
    if (failed) {
        json_decref(list);
        return NULL;
    }
    return list;
}

static bool betas_decode(const json_t *list, tr_state *state) {
    size_t count = json_array_size(list);
    if (!json_is_array(list) || count > TR_STATE_GROUPS_MAX) {
        return false;
    }
    state->group_count = (int64_t)count;
    for (size_t i = 0; i < count; i++) {
        const json_t *pair = json_array_get(list, i);
        if (json_array_size(pair) != 2 ||
            !tr__json_get_double(json_array_get(pair, 0), &state->beta_power[i][0]) ||
            !tr__json_get_double(json_array_get(pair, 1), &state->beta_power[i][1])) {
            return false;
        }
    }
    return true;
}

// ---- manifest

const tr_file_record *tr__manifest_find(const tr_manifest *manifest, const char *name) {
    for (int i = 0; i < manifest->count; i++) {
        if (strcmp(manifest->file[i].name, name) == 0) {
            return &manifest->file[i];
        }
    }
    return NULL;
}

bool tr__manifest_same(const tr_manifest *a, const tr_manifest *b) {
    bool same = a->count == b->count;
    for (int i = 0; same && i < a->count; i++) {
        const tr_file_record *x = &a->file[i], *y = &b->file[i];
        same =
            strcmp(x->name, y->name) == 0 && x->bytes == y->bytes && x->hash == y->hash;
    }
    return same;
}

json_t *tr__manifest_json(const tr_manifest *manifest) {
    json_t *object = json_object();
    int failed = !object;
    for (int i = 0; !failed && i < manifest->count; i++) {
        const tr_file_record *file = &manifest->file[i];
        failed = json_object_set_new(object, file->name,
                                     json_pack("{s:I, s:o}", "bytes",
                                               (json_int_t)file->bytes, "xxh3_64",
                                               tr__json_hash(file->hash)));
    }
    if (failed) {
        json_decref(object);
        return NULL;
    }
    return object;
}

// Is it a file of the folder, or of a folder in it?
static bool is_inside(const char *name) {
    const char *slash = strchr(name, '/');
    const char *last = slash ? slash + 1 : name;
    return name[0] && name[0] != '/' && last[0] && last[0] != '.' &&
           !strchr(last, '/') && !(slash && name[0] == '.');
}

static bool manifest_decode(const json_t *object, tr_manifest *manifest) {
    const char *name;
    json_t *value;
    if (!json_is_object(object) || json_object_size(object) > TR_MANIFEST_FILES_MAX) {
        return false;
    }
    json_object_foreach((json_t *)object, name, value) {
        tr_file_record *file = &manifest->file[manifest->count++];
        const json_t *bytes = json_object_get(value, "bytes");
        size_t length = strlen(name);
        if (length >= sizeof file->name || !is_inside(name) ||
            !json_is_integer(bytes) || json_integer_value(bytes) < 0 ||
            !tr__json_get_hash(json_object_get(value, "xxh3_64"), &file->hash)) {
            return false;
        }
        memcpy(file->name, name, length + 1);
        file->bytes = json_integer_value(bytes);
    }
    return true;
}

// ---- the whole

static bool put_fields(json_t *root, const tr_state *state) {
    for (size_t i = 0; i < tr__state_rows; i++) {
        const tr_state_row *row = &tr__state_table[i];
        if (row->offset != TR_STATE_BY_NAME &&
            json_object_set_new(section_of(root, row->section), row->name,
                                field_encode(row, state)) != 0) {
            return false;
        }
    }
    return true;
}

json_t *tr__state_json(const tr_state *state) {
    json_t *root =
        json_pack("{s:s, s:i}", "format", format_name, "version", (int)FORMAT_VERSION);
    if (!root || !put_fields(root, state) ||
        json_object_set_new(root, "beta_powers", betas_encode(state)) != 0 ||
        json_object_set_new(root, "schedule", numbers_encode(&state->schedule)) != 0 ||
        json_object_set_new(root, "numbers", numbers_encode(&state->numbers)) != 0) {
        json_decref(root);
        return NULL;
    }
    return root;
}

// Of the content, whatever its layout on the page. False: no memory.
static bool content_hash(const json_t *root, uint64_t *hash) {
    char *text = tr__json_text(root, JSON_COMPACT | JSON_SORT_KEYS);
    *hash = text ? tr__hash_text(text) : 0;
    tr__free(text);
    return text != NULL;
}

tr_status tr__state_encode(const tr_state *state, const tr_manifest *manifest,
                           char **text, tr_error *err) {
    if (state->group_count < 0 || state->group_count > TR_STATE_GROUPS_MAX) {
        return tr_fail(err, TR_INTERNAL, "%" PRId64 " groups in a state, at most %d",
                       state->group_count, TR_STATE_GROUPS_MAX);
    }
    json_t *root = tr__state_json(state);
    char *dump = NULL;
    uint64_t hash = 0;
    if (root && json_object_set_new(root, "files", tr__manifest_json(manifest)) == 0 &&
        content_hash(root, &hash) &&
        json_object_set_new(root, "check", tr__json_hash(hash)) == 0) {
        dump = tr__json_text(root, JSON_INDENT(2));
    }
    json_decref(root);
    *text = dump ? tr__format("%s\n", dump) : NULL;
    tr__free(dump);
    return *text ? TR_OK : tr_fail(err, TR_MEMORY, "no memory to write a state");
}

static tr_status check_format(const char *path, json_t *root, tr_error *err) {
    const char *format = json_string_value(json_object_get(root, "format"));
    uint64_t hash = 0, own = 0;
    if (!format || strcmp(format, format_name) != 0) {
        return tr_fail(err, TR_IO, "%s: not a %s", path, format_name);
    }
    json_int_t version = json_integer_value(json_object_get(root, "version"));
    if (version != FORMAT_VERSION) {
        return tr_fail(err, TR_IO,
                       "%s: version %" JSON_INTEGER_FORMAT ", this program reads %d",
                       path, version, FORMAT_VERSION);
    }
    bool there = tr__json_get_hash(json_object_get(root, "check"), &hash);
    json_object_del(root, "check");
    if (there && !content_hash(root, &own)) {
        return tr_fail(err, TR_MEMORY, "no memory to read %s", path);
    }
    if (!there || own != hash) {
        return tr_fail(err, TR_IO, "%s: damaged: its content is not what was written",
                       path);
    }
    return TR_OK;
}

static tr_status decode_fields(const char *path, const json_t *root, tr_state *state,
                               tr_error *err) {
    for (size_t i = 0; i < tr__state_rows; i++) {
        const tr_state_row *item = &tr__state_table[i];
        const json_t *section =
            item->section ? json_object_get(root, item->section) : root;
        if (item->offset != TR_STATE_BY_NAME &&
            !field_decode(item, json_object_get(section, item->name), state)) {
            return tr_fail(err, TR_IO, "%s: '%s%s%s' is missing or not usable", path,
                           item->section ? item->section : "", item->section ? "." : "",
                           item->name);
        }
    }
    return TR_OK;
}

tr_status tr__state_decode(const char *path, const char *text, size_t bytes,
                           tr_state *state, tr_manifest *manifest, tr_error *err) {
    json_t *root = NULL;
    tr_status status = tr__json_parse(path, text, bytes, &root, err);
    if (status != TR_OK) {
        return status;
    }
    *state = (tr_state){0};
    *manifest = (tr_manifest){0};
    status = check_format(path, root, err);
    if (status == TR_OK) {
        status = decode_fields(path, root, state, err);
    }
    if (status == TR_OK &&
        (!betas_decode(json_object_get(root, "beta_powers"), state) ||
         !numbers_decode(json_object_get(root, "schedule"), &state->schedule) ||
         !numbers_decode(json_object_get(root, "numbers"), &state->numbers) ||
         !manifest_decode(json_object_get(root, "files"), manifest))) {
        status = tr_fail(err, TR_IO,
                         "%s: beta_powers, schedule, numbers or files is missing or "
                         "not usable",
                         path);
    }
    json_decref(root);
    return status;
}

tr_status tr__state_read(const char *path, tr_state *state, tr_manifest *manifest,
                         tr_error *err) {
    char *text = NULL;
    size_t bytes = 0;
    tr_status status = tr__file_read(path, STATE_BYTES_MAX, &text, &bytes, err);
    if (status == TR_OK) {
        status = tr__state_decode(path, text, bytes, state, manifest, err);
    }
    if (status == TR_OK) {
        status = tr__state_check(path, state, err);
    }
    tr__free(text);
    return status;
}

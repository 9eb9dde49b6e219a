#include "files/safetensors/header.h"

#include "base/checked.h"
#include "base/memory.h"
#include "files/safetensors/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

// What the messages are about. Names in a hostile file can be long: cut in messages.
#define TENSOR_FAIL "%s: tensor '%.200s': "

static bool printable(const char *text) {
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f) {
            return false;
        }
    }
    return true;
}

static tr_status parse_keys(const char *path, const char *name, const json_t *value,
                            tr_error *err) {
    static const char *const keys[] = {"dtype", "shape", "data_offsets"};
    if (!json_is_object(value)) {
        return tr_fail(err, TR_IO, TENSOR_FAIL "its entry is not an object", path,
                       name);
    }
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (!json_object_get(value, keys[i])) {
            return tr_fail(err, TR_IO, TENSOR_FAIL "no \"%s\"", path, name, keys[i]);
        }
    }
    if (json_object_size(value) != sizeof keys / sizeof *keys) {
        return tr_fail(err, TR_IO, TENSOR_FAIL "keys beside dtype, shape, data_offsets",
                       path, name);
    }
    return TR_OK;
}

static tr_status parse_dtype(const char *path, const json_t *value,
                             tr_stored_tensor *tensor, tr_error *err) {
    if (!json_is_string(value)) {
        return tr_fail(err, TR_IO, TENSOR_FAIL "dtype is not a string", path,
                       tensor->name);
    }
    const char *word = json_string_value(value);
    tensor->dtype = tr_dtype_find(word);
    if (tensor->dtype == TR_NONE) {
        return tr_fail(err, TR_IO, TENSOR_FAIL "dtype '%.40s' is not known", path,
                       tensor->name, printable(word) ? word : "?");
    }
    return TR_OK;
}

static tr_status parse_shape(const char *path, const json_t *value,
                             tr_stored_tensor *tensor, tr_error *err) {
    if (!json_is_array(value)) {
        return tr_fail(err, TR_IO, TENSOR_FAIL "shape is not an array", path,
                       tensor->name);
    }
    size_t rank = json_array_size(value);
    if (rank > TR_STORED_RANK_MAX) {
        return tr_fail(err, TR_IO, TENSOR_FAIL "%zu dimensions, at most %d are read",
                       path, tensor->name, rank, TR_STORED_RANK_MAX);
    }
    tensor->rank = (int)rank;
    tensor->count = 1;
    for (size_t i = 0; i < rank; i++) {
        const json_t *dim = json_array_get(value, i);
        if (!json_is_integer(dim) || json_integer_value(dim) < 0) {
            return tr_fail(err, TR_IO,
                           TENSOR_FAIL "dimension %zu is not an integer of 0 or more",
                           path, tensor->name, i);
        }
        tensor->dim[i] = json_integer_value(dim);
        if (!tr__mul_i64(tensor->count, tensor->dim[i], &tensor->count)) {
            return tr_fail(err, TR_IO, TENSOR_FAIL "shape overflows", path,
                           tensor->name);
        }
    }
    if (!tr__mul_i64(tensor->count, (int64_t)tr_dtype_bytes(tensor->dtype),
                     &tensor->bytes)) {
        return tr_fail(err, TR_IO, TENSOR_FAIL "size overflows", path, tensor->name);
    }
    return TR_OK;
}

static tr_status parse_offsets(const char *path, const json_t *value,
                               int64_t data_bytes, tr_stored_tensor *tensor,
                               tr_error *err) {
    const json_t *first = json_array_get(value, 0), *second = json_array_get(value, 1);
    if (json_array_size(value) != 2 || !json_is_integer(first) ||
        !json_is_integer(second)) {
        return tr_fail(err, TR_IO, TENSOR_FAIL "data_offsets is not two integers", path,
                       tensor->name);
    }
    int64_t begin = json_integer_value(first), end = json_integer_value(second);
    if (begin < 0 || end < begin) {
        return tr_fail(err, TR_IO,
                       TENSOR_FAIL "data_offsets [%" PRId64 ", %" PRId64
                                   "] are no range",
                       path, tensor->name, begin, end);
    }
    if (end > data_bytes) {
        return tr_fail(err, TR_IO,
                       TENSOR_FAIL "ends at byte %" PRId64
                                   " of the data, the file has %" PRId64
                                   " (cut short?)",
                       path, tensor->name, end, data_bytes);
    }
    if (end - begin != tensor->bytes) {
        return tr_fail(err, TR_IO,
                       TENSOR_FAIL "data_offsets hold %" PRId64
                                   " bytes, dtype and shape need %" PRId64,
                       path, tensor->name, end - begin, tensor->bytes);
    }
    tensor->offset = begin;
    return TR_OK;
}

static tr_status parse_tensor(const char *path, const char *name, const json_t *value,
                              int64_t data_bytes, tr_stored_tensor *tensor,
                              tr_error *err) {
    if (!printable(name)) {
        return tr_fail(err, TR_IO, "%s: a tensor's name holds control characters",
                       path);
    }
    tensor->name = tr__strdup(name);
    if (!tensor->name) {
        return tr_fail(err, TR_MEMORY, "no memory for the header of %s", path);
    }
    tr_status status = parse_keys(path, name, value, err);
    if (status == TR_OK) {
        status = parse_dtype(path, json_object_get(value, "dtype"), tensor, err);
    }
    if (status == TR_OK) {
        status = parse_shape(path, json_object_get(value, "shape"), tensor, err);
    }
    if (status == TR_OK) {
        status = parse_offsets(path, json_object_get(value, "data_offsets"), data_bytes,
                               tensor, err);
    }
    return status;
}

static tr_status parse_metadata(const char *path, json_t *value,
                                tr_tensor_header *header, tr_error *err) {
    const char *key;
    json_t *text;
    if (!json_is_object(value)) {
        return tr_fail(err, TR_IO, "%s: __metadata__ is not an object", path);
    }
    json_object_foreach(value, key, text) {
        if (!json_is_string(text)) {
            return tr_fail(err, TR_IO, "%s: __metadata__ holds more than strings",
                           path);
        }
    }
    header->metadata = json_incref(value);
    return TR_OK;
}

static int by_offset(const void *left, const void *right) {
    const tr_stored_tensor *a = left, *b = right;
    if (a->offset != b->offset) {
        return a->offset < b->offset ? -1 : 1;
    }
    return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

// Every byte of the data belongs to exactly one tensor.
static tr_status check_cover(const char *path, tr_tensor_header *header,
                             int64_t data_bytes, tr_error *err) {
    int64_t end = 0;
    if (header->count > 0) {
        qsort(header->tensors, header->count, sizeof *header->tensors, by_offset);
    }
    for (size_t i = 0; i < header->count; i++) {
        const tr_stored_tensor *tensor = &header->tensors[i];
        if (tensor->offset != end) {
            return tr_fail(err, TR_IO, TENSOR_FAIL "%s at byte %" PRId64 " of the data",
                           path, tensor->name,
                           tensor->offset < end ? "overlaps another tensor"
                                                : "leaves a gap before it",
                           tensor->offset < end ? tensor->offset : end);
        }
        end += tensor->bytes;
    }
    if (end != data_bytes) {
        return tr_fail(err, TR_IO,
                       "%s: %" PRId64 " bytes after the last tensor belong to none",
                       path, data_bytes - end);
    }
    return TR_OK;
}

tr_status tr__header_parse(const char *path, const char *text, size_t bytes,
                           int64_t data_bytes, tr_tensor_header *out, tr_error *err) {
    json_t *root = NULL, *value;
    const char *key;
    tr_tensor_header header = {0};
    if (bytes == 0 || text[0] != '{') {
        return tr_fail(err, TR_IO,
                       "%s: not a safetensors file: its header does not begin with '{'",
                       path);
    }
    tr_status status = tr__json_parse(path, text, bytes, &root, err);
    if (status != TR_OK) {
        return status;
    }
    header.tensors = tr__calloc(json_object_size(root), sizeof *header.tensors);
    if (!header.tensors) {
        status = tr_fail(err, TR_MEMORY, "no memory for the header of %s", path);
        goto cleanup;
    }
    json_object_foreach(root, key, value) {
        if (strcmp(key, "__metadata__") == 0) {
            status = parse_metadata(path, value, &header, err);
        } else {
            status = parse_tensor(path, key, value, data_bytes,
                                  &header.tensors[header.count++], err);
        }
        if (status != TR_OK) {
            goto cleanup;
        }
    }
    status = check_cover(path, &header, data_bytes, err);
    if (status == TR_OK) {
        *out = header;
        header = (tr_tensor_header){0};
    }
cleanup:
    tr__header_release(&header);
    json_decref(root);
    return status;
}

void tr__header_release(tr_tensor_header *header) {
    for (size_t i = 0; i < header->count; i++) {
        tr__free((char *)header->tensors[i].name);
    }
    tr__free(header->tensors);
    json_decref(header->metadata);
    *header = (tr_tensor_header){0};
}

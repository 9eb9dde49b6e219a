#include "files/safetensors/header.h"

#include "base/checked.h"
#include "base/memory.h"
#include "files/safetensors/json.h"

#include <stdlib.h>
#include <string.h>

static int before(const tr_tensor_spec *a, const tr_tensor_spec *b) {
    size_t wide = tr_dtype_bytes(a->dtype), other = tr_dtype_bytes(b->dtype);
    if (wide != other) {
        return wide > other ? -1 : 1;
    }
    return strcmp(a->name, b->name);
}

static int by_layout(const void *left, const void *right, void *specs) {
    const tr_tensor_spec *tensors = specs;
    return before(&tensors[*(const size_t *)left], &tensors[*(const size_t *)right]);
}

// {"dtype", "shape", "data_offsets"} of one tensor; NULL: no memory.
static json_t *entry(const tr_tensor_spec *tensor, int64_t begin, int64_t end) {
    json_t *shape = json_array();
    for (int i = 0; i < tensor->shape.rank; i++) {
        if (json_array_append_new(shape, json_integer(tensor->shape.dim[i])) != 0) {
            json_decref(shape);
            return NULL;
        }
    }
    return json_pack("{s:s, s:o, s:[I,I]}", "dtype", tr_dtype_name(tensor->dtype),
                     "shape", shape, "data_offsets", (json_int_t)begin,
                     (json_int_t)end);
}

// Adds one tensor at `*end`, which moves behind it.
static tr_status add(json_t *root, const tr_tensor_spec *tensor, int64_t *end,
                     tr_error *err) {
    tr_tensor_desc desc = {tensor->dtype, tensor->shape};
    int64_t bytes = tr_tensor_bytes(desc), begin = *end;
    if (tensor->dtype == TR_NONE || bytes < 0 || !tr__add_i64(begin, bytes, end)) {
        return tr_fail(err, TR_INTERNAL, "tensor '%s': no usable size", tensor->name);
    }
    if (strcmp(tensor->name, "__metadata__") == 0 ||
        json_object_get(root, tensor->name)) {
        return tr_fail(err, TR_INTERNAL, "two tensors named '%s'", tensor->name);
    }
    json_t *made = entry(tensor, begin, *end);
    if (!made) {
        return tr_fail(err, TR_MEMORY, "no memory for a safetensors header");
    }
    if (json_object_set_new(root, tensor->name, made) != 0) {
        return tr_fail(err, TR_INTERNAL,
                       "tensor '%s': cannot be put in a header: no memory, or a name "
                       "that is not UTF-8",
                       tensor->name);
    }
    return TR_OK;
}

// The length, the JSON and its padding in one piece of memory.
static tr_status render(const json_t *root, char **text, size_t *bytes, tr_error *err) {
    char *json = tr__json_text(root, JSON_COMPACT);
    size_t length = json ? strlen(json) : 0;
    uint64_t padded = (uint64_t)tr__round_up((int64_t)length, 8);
    if (padded > TR_HEADER_MAX) {
        tr__free(json);
        return tr_fail(err, TR_INTERNAL, "a safetensors header of %zu bytes", length);
    }
    char *whole = json ? tr__calloc(1, TR_HEADER_LENGTH_BYTES + padded) : NULL;
    if (whole) {
        memcpy(whole, &padded, TR_HEADER_LENGTH_BYTES); // little-endian hosts
        memcpy(whole + TR_HEADER_LENGTH_BYTES, json, length);
        memset(whole + TR_HEADER_LENGTH_BYTES + length, ' ', padded - length);
    }
    tr__free(json);
    if (!whole) {
        return tr_fail(err, TR_MEMORY, "no memory for a safetensors header");
    }
    *text = whole;
    *bytes = TR_HEADER_LENGTH_BYTES + padded;
    return TR_OK;
}

tr_status tr__header_compose(const tr_tensor_spec *tensors, size_t count,
                             int64_t *offset, size_t *order, char **text,
                             size_t *text_bytes, int64_t *file_bytes, tr_error *err) {
    int64_t end = 0;
    tr_status status = TR_OK;
    // What transformers looks for before it accepts a file.
    json_t *root = json_pack("{s:{s:s}}", "__metadata__", "format", "pt");
    if (!root) {
        return tr_fail(err, TR_MEMORY, "no memory for a safetensors header");
    }
    for (size_t i = 0; i < count; i++) {
        order[i] = i;
    }
    if (count > 0) {
        qsort_r(order, count, sizeof *order, by_layout, (void *)tensors);
    }
    for (size_t i = 0; i < count && status == TR_OK; i++) {
        offset[order[i]] = end;
        status = add(root, &tensors[order[i]], &end, err);
    }
    if (status == TR_OK) {
        status = render(root, text, text_bytes, err);
    }
    json_decref(root);
    for (size_t i = 0; i < count && status == TR_OK; i++) {
        offset[i] += (int64_t)*text_bytes;
    }
    *file_bytes = status == TR_OK ? end + (int64_t)*text_bytes : 0;
    return status;
}

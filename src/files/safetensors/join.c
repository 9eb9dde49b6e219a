// Tensors in 4 bits as bitsandbytes saves them, and transformers with it: beside
// <name>, which has the codes, there are <name>.absmax, <name>.quant_map,
// <name>.quant_state.bitsandbytes__nf4, whose bytes are JSON, and with double
// quantization <name>.nested_absmax and <name>.nested_quant_map.
#include "files/safetensors/inside.h"

#include "base/checked.h"
#include "base/dynamic_map.h"
#include "base/files.h"
#include "base/memory.h"
#include "files/safetensors/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char state_name[] = ".quant_state.bitsandbytes__";

enum { JSON_MOST = 1 << 12, NAME_BYTES = 512, DIM_MOST = 1 << 30 };

static tr_status fail(const tr_tensor_set *set, const tr_stored_tensor *tensor,
                      const char *what, tr_error *err) {
    return tr_fail(err, TR_IO, "%s: tensor '%.200s' in 4 bits: %s",
                   tr__tensor_set_path(set, tensor->file), tensor->name, what);
}

// The part of the tensor with this ending; NULL: it is missing.
static const tr_stored_tensor *part_of(const tr_tensor_set *set, const char *name,
                                       const char *end) {
    char whole[NAME_BYTES];
    int length = snprintf(whole, sizeof whole, "%s%s", name, end);
    return length > 0 && (size_t)length < sizeof whole ? tr__tensor_set_find(set, whole)
                                                       : NULL;
}

static bool has(const tr_stored_tensor *part, tr_dtype dtype, int64_t count) {
    return part && part->offset >= 0 && part->dtype == dtype && part->count == count;
}

// Are the part's numbers those that are known here?
static tr_status check_map(const tr_tensor_set *set, const tr_stored_tensor *tensor,
                           const char *end, const float *known, int count,
                           tr_error *err) {
    float values[TR_DYNAMIC_CODES];
    const tr_stored_tensor *part = part_of(set, tensor->name, end);
    if (!has(part, TR_F32, count)) {
        return fail(set, tensor, "the numbers that its codes stand for are missing",
                    err);
    }
    tr_status status = tr__tensor_read(set, part, 0, count, values, err);
    return status == TR_OK && memcmp(values, known, (size_t)count * sizeof *known) != 0
               ? fail(set, tensor, "its codes stand for other numbers than NF4's", err)
               : status;
}

// What the JSON says of it.
typedef struct described {
    int64_t rows, columns;
    bool twice;
    double mean;
} described;

static bool read_described(const json_t *state, described *out) {
    const char *type = json_string_value(json_object_get(state, "quant_type"));
    const json_t *shape = json_object_get(state, "shape");
    const json_t *nested = json_object_get(state, "nested_blocksize");
    const json_t *mean = json_object_get(state, "nested_offset");
    out->rows = json_integer_value(json_array_get(shape, 0));
    out->columns = json_integer_value(json_array_get(shape, 1));
    out->twice = nested != NULL;
    out->mean = json_number_value(mean);
    return type && strcmp(type, "nf4") == 0 && json_array_size(shape) == 2 &&
           out->rows > 0 && out->rows < DIM_MOST && out->columns > 0 &&
           out->columns < DIM_MOST &&
           json_integer_value(json_object_get(state, "blocksize")) == TR_NF4_BLOCK &&
           (!nested || (json_integer_value(nested) == TR_NF4_NESTED &&
                        json_is_number(mean) && isfinite(out->mean)));
}

static tr_status describe(const tr_tensor_set *set, const tr_stored_tensor *tensor,
                          const tr_stored_tensor *state, described *out,
                          tr_error *err) {
    char text[JSON_MOST];
    json_t *root = NULL;
    if (state->dtype != TR_U8 || state->count < 1 || state->count >= JSON_MOST) {
        return fail(set, tensor, "its description is no JSON", err);
    }
    tr_status status = tr__tensor_read(set, state, 0, state->count, text, err);
    if (status == TR_OK) {
        status = tr__json_parse(state->name, text, (size_t)state->count, &root, err);
    }
    if (status == TR_OK && !read_described(root, out)) {
        status = fail(set, tensor,
                      "it is described as other than NF4 in blocks of 64, or with "
                      "double quantization of 256",
                      err);
    }
    json_decref(root);
    return status;
}

// ---- one

static tr_status read_nested(const tr_tensor_set *set, const tr_stored_tensor *tensor,
                             const described *is, tr_tensor_bits *to, tr_error *err) {
    const tr_stored_tensor *nested = part_of(set, tensor->name, ".nested_absmax");
    int64_t groups = tr__ceil_div(to->at.blocks, TR_NF4_NESTED);
    if (!has(nested, TR_F32, groups)) {
        return fail(set, tensor, "its nested_absmax is missing, or of another size",
                    err);
    }
    to->nested = tr__calloc((size_t)groups + 1, sizeof *to->nested);
    if (!to->nested) {
        return tr_fail(err, TR_MEMORY, "no memory to read %s", tensor->name);
    }
    to->nested[groups] = (float)is->mean;
    tr_status status = tr__tensor_read(set, nested, 0, groups, to->nested, err);
    return status == TR_OK ? check_map(set, tensor, ".nested_quant_map",
                                       tr__dynamic_map(), TR_DYNAMIC_CODES, err)
                           : status;
}

static tr_status join(tr_tensor_set *set, tr_stored_tensor *tensor,
                      const tr_stored_tensor *state, tr_error *err) {
    described is = {0};
    tr_status status = describe(set, tensor, state, &is, err);
    const tr_stored_tensor *scales = part_of(set, tensor->name, ".absmax");
    if (status != TR_OK) {
        return status;
    }
    tr_tensor_bits *to = &set->joined[set->joined_count++];
    int64_t count = is.rows * is.columns;
    *to =
        (tr_tensor_bits){.kind = is.twice ? TR_QUANTIZED_NF4_DOUBLE : TR_QUANTIZED_NF4};
    to->at = tr__quantized_layout(to->kind, count);
    if (!has(tensor, TR_U8, tr__code_bytes(to->kind, count)) ||
        !has(scales, is.twice ? TR_U8 : TR_F32, to->at.blocks)) {
        return fail(set, tensor, "codes or absmax are not as many as its shape asks",
                    err);
    }
    to->codes = *tensor;
    to->scales = *scales;
    to->scales.name = tensor->name; // its own is let go
    status = check_map(set, tensor, ".quant_map", tr__nf4_values, 16, err);
    status =
        status == TR_OK && is.twice ? read_nested(set, tensor, &is, to, err) : status;
    tensor->dtype = TR_F32;
    tensor->rank = 2;
    tensor->dim[0] = is.rows;
    tensor->dim[1] = is.columns;
    tensor->count = count;
    tensor->bytes = count * (int64_t)sizeof(float);
    tensor->offset = -(int64_t)set->joined_count;
    return status;
}

// ---- all

// Is it a part of the joined tensor `whole`, with whose name its own begins?
static bool is_part(const char *name, const char *whole) {
    static const char *const ends[] = {".absmax", ".quant_map", ".nested_absmax",
                                       ".nested_quant_map"};
    const char *end = name + strlen(whole);
    bool part = strncmp(end, state_name, sizeof state_name - 1) == 0;
    for (size_t i = 0; !part && i < sizeof ends / sizeof *ends; i++) {
        part = strcmp(end, ends[i]) == 0;
    }
    return part;
}

// Parts stand right behind their tensor, or only other tensors whose names begin with
// its name stand between.
static void drop_parts(tr_tensor_set *set) {
    const char *whole = NULL;
    size_t kept = 0;
    for (size_t i = 0; i < set->count; i++) {
        tr_stored_tensor *tensor = &set->tensors[i];
        bool behind = whole && strncmp(tensor->name, whole, strlen(whole)) == 0;
        if (behind && is_part(tensor->name, whole)) {
            // Its name may be that of a part which is read later: it is not needed.
            tr__free((char *)tensor->name);
            continue;
        }
        whole = tensor->offset < 0 ? tensor->name : behind ? whole : NULL;
        set->tensors[kept++] = *tensor;
    }
    set->count = kept;
}

static tr_status join_at(tr_tensor_set *set, size_t i, tr_error *err) {
    char name[NAME_BYTES];
    const tr_stored_tensor *state = &set->tensors[i];
    const char *at = strstr(state->name, state_name);
    if (!at || (size_t)(at - state->name) >= sizeof name) {
        return TR_OK;
    }
    memcpy(name, state->name, (size_t)(at - state->name));
    name[at - state->name] = '\0';
    tr_stored_tensor *tensor = (tr_stored_tensor *)tr__tensor_set_find(set, name);
    if (!tensor || tensor->offset < 0) {
        return fail(set, state, "it describes no tensor", err);
    }
    if (!tr__grow((void **)&set->joined, &set->joined_capacity, set->joined_count + 1,
                  sizeof *set->joined)) {
        return tr_fail(err, TR_MEMORY, "no memory for the list of tensors");
    }
    return join(set, tensor, state, err);
}

tr_status tr__tensors_join(tr_tensor_set *set, tr_error *err) {
    tr_status status = TR_OK;
    for (size_t i = 0; i < set->count && status == TR_OK; i++) {
        status = join_at(set, i, err);
    }
    if (status == TR_OK && set->joined_count > 0) {
        drop_parts(set);
    }
    return status;
}

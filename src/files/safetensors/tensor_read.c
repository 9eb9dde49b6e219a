#include "files/safetensors/tensor_set.h"

#include "base/checked.h"
#include "base/files.h"
#include "base/memory.h"
#include "files/safetensors/convert.h"
#include "files/safetensors/inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PIECE_BYTES = 32 << 10 };

static tr_status check_range(const tr_stored_tensor *tensor, int64_t first,
                             int64_t count, tr_error *err) {
    if (first < 0 || count < 0 || count > tensor->count - first) {
        return tr_fail(err, TR_INTERNAL,
                       "tensor '%.200s': %" PRId64 " elements from %" PRId64
                       " asked of %" PRId64,
                       tensor->name, count, first, tensor->count);
    }
    return TR_OK;
}

tr_status tr__tensor_read(const tr_tensor_set *set, const tr_stored_tensor *tensor,
                          int64_t first, int64_t count, void *dst, tr_error *err) {
    int64_t bytes = (int64_t)tr_dtype_bytes(tensor->dtype);
    tr_status status = check_range(tensor, first, count, err);
    const tr_tensor_bits *joined = tr__tensor_bits(set, tensor);
    if (status != TR_OK || joined) {
        return status == TR_OK
                   ? tr__tensor_bits_read(set, joined, first, count, dst, err)
                   : status;
    }
    if (set->pieced) {
        return tr__tensor_pieces_read(set, tensor, first, count, dst, err);
    }
    return tr__pread(tr__tensor_set_descriptor(set, tensor->file),
                     tr__tensor_set_path(set, tensor->file), dst,
                     (size_t)(count * bytes), tensor->offset + first * bytes, err);
}

static tr_status fail_value(const tr_tensor_set *set, const tr_stored_tensor *tensor,
                            const char *what, tr_error *err) {
    return tr_fail(err, TR_IO, "%s: tensor '%.200s' is %s: %s",
                   tr__tensor_set_path(set, tensor->file), tensor->name,
                   tr_dtype_name(tensor->dtype), what);
}

tr_status tr__tensor_read_f32(const tr_tensor_set *set, const tr_stored_tensor *tensor,
                              int64_t first, int64_t count, float *dst, tr_error *err) {
    _Alignas(16) unsigned char piece[PIECE_BYTES];
    if (tensor->dtype == TR_F32) {
        return tr__tensor_read(set, tensor, first, count, dst, err);
    }
    if (!tr__dtype_is_float(tensor->dtype)) {
        return fail_value(set, tensor, "a floating-point tensor is needed", err);
    }
    tr_status status = check_range(tensor, first, count, err);
    int64_t piece_count = PIECE_BYTES / (int64_t)tr_dtype_bytes(tensor->dtype);
    for (int64_t done = 0; status == TR_OK && done < count; done += piece_count) {
        int64_t now = tr__min_i64(piece_count, count - done);
        status = tr__tensor_read(set, tensor, first + done, now, piece, err);
        if (status == TR_OK &&
            tr__convert_f32(tensor->dtype, piece, now, dst + done) >= 0) {
            status = fail_value(set, tensor, "a value is too large for f32", err);
        }
    }
    return status;
}

const tr_stored_tensor *tr__tensor_set_find_prefixed(const tr_tensor_set *set,
                                                     const char *name) {
    static const char *const prefixes[] = {"transformer.", "model.", "bert.",
                                           "roberta."};
    const tr_stored_tensor *found = tr__tensor_set_find(set, name);
    for (size_t i = 0; !found && i < sizeof prefixes / sizeof *prefixes; i++) {
        size_t length = strlen(prefixes[i]);
        if (strncmp(name, prefixes[i], length) == 0) {
            return tr__tensor_set_find(set, name + length);
        }
        char *longer = tr__format("%s%s", prefixes[i], name);
        found = longer ? tr__tensor_set_find(set, longer) : NULL;
        tr__free(longer);
    }
    return found;
}

// Tensors in few bits: what their parts come to.
#include "base/checked.h"
#include "base/files.h"
#include "base/memory.h"
#include "files/safetensors/inside.h"

#include <string.h>

void tr__tensor_bits_release(tr_tensor_set *set) {
    for (size_t i = 0; i < set->joined_count; i++) {
        tr__free(set->joined[i].nested);
    }
    tr__free(set->joined);
}

// Bytes of a part, from byte `first` on.
static tr_status read_stored(const tr_tensor_set *set, const tr_stored_tensor *part,
                             int64_t first, int64_t bytes, void *dst, tr_error *err) {
    const tr_set_file *file = &set->files[part->file];
    return tr__pread(file->descriptor, file->path, dst, (size_t)bytes,
                     part->offset + first, err);
}

// What block `block` is multiplied by. raw: the scales from block `first` on.
static float scale_of(const tr_tensor_bits *joined, const void *raw, int64_t first,
                      int64_t block) {
    if (joined->kind == TR_QUANTIZED_NF4) {
        return ((const float *)raw)[block - first];
    }
    return tr__nf4_double_scale(((const uint8_t *)raw)[block - first], joined->nested,
                                joined->at.blocks, block);
}

tr_status tr__tensor_bits_read(const tr_tensor_set *set, const tr_tensor_bits *joined,
                               int64_t first, int64_t count, float *dst,
                               tr_error *err) {
    enum { RUN = 64 * TR_NF4_BLOCK };
    uint8_t codes[RUN / 2 + 1];
    float scales[RUN / TR_NF4_BLOCK + 1];
    tr_status status = TR_OK;
    for (int64_t at = first, end = first + count; at < end && status == TR_OK;) {
        int64_t block = at / TR_NF4_BLOCK, from = block * TR_NF4_BLOCK;
        int64_t now = tr__min_i64(end, from + RUN) - from; // from the block's begin
        int64_t blocks = tr__ceil_div(now, TR_NF4_BLOCK);
        int64_t element = joined->kind == TR_QUANTIZED_NF4 ? 4 : 1;
        status = read_stored(set, &joined->codes, from / 2, (now + 1) / 2, codes, err);
        if (status == TR_OK) {
            status = read_stored(set, &joined->scales, block * element,
                                 blocks * element, scales, err);
        }
        for (; status == TR_OK && at < from + now; at++) {
            int code = tr__nf4_code(codes, at - from);
            dst[at - first] = tr__nf4_values[code] *
                              scale_of(joined, scales, block, at / TR_NF4_BLOCK);
        }
    }
    return status;
}

tr_quantization tr__tensor_quantization(const tr_tensor_set *set,
                                        const tr_stored_tensor *tensor) {
    const tr_tensor_bits *bits = tr__tensor_bits(set, tensor);
    return bits ? bits->kind : TR_QUANTIZED_NOT;
}

// Bytes that are asked for: [first, first + count).
typedef struct asked {
    const tr_tensor_set *set;
    int64_t first, count;
    char *dst;
} asked;

// Those that are in a part of `bytes` bytes that begins at `begin`; *from: in the part.
// NULL: none are.
static char *within(const asked *a, int64_t begin, int64_t bytes, int64_t *from,
                    int64_t *count) {
    int64_t first = tr__max_i64(a->first, begin);
    int64_t end = tr__min_i64(a->first + a->count, begin + bytes);
    *from = first - begin;
    *count = end - first;
    return end > first ? a->dst + (first - a->first) : NULL;
}

static tr_status read_part(const asked *a, int64_t begin, const tr_stored_tensor *part,
                           tr_error *err) {
    int64_t from, count;
    char *to = within(a, begin, part->bytes, &from, &count);
    return to ? read_stored(a->set, part, from, count, to, err) : TR_OK;
}

tr_status tr__tensor_read_bits(const tr_tensor_set *set, const tr_stored_tensor *tensor,
                               int64_t first, int64_t count, void *dst, tr_error *err) {
    const tr_tensor_bits *bits = tr__tensor_bits(set, tensor);
    const asked a = {set, first, count, dst};
    int64_t from, there;
    memset(dst, 0, (size_t)count); // between the parts
    tr_status status = read_part(&a, 0, &bits->codes, err);
    if (status == TR_OK) {
        status = read_part(&a, bits->at.scales, &bits->scales, err);
    }
    char *nested =
        within(&a, bits->at.nested, bits->at.bytes - bits->at.nested, &from, &there);
    if (status == TR_OK && nested) {
        memcpy(nested, (const char *)bits->nested + from, (size_t)there);
    }
    return status;
}

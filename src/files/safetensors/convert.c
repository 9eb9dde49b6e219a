#include "files/safetensors/convert.h"

#include "base/half.h"

#include <math.h>
#include <string.h>

bool tr__dtype_is_float(tr_dtype dtype) {
    return dtype == TR_F32 || dtype == TR_F64 || dtype == TR_F16 || dtype == TR_BF16;
}

// `first` bytes of `dtype` at `src` as an integer, for the 1 to 8 byte integers.
static double integer_value(tr_dtype dtype, const unsigned char *src) {
    uint64_t bits = 0;
    size_t bytes = tr_dtype_bytes(dtype);
    memcpy(&bits, src,
           bytes); // little-endian, as the format and every host we build on
    if (dtype == TR_U8 || dtype == TR_U16 || dtype == TR_U32 || dtype == TR_U64 ||
        dtype == TR_BOOL) {
        return (double)bits;
    }
    unsigned shift = 64 - 8 * (unsigned)bytes;
    return (double)((int64_t)(bits << shift) >> shift);
}

static uint16_t load16(const unsigned char *src) {
    uint16_t bits;
    memcpy(&bits, src, sizeof bits);
    return bits;
}

int64_t tr__convert_f32(tr_dtype dtype, const void *src, int64_t count, float *dst) {
    const unsigned char *from = src;
    int64_t bad = -1;
    switch (dtype) {
    case TR_F16:
        for (int64_t i = 0; i < count; i++) {
            dst[i] = tr__f16_to_f32(load16(from + 2 * i));
        }
        break;
    case TR_BF16:
        for (int64_t i = 0; i < count; i++) {
            dst[i] = tr__bf16_to_f32(load16(from + 2 * i));
        }
        break;
    case TR_F64:
        for (int64_t i = 0; i < count; i++) {
            double value;
            memcpy(&value, from + 8 * i, sizeof value);
            dst[i] = (float)value;
            if (bad < 0 && isinf(dst[i]) && !isinf(value)) {
                bad = i;
            }
        }
        break;
    default:
        memcpy(dst, src, (size_t)count * sizeof *dst);
    }
    return bad;
}

void tr__convert_f64(tr_dtype dtype, const void *src, int64_t count, double *dst) {
    const unsigned char *from = src;
    size_t bytes = tr_dtype_bytes(dtype);
    for (int64_t i = 0; i < count; i++) {
        const unsigned char *at = from + (size_t)i * bytes;
        float single;
        switch (dtype) {
        case TR_F32:
            memcpy(&single, at, sizeof single);
            dst[i] = single;
            break;
        case TR_F64:
            memcpy(&dst[i], at, sizeof dst[i]);
            break;
        case TR_F16:
            dst[i] = tr__f16_to_f32(load16(at));
            break;
        case TR_BF16:
            dst[i] = tr__bf16_to_f32(load16(at));
            break;
        default:
            dst[i] = integer_value(dtype, at);
        }
    }
}

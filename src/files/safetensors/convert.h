// Stored elements as numbers.
#ifndef TR_FILES_SAFETENSORS_CONVERT_H
#define TR_FILES_SAFETENSORS_CONVERT_H

#include <tranche/types.h>

// F32, F64, F16 or BF16.
bool tr__dtype_is_float(tr_dtype dtype);

// src: [count] elements of `dtype` (a floating-point one), any alignment; dst: [count].
// Returns the index of the first finite value too large for f32, or -1 when all fit.
int64_t tr__convert_f32(tr_dtype dtype, const void *src, int64_t count, float *dst);

// The same for any dtype, as doubles; 64-bit integers are rounded.
void tr__convert_f64(tr_dtype dtype, const void *src, int64_t count, double *dst);

#endif

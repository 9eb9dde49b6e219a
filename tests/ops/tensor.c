#include "ops/tensor.h"

#include "base/half.h"
#include "base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SEED = 20, FIXED_SCALE = 1 << 20 };

void test_tensor_take(test_tensor *tensor, tr_tensor_desc desc) {
    int64_t bytes = tr_tensor_bytes(desc);
    assert_true(bytes >= 0);
    test_tensor_give(tensor);
    tensor->desc = desc;
    tensor->memory = test_memory_take((size_t)bytes);
}

void test_tensor_give(test_tensor *tensor) {
    test_memory_give(&tensor->memory);
    *tensor = (test_tensor){0};
}

static int64_t count_of(const test_tensor *tensor) {
    return tensor->desc.dtype == TR_NONE ? 0 : tr_shape_count(tensor->desc.shape);
}

// Element by element: a 16-bit format has the f32's values, rounded.
static void put_all(test_tensor *tensor, const float *values) {
    if (tensor->desc.dtype == TR_F32) {
        memcpy(tensor->memory.data, values, (size_t)count_of(tensor) * sizeof *values);
        return;
    }
    for (int64_t i = 0, count = count_of(tensor); i < count; i++) {
        test_tensor_put(tensor, i, values[i]);
    }
}

// Draws f32 values: uniform with that bound, or normal with that deviation (bound 0).
static void fill_real(test_tensor *tensor, float bound, float deviation,
                      uint64_t stream) {
    int64_t count = count_of(tensor);
    float *values = malloc((size_t)count * sizeof *values + 1);
    assert_non_null(values);
    if (bound > 0) {
        tr__fill_uniform(values, 0, count, -bound, bound, SEED, stream);
    } else {
        tr__fill_normal(values, 0, count, 0, deviation, SEED, stream);
    }
    put_all(tensor, values);
    free(values);
}

void test_tensor_fill(test_tensor *tensor, double scale, uint64_t stream) {
    int64_t count = count_of(tensor);
    float bound = (float)(1.73 * scale);
    tensor->there = true;
    if (tensor->desc.dtype == TR_F64) {
        double *data = tensor->memory.data;
        for (int64_t i = 0; i < count; i++) {
            data[i] = scale * (double)tr__draw_below(8, (uint64_t)i, SEED, stream);
        }
        return;
    }
    fill_real(tensor, bound, 0, stream);
}

// Each row begins a document of its own.
static void fill_places(test_tensor *tensor, int64_t longest, uint64_t stream) {
    int32_t *data = tensor->memory.data;
    int64_t length = tensor->desc.shape.dim[1], left = 0, place = 0;
    for (int64_t i = 0, count = count_of(tensor); i < count; i++) {
        if (i % length == 0 || left == 0) {
            left = 1 + (int64_t)tr__draw_below((uint64_t)longest, (uint64_t)i, SEED,
                                               stream);
            place = 0;
        }
        data[i] = (int32_t)place++;
        left--;
    }
}

void test_tensor_fill_input(test_tensor *tensor, const tr_case_input *input,
                            uint64_t stream) {
    int64_t count = count_of(tensor);
    tensor->there = true;
    if (input->fill == TR_FILL_NORMAL) {
        fill_real(tensor, 0, input->scale != 0 ? input->scale : 1, stream);
        return;
    }
    if (input->fill == TR_FILL_POSITIVE) {
        float scale = input->scale != 0 ? input->scale : 1, value;
        for (int64_t i = 0; i < count; i++) {
            tr__fill_uniform(&value, i, 1, scale / 2, 3 * scale / 2, SEED, stream);
            test_tensor_put(tensor, i, value);
        }
        return;
    }
    assert_int_equal(tensor->desc.dtype, TR_I32);
    if (input->fill == TR_FILL_PLACES) {
        fill_places(tensor, input->bound, stream);
        return;
    }
    int32_t *data = tensor->memory.data;
    for (int64_t i = 0; i < count; i++) {
        bool none = input->fill == TR_FILL_TARGET && i % 5 == 4;
        uint64_t drawn =
            tr__draw_below((uint64_t)input->bound, (uint64_t)i, SEED, stream);
        data[i] = none ? -100 : (int32_t)drawn;
    }
}

void test_tensor_copy(test_tensor *to, const test_tensor *from) {
    test_tensor_take(to, from->desc);
    if (from->memory.bytes > 0) {
        memcpy(to->memory.data, from->memory.data, from->memory.bytes);
    }
    to->there = from->there;
}

double test_tensor_at(const test_tensor *tensor, int64_t i) {
    switch (tensor->desc.dtype) {
    case TR_F32:
        return ((const float *)tensor->memory.data)[i];
    case TR_BF16:
        return tr__bf16_to_f32(((const uint16_t *)tensor->memory.data)[i]);
    case TR_F16:
        return tr__f16_to_f32(((const uint16_t *)tensor->memory.data)[i]);
    case TR_F64:
        return ((const double *)tensor->memory.data)[i];
    case TR_I32:
        return ((const int32_t *)tensor->memory.data)[i];
    case TR_I64:
        return (double)((const int64_t *)tensor->memory.data)[i];
    default:
        fail_msg("no such elements are known: %s", tr_dtype_name(tensor->desc.dtype));
        return NAN;
    }
}

void test_tensor_put(test_tensor *tensor, int64_t i, double value) {
    uint16_t *halves = tensor->memory.data;
    if (tensor->desc.dtype == TR_F64) {
        ((double *)tensor->memory.data)[i] = value;
    } else if (tensor->desc.dtype == TR_I64) {
        ((int64_t *)tensor->memory.data)[i] = (int64_t)(value * FIXED_SCALE);
    } else if (tensor->desc.dtype == TR_BF16) {
        halves[i] = tr__bf16_of_f32((float)value);
    } else if (tensor->desc.dtype == TR_F16) {
        halves[i] = tr__f16_of_f32((float)value);
    } else {
        assert_int_equal(tensor->desc.dtype, TR_F32);
        ((float *)tensor->memory.data)[i] = (float)value;
    }
}

// The larger one, and NaN once there was one.
static double larger(double a, double b) {
    return isnan(a) || a >= b ? a : b;
}

double test_tensor_largest(const test_tensor *tensor) {
    double largest = 0;
    for (int64_t i = 0, count = count_of(tensor); i < count; i++) {
        largest = larger(largest, fabs(test_tensor_at(tensor, i)));
    }
    return largest;
}

double test_tensor_distance(const test_tensor *got, const test_tensor *want) {
    double largest = 0;
    assert_true(tr_shape_equal(got->desc.shape, want->desc.shape));
    for (int64_t i = 0, count = count_of(want); i < count; i++) {
        double difference = test_tensor_at(got, i) - test_tensor_at(want, i);
        largest = larger(largest, fabs(difference));
    }
    return largest;
}

bool test_tensor_same_bits(const test_tensor *a, const test_tensor *b) {
    return a->memory.bytes == b->memory.bytes &&
           (a->memory.bytes == 0 ||
            memcmp(a->memory.data, b->memory.data, a->memory.bytes) == 0);
}

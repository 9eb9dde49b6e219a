#include "ops/tensor.h"

#include "base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SEED = 20 };

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
    assert_int_equal(tensor->desc.dtype, TR_F32);
    tr__fill_uniform(tensor->memory.data, 0, count, -bound, bound, SEED, stream);
}

void test_tensor_fill_input(test_tensor *tensor, const tr_case_input *input,
                            uint64_t stream) {
    int64_t count = count_of(tensor);
    tensor->there = true;
    if (input->fill == TR_FILL_NORMAL) {
        float deviation = input->scale != 0 ? input->scale : 1, value;
        for (int64_t i = 0; i < count && tensor->desc.dtype == TR_F64; i++) {
            tr__fill_normal(&value, i, 1, 0, deviation, SEED, stream);
            test_tensor_put(tensor, i, value);
        }
        if (tensor->desc.dtype != TR_F64) {
            assert_int_equal(tensor->desc.dtype, TR_F32);
            tr__fill_normal(tensor->memory.data, 0, count, 0, deviation, SEED, stream);
        }
        return;
    }
    assert_int_equal(tensor->desc.dtype, TR_I32);
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
    case TR_F64:
        return ((const double *)tensor->memory.data)[i];
    case TR_I32:
        return ((const int32_t *)tensor->memory.data)[i];
    default:
        fail_msg("no such elements are known: %s", tr_dtype_name(tensor->desc.dtype));
        return NAN;
    }
}

void test_tensor_put(test_tensor *tensor, int64_t i, double value) {
    if (tensor->desc.dtype == TR_F64) {
        ((double *)tensor->memory.data)[i] = value;
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

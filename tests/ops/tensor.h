// A tensor of the conformance tests: guarded memory that knows its shape.
#ifndef TESTS_OPS_TENSOR_H
#define TESTS_OPS_TENSOR_H

#include "ops/cases.h"
#include "ops/guarded.h"

#include <tranche/types.h>

#include <stdint.h>

typedef struct test_tensor {
    tr_tensor_desc desc; // dtype TR_NONE: absent
    test_memory memory;
    bool there; // holds a value, so that a contribution is added to it
} test_tensor;

// Gives back what the tensor had and takes new memory, all NaNs.
void test_tensor_take(test_tensor *tensor, tr_tensor_desc desc);
void test_tensor_give(test_tensor *tensor);

// Values that are a function of (stream, element) alone. f32 and 16-bit formats
// (rounded): uniform, mean 0,
// deviation `scale`; i64: the same in fixed point, as test_context says; f64: multiples
// of `scale`, from 0 to 7 of them.
void test_tensor_fill(test_tensor *tensor, double scale, uint64_t stream);
// As the case says.
void test_tensor_fill_input(test_tensor *tensor, const tr_case_input *input,
                            uint64_t stream);
void test_tensor_copy(test_tensor *to, const test_tensor *from);

double test_tensor_at(const test_tensor *tensor, int64_t i);
void test_tensor_put(test_tensor *tensor, int64_t i, double value); // real
double test_tensor_largest(const test_tensor *tensor); // |element|, NaN if one is
// max |got - want|, NaN if one of the two has one. The shapes are equal.
double test_tensor_distance(const test_tensor *got, const test_tensor *want);
bool test_tensor_same_bits(const test_tensor *a, const test_tensor *b);

#endif

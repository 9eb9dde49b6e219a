// Holds an op's kernels to its reference, and the reference to its own derivative, on
// the cases that the op's folder lists (ops/cases.h).
#ifndef TESTS_OPS_CONFORMANCE_H
#define TESTS_OPS_CONFORMANCE_H

#include "ops/cases.h"

// Prints what fails, by how much, and in which case, instruction set and number of
// threads; returns how many checks failed.
int test_conform(const tr_case_list *list);

// Holds a backend's kernels to the references, where it has kernels, on cases
// whose largest input has so many bytes at most; *large: how many cases have more.
// without: a 16-bit format that is not tried; TR_NONE: all are. Else like test_conform.
int test_conform_on(const tr_case_list *list, tr_backend_id on, int64_t most_bytes,
                    tr_dtype without, int *large);

// How the shape rule takes operands that do not fit: data types, empty dimensions and
// counts must be refused, and so must some mismatch of each op with several inputs,
// with a message that names the op. Returns how many checks failed.
int test_conform_refusals(const tr_case_list *list);

#endif

// Holds an op's kernels to what its reference makes of operands with a NaN or an
// infinity in them.
#ifndef TESTS_OPS_CARRIED_H
#define TESTS_OPS_CARRIED_H

#include "ops/cases.h"

// Puts a NaN, then infinities, into one element of each real operand of the op's small
// cases: each input, and each gradient that the backward starts from. Where the
// reference's results are not finite, those of each kernel must not be either: a
// training that is lost must show it. Prints what fails; returns how many checks did.
int test_conform_carried(const tr_case_list *list, tr_backend_id on);

#endif

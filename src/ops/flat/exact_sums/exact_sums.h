// Sums whose order does not matter (base/exact_sum.h), of parts that other ops have
// measured.
//
//     exact_sums    in[0]   f64 [parts * columns], each >= 0
//                   out[0]  i64 [totals * columns * TR_EXACT_WORDS], not carried
//     exact_values  in[0]   i64 [totals * TR_EXACT_WORDS]
//                   out[0]  f64 [totals]
//
// Runs of parts go into a total each; a total without a run is 0. Sums of several ranks
// are added word by word between the two.
#ifndef TR_OPS_FLAT_EXACT_SUMS_EXACT_SUMS_H
#define TR_OPS_FLAT_EXACT_SUMS_EXACT_SUMS_H

#include "base/exact_sum.h"

#include <tranche/extend/op.h>

// So many parts, one after the other, go into a total.
typedef struct tr_parts_run {
    int64_t first, count, total;
} tr_parts_run;

// Without padding, as descriptions of launches are told apart byte by byte.
typedef struct tr_exact_sums_attr {
    const tr_parts_run *runs; // [count] borrowed
    int64_t count;
    int64_t columns;
} tr_exact_sums_attr;

extern const tr_op tr__op_exact_sums, tr__op_exact_values;

#endif

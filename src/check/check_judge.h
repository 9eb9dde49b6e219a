// What a check makes of the distances that it has measured.
#ifndef TR_CHECK_CHECK_JUDGE_H
#define TR_CHECK_CHECK_JUDGE_H

#include <tranche/engine.h>

// To what a run rounds, from fine to coarse.
typedef enum tr_check_rounds {
    TR_ROUNDS_F32,
    TR_ROUNDS_F16,
    TR_ROUNDS_BF16,
    TR_ROUNDS_FP8, // E4M3, of which factors of products are
    TR_ROUNDS_COUNT,
} tr_check_rounds;

tr_check_rounds tr__check_rounds(tr_dtype type);
// By how much of itself a number is changed at most; 0 for f32, whose errors have a
// tolerance.
double tr__check_rounding(tr_check_rounds rounds);

// What a cut changes of how the first one rounds.
typedef enum tr_check_change {
    TR_CHANGES_ORDER,   // of additions: a few results are rounded to the neighbour
    TR_CHANGES_KERNELS, // any result may be
    TR_CHANGES_TYPES,   // results are rounded in one run and not in the other
    TR_CHANGES_COUNT,
} tr_check_change;

// By how much of themselves weights are changed to measure what that does.
double tr__check_part(tr_check_rounds rounds, tr_check_change change);

// The largest distance that rounding explains of a tensor that moved by `moved` when
// weights were changed by tr__check_part.
double tr__check_allowed(double moved, tr_check_change change);

// From the cut's distances and loss, and from what is allowed: undecided, worst,
// passed. same: no bit differs. loss: of the first cut.
void tr__check_judge(tr_check_cut *cut, size_t tensors, bool same, double loss);

#endif

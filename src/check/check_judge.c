#include "check/check_judge.h"

#include <math.h>

// The tensors of a few runs that differ by rounding alone are this many times as far
// apart at most as those of some others: with it a mistake of 5% shows in a tensor that
// rounding moves by up to 2%.
#define SPREAD (TR_CHECK_DECIDED / 0.02)

tr_check_rounds tr__check_rounds(tr_dtype type) {
    return type == TR_BF16  ? TR_ROUNDS_BF16
           : type == TR_F16 ? TR_ROUNDS_F16
                            : TR_ROUNDS_F32;
}

// Of what rounding changes of a weight at most. With a quarter of it, about every
// fourth weight comes to lie at its neighbour. Between types every intermediate result
// is rounded, and kinks of activations may lie between: four times as much shows them,
// and then most of the spread is in what is measured.
static const struct {
    double part, spread;
} changes[TR_CHANGES_COUNT] = {{0.25, SPREAD}, {1, SPREAD}, {4, SPREAD / 2}};

double tr__check_rounding(tr_check_rounds rounds) {
    static const double part[TR_ROUNDS_COUNT] = {0, 0x1p-11, 0x1p-8, 0x1p-4};
    return part[rounds];
}

double tr__check_part(tr_check_rounds rounds, tr_check_change change) {
    return changes[change].part * tr__check_rounding(rounds);
}

double tr__check_allowed(double moved, tr_check_change change) {
    return changes[change].spread * moved;
}

// Is tensor a farther off than b? NaN is the farthest there is.
static bool is_worse(const tr_check_cut *cut, size_t a, size_t b) {
    double off = cut->distance[a] * cut->allowed[b];
    double other = cut->distance[b] * cut->allowed[a];
    if (isnan(cut->distance[b]) || isnan(cut->distance[a])) {
        return !isnan(cut->distance[b]);
    }
    return off == other ? cut->distance[a] > cut->distance[b] : off > other;
}

void tr__check_judge(tr_check_cut *cut, size_t tensors, bool same, double loss) {
    bool near = fabs(cut->loss - loss) <= cut->loss_allowed; // NaN is not
    cut->undecided = 0;
    cut->worst = 0;
    for (size_t t = 0; t < tensors; t++) {
        near = near && cut->distance[t] <= cut->allowed[t];
        cut->undecided += !(cut->allowed[t] <= TR_CHECK_DECIDED);
        cut->worst = is_worse(cut, t, cut->worst) ? t : cut->worst;
    }
    cut->passed = near && (same || !cut->same_bits);
}

// The cuts of a check: requests that must lead to the same gradients.
#ifndef TR_CHECK_CHECK_CUTS_H
#define TR_CHECK_CHECK_CUTS_H

#include <tranche/extend/plan.h>

#include "check/check_judge.h"

enum { TR_CHECK_CUTS = 16 };

typedef struct tr_cut_request {
    tr_check_cut cut; // name, skipped, same_bits, tolerance
    tr_plan_request request;
    tr_check_rounds rounds; // whose effect is measured; TR_ROUNDS_F32: none
    tr_check_change change;
    bool coarser;  // its type is coarser than that of the first cut
    double summed; // what sums of 16 bits may add to a distance
    bool apart;    // packed documents are samples of their own, as many as there are
} tr_cut_request;

// What is checked.
typedef struct tr_check_of {
    double flops; // operations of its step
    bool grouped; // its loss is over the whole step
} tr_check_of;

// cuts: [TR_CHECK_CUTS]; the first is `base` itself, a request that a plan has
// resolved. Returns how many there are.
size_t tr__check_cuts(const tr_plan_request *base, const tr_check_of *of,
                      double tolerance, tr_cut_request *cuts);

#endif

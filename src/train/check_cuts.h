// The cuts of a check: requests that must lead to the same gradients.
#ifndef TR_TRAIN_CHECK_CUTS_H
#define TR_TRAIN_CHECK_CUTS_H

#include <tranche/check.h>

enum { TR_CHECK_CUTS = 15 };

typedef struct tr_cut_request {
    tr_check_cut cut; // name, skipped, same_bits, tolerance, least
    tr_plan_request request;
    bool apart; // packed documents are samples of their own, as many as there are
} tr_cut_request;

// cuts: [TR_CHECK_CUTS]; the first is `base` itself, a request that a plan has
// resolved, of so many operations. Returns how many there are.
size_t tr__check_cuts(const tr_plan_request *base, double flops, double tolerance,
                      tr_cut_request *cuts);

#endif

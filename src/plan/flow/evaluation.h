// How the samples of an evaluation are dealt to ranks, and to walks through the plan's
// sequence.
#ifndef TR_PLAN_FLOW_EVALUATION_H
#define TR_PLAN_FLOW_EVALUATION_H

#include "plan/flow/plan.h"

typedef struct tr_evaluation_deal {
    int64_t micros; // micro-batches of all data ranks; the last may be short
    // Ranks take runs of micro-batches in rounds, and tell each other their sums behind
    // each: so many of a rank in a round, and of all.
    int64_t share, round;
} tr_evaluation_deal;

tr_evaluation_deal tr__evaluation_deal(const tr_plan *plan, int64_t samples);
// Micro-batches that each rank takes in the round that begins with this one; those
// behind the last are empty.
int64_t tr__evaluation_share(const tr_evaluation_deal *deal, int64_t first);

#endif

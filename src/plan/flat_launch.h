// Steps on flat buffers as launches of ops: which op, on which bytes of which buffers,
// from the steps' kinds and the buffers that they name (for lower.c).
#ifndef TR_PLAN_FLAT_LAUNCH_H
#define TR_PLAN_FLAT_LAUNCH_H

#include "plan/draft.h"
#include "plan/plan.h"

// A place in a buffer of the plan.
typedef struct tr_location {
    int32_t buffer; // -1: none
    int64_t offset; // bytes
} tr_location;

typedef struct tr_flat_launch {
    tr_op_desc desc;
    const tr_kernel *kernel;
    tr_location in[TR_OP_IN_MAX], out[TR_OP_OUT_MAX], workspace;
    bool contributes[TR_OP_OUT_MAX]; // adds, or writes where it is the first
} tr_flat_launch;

// The launches of a step, one with each call; `next`: 0 at first. false: no more.
// Steps of other kinds have none. A result may be added to where desc.accumulate says
// so.
bool tr__flat_launch_next(const tr_plan *plan, const tr_step_draft *draft, size_t *next,
                          tr_flat_launch *out);

#endif

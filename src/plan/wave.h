// Wave tensors: those to which every micro-batch of a wave adds, and what is merged of
// them when a segment ends.
#ifndef TR_PLAN_WAVE_H
#define TR_PLAN_WAVE_H

#include "plan/plan.h"

// Wave tensors are there in so many parts, each a block of the unit's wave_bytes: one
// for each micro-batch where the run is reproducible, so that they are merged in one
// order whatever the ranks; else one, to which all micro-batches of a rank add. What
// they are merged to is the first.
int64_t tr__wave_parts(const tr_plan *plan, tr_sequence_kind sequence);
// Do the unit's wave tensors belong to the whole step, since none of its segments waits
// for them?
bool tr__wave_is_step(const tr_unit_program *unit);
// Bytes through which ranks merge what a combine step ends; 0 where nothing of other
// ranks is merged.
int64_t tr__combine_bytes(const tr_plan *plan, const tr_plan_step *step);
// The wave tensors that a combine step ends: those to which its segment has added, in
// the forward, or their gradients. `next`: 0 at first; false: no more.
typedef struct tr_wave_tensor {
    int64_t offset, bytes; // in a part
    tr_tensor_desc desc;
    const tr_op *op; // whose merge rule; NULL: they are added
    bool own;        // the rank's: no other rank's are merged with them
} tr_wave_tensor;
bool tr__combine_next(const tr_plan *plan, const tr_plan_step *step, size_t *next,
                      tr_wave_tensor *tensor);
int32_t tr__combine_buffer(const tr_plan_step *step); // that of the tensors

#endif

// Wave tensors: those to which every micro-batch of a wave adds, and what is merged of
// them when a segment ends.
#ifndef TR_PLAN_FLOW_WAVE_H
#define TR_PLAN_FLOW_WAVE_H

#include "plan/flow/plan.h"

// Wave tensors are there in so many parts, each a block of the unit's wave_bytes: one
// for each micro-batch where the run is reproducible, so that they are merged in one
// order whatever the ranks; else one, to which all micro-batches of a rank add. What
// they are merged to is the first.
int64_t tr__wave_parts(const tr_plan *plan, tr_sequence_kind sequence);
// Do the unit's wave tensors belong to the whole step, since none of its segments waits
// for them?
bool tr__wave_is_step(const tr_unit_program *unit);
// Are the wave tensor that lies there in a part, and its gradient, each rank's own?
bool tr__wave_is_own(const tr_unit_program *unit, int64_t offset);

// A segment of a unit that has added to them, in its forward, or in its backward to
// their gradients.
typedef struct tr_wave_segment {
    int32_t unit, segment;
    bool backward;
} tr_wave_segment;

// The wave tensors that pack, gather and merge steps are about: those to which the
// segment has added. `next`: 0 at first; false: no more.
typedef struct tr_wave_tensor {
    int64_t offset, bytes; // in a part
    tr_tensor_desc desc;
    const tr_op *op; // whose merge rule; NULL: they are added
    bool own;        // the rank's: no other rank's are merged with them
} tr_wave_tensor;
bool tr__wave_next(const tr_plan *plan, tr_wave_segment of, size_t *next,
                   tr_wave_tensor *tensor);
// Are other ranks' parts merged with the tensor; is anything, in training?
bool tr__wave_is_exchanged(const tr_plan *plan, const tr_wave_tensor *tensor);
bool tr__wave_is_merged(const tr_plan *plan, const tr_wave_tensor *tensor);

// What ranks exchange of the segment's wave tensors: these bytes of every part, a
// multiple of 8. Where a rank has one part, they are sent from where they lie; several
// are packed first. All of them are one block [data ranks][parts][bytes].
typedef struct tr_wave_range {
    int64_t offset, bytes; // bytes 0: they exchange nothing
} tr_wave_range;
tr_wave_range tr__wave_range(const tr_plan *plan, tr_wave_segment of);
// Bytes of a rank's parts in that block, and of all.
int64_t tr__wave_sent(const tr_plan *plan, tr_wave_segment of);
int64_t tr__wave_gathered(const tr_plan *plan, tr_wave_segment of);

#endif

// A step that a pass inserts, before it has its payload, and the values that it is to
// work on, by name.
#ifndef TR_PLAN_DRAFT_H
#define TR_PLAN_DRAFT_H

#include "plan/step.h"

// What a value is to the step.
typedef enum tr_slot {
    TR_SLOT_INPUT,
    TR_SLOT_OUTPUT,
    TR_SLOT_WAVE, // wave tensors; their gradients
    TR_SLOT_WAVE_GRAD,
    TR_SLOT_TEMP,  // working memory
    TR_SLOT_NORMS, // direction_norms: what each rank measures; update: norms of tensors
    TR_SLOT_PART, // direction_norms, update: where the first part is staged; the others
                  // follow
    TR_SLOTS = TR_SLOT_PART + TR_PARTS
} tr_slot;

// Micro_norm_tied, accumulate, reduce, gradient_squares, evict, add: INPUT is what is
// read (-1: the flat's sums; of gradient_squares on the host: its gradients there),
// OUTPUT where to (-1: the flat's own). Micro_norm: INPUT is the unit's gradients.
// Fetch and gather of parameters: OUTPUT is where they go (-1: in place, in the flat's
// own). INPUT of a gather is this rank's part; of a fetch, where it is staged (-1: the
// flat's).
// Read: OUTPUT. Write: INPUT.
// Gather of norms: OUTPUT is what the ranks have measured. Tensor_norms: INPUT is the
// same, OUTPUT tr_squares for each parameter of the plan (of its tensor: at the index
// tr_plan_param.tensor).
// Pack and gather of wave tensors: OUTPUT is all ranks' parts of them. Merge: INPUT
// (-1: no other rank's are merged).
typedef struct tr_step_draft {
    tr_plan_step step;
    int32_t buffer[TR_SLOTS]; // -1: none
} tr_step_draft;

// The wave tensors, or gradients of them, that a pack, gather or merge is about.
static inline int32_t tr__draft_wave(const tr_step_draft *draft) {
    return draft->buffer[draft->step.backward ? TR_SLOT_WAVE_GRAD : TR_SLOT_WAVE];
}

#endif

// What is kept of flat buffers, as rows of a table: parameters, gradients, and the
// states, whose rows are the optimizer's own.
#ifndef TR_PLAN_FLOW_PARTS_H
#define TR_PLAN_FLOW_PARTS_H

#include "ops/optimizers/state_types.h"
#include "plan/flow/payload.h"

#include <tranche/extend/plan.h>

typedef struct tr_flat tr_flat;
typedef struct tr_flat_range tr_flat_range;

// A part that flat buffers do not keep has a row of zeros.
typedef struct tr_part_row {
    tr_dtype dtype;        // of an operand that is elements of it
    tr_block_size packing; // so many elements take so many bytes
    tr_state_type type;    // of a state
} tr_part_row;

typedef struct tr_part_rows {
    tr_part_row of[TR_PARTS];
} tr_part_rows;

// Those of a plan, from its request, whose types are resolved: of most flat buffers, or
// of those that are apart.
tr_part_rows tr__part_rows(const tr_plan_request *request, bool apart);
// How a part of the flat buffer is kept.
const tr_part_row *tr__part_row(const tr_plan *plan, const tr_flat *flat, tr_part part);
// One more than its last part: its own states are the last ones.
int tr__flat_parts(const tr_plan *plan, const tr_flat *flat);
int tr__flat_states(const tr_plan *plan, const tr_flat *flat);
// The name of one of them in checkpoints. The most states that any flat buffer has.
const char *tr__state_name(const tr_plan *plan, const tr_flat *flat, int state);
int tr__plan_states(const tr_plan *plan);
// Bytes of so many elements of a part, from a whole block on.
int64_t tr__part_bytes(const tr_plan *plan, const tr_flat *flat, tr_part part,
                       int64_t count);
// So many elements of it, as an operand of an op.
tr_tensor_desc tr__part_desc(const tr_plan *plan, const tr_flat *flat, tr_part part,
                             int64_t count);

#endif

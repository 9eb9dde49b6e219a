// Steps that move bytes: what they move, from where and to where, from their kinds and
// the buffers that they name (for lower.c).
#ifndef TR_PLAN_MOVES_H
#define TR_PLAN_MOVES_H

#include "comm/mesh.h"
#include "plan/draft.h"
#include "plan/plan.h"

// Bytes [first, end) of a buffer of the plan; buffer -1: none.
typedef struct tr_region {
    int32_t buffer;
    int64_t first, end;
} tr_region;

// Between spaces, or within one.
typedef struct tr_copy {
    tr_region from, to; // of one size
} tr_copy;

// Between ranks.
typedef struct tr_step_exchange {
    tr_exchange of;
    tr_region send; // where that is not in place
    tr_region recv;
    bool contributes; // to what recv holds; else it is written
} tr_step_exchange;

// Between the file and memory.
typedef struct tr_file_move {
    bool reads;       // from the file
    tr_region stored; // in the arena that the file is
    tr_region memory;
} tr_file_move;

// What a step of the shape moves.
void tr__step_copy(const tr_plan *plan, const tr_step_draft *draft, tr_copy *out);
void tr__step_exchange(const tr_plan *plan, const tr_step_draft *draft,
                       tr_step_exchange *out);
void tr__step_file(const tr_plan *plan, const tr_step_draft *draft, tr_file_move *out);

#endif

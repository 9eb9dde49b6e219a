// What the proof looks up: what programs touch, which steps make which gradients.
#ifndef TR_PLAN_PROOF_TABLES_H
#define TR_PLAN_PROOF_TABLES_H

#include "plan/flow/plan.h"

// A tensor that a program reads from outside of it, or leaves there.
typedef struct tr_touch {
    tr_place place;
    int flat;           // of the unit
    int block;          // of the program
    int64_t first, end; // bytes of its block
    tr_value value;     // of what pieces carry; TR_NO_VALUE: of other blocks
    bool result;
    bool padding;    // it is the zeros behind a gradient
    bool adds;       // always
    bool adds_later; // unless the step says that it is the first
} tr_touch;

typedef struct tr_touches {
    const tr_program *program;
    tr_touch *items;
    size_t count, capacity;
    uint32_t places;  // bits: all that it touches
    uint32_t results; // and of these where it leaves something
} tr_touches;

// A segment whose backward makes the gradient of a parameter.
typedef struct tr_maker {
    int32_t unit, segment, piece, param;
    bool adds, adds_later;
} tr_maker;

// The programs that add to a micro-batch's loss: a hash of them, and how many.
typedef struct tr_losses {
    uint64_t sum;
    int32_t terms;
} tr_losses;

typedef struct tr_proof_tables {
    tr_touches *touches; // of all programs
    size_t touches_count, touches_capacity;
    int32_t *unit_touches; // [units] where those of its programs begin
    int32_t *segments;     // [units + 1] segments of the units before
    // By unit and segment; and by parameter: made_by are indices of makers.
    tr_maker *makers;
    size_t maker_count, maker_capacity;
    size_t *of_segment; // [segments + 1]
    size_t *of_param;   // [params + 1] begins in made_by
    int32_t *made_by;
    tr_losses loss, evaluated; // in training, in an evaluation
} tr_proof_tables;

tr_status tr__tables_make(const tr_plan *plan, tr_proof_tables *out, tr_error *err);
void tr__tables_clear(tr_proof_tables *tables);
// Where a parameter's gradient ends in its flat buffer, in bytes.
static inline int64_t tr__param_end(const tr_plan_param *param) {
    return (param->offset + param->count) * (int64_t)sizeof(float);
}

// What a program of the unit touches.
const tr_touches *tr__tables_touches(const tr_proof_tables *tables, int32_t unit,
                                     const tr_program *program);

#endif

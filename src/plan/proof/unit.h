// What the rules of units' programs share. All of it is of the step that the walk is
// at.
#ifndef TR_PLAN_PROOF_UNIT_H
#define TR_PLAN_PROOF_UNIT_H

#include "plan/proof/proof.h"

// Its unit; the program that it runs; is the walk one of training?
static inline const tr_unit_program *tr__proof_unit(const tr_proof *p) {
    return p->plan->units[p->step->unit].program;
}

const tr_program *tr__proof_program(const tr_proof *p);

static inline bool tr__proof_trains(const tr_proof *p) {
    return p->kind == TR_SEQUENCE_TRAIN;
}

// What the forwards of this sequence are, where they keep what is asked for; and how
// many segments they have.
tr_variant tr__proof_forwards(const tr_proof *p);
int tr__proof_segments(const tr_proof *p);
int64_t tr__proof_micros(const tr_proof *p); // of the sequence
// Is the step of a unit, segment and micro-batch that this rank has? Is its program the
// unit's own?
bool tr__unit_is_of_model(tr_proof *p);
bool tr__unit_has_program(tr_proof *p);

// ---- turns

// How many micro-batches have been through the segment of its unit (tr_walked.forward,
// backward).
int64_t *tr__proof_done(tr_proof *p, int64_t *done, int segment);
// The segments run one after the other (`before`: the one that this follows, -1: none),
// each on one micro-batch after the other: so floats are always added in one order.
void tr__unit_turn(tr_proof *p, int64_t *done, int segment, int before);

// ---- meanings

static inline uint32_t tr__place_bit(tr_place place) {
    return UINT32_C(1) << place;
}

tr_bytes tr__data_slot(const tr_proof *p);
// Where an evaluation has the sums of a micro-batch's losses.
tr_bytes tr__evaluated_sums(const tr_proof *p, int64_t micro);
tr_meaning tr__data_meaning(const tr_proof *p);
tr_meaning tr__micro_meaning(const tr_proof *p, tr_meaning_kind kind, int32_t unit,
                             int32_t segments);
// How many of a unit's segments [first, end) work in one of the places (bits) in a
// role; leave something there.
int32_t tr__segments_in(const tr_proof *p, int32_t unit, tr_variant role, int first,
                        int end, uint32_t places);
int32_t tr__segments_leaving(const tr_proof *p, int32_t unit, tr_variant role,
                             int first, int end, uint32_t places);
// A unit's inputs, complete; their gradient; all that its forwards save.
tr_meaning tr__input_meaning(const tr_proof *p, int32_t unit);
tr_meaning tr__input_gradient_meaning(const tr_proof *p, int32_t unit);
tr_meaning tr__saved_meaning(const tr_proof *p);
// Where a unit's backward makes the gradient of its input (bits of places).
uint32_t tr__gradient_places(const tr_unit_program *unit);

// ---- bytes

// The block that its program has at a place, of so many bytes. None, where the program
// does not work there.
tr_bytes tr__unit_block(tr_proof *p, tr_place place, int64_t bytes);

// How far the pieces of a unit have come with what they work on one after the other,
// when the step begins. A piece counts that works in one of the places (bits), or, with
// `leaves`, leaves something there.
typedef struct tr_filling {
    int32_t segments; // complete
    int32_t pieces;   // done of the next one
    bool counts;      // the step's own piece does
    bool ends;        // and no other one of the segment comes behind it
    bool last;        // and none of other segments
} tr_filling;
// `role`: of the other segments, which run before the step's or, in a backward, behind.
tr_filling tr__unit_filling(const tr_proof *p, tr_variant role, uint32_t places,
                            bool leaves);
// A block that the pieces of a unit fill one after the other: what it means when the
// step begins, and how the step goes on with it.
tr_meaning tr__unit_filled(tr_meaning means, const tr_filling *at);
void tr__unit_fill(tr_proof *p, tr_bytes bytes, tr_meaning means, const tr_filling *at);
// Where its program has the unit's flat buffer; does it add to what it touches?
int32_t tr__touch_buffer(const tr_proof *p, const tr_touch *touch);
bool tr__touch_adds(const tr_proof *p, const tr_touch *touch);
// Is it the turn of its piece? The pieces of a segment follow each other.
void tr__piece_turn(tr_proof *p);
// Has the micro-batch before left this piece, or all of the segment? `done`: how many
// have left that.
bool tr__piece_is_next(const tr_proof *p, int64_t done);
// What its program does, but to blocks and to gradients of parameters.
void tr__unit_run(tr_proof *p);

#endif

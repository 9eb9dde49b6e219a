// Turns of a pipeline's stages: in which order each takes waves of micro-batches
// through its parts of the model, forward and backward.
#ifndef TR_PLAN_FLOW_TURNS_H
#define TR_PLAN_FLOW_TURNS_H

#include "plan/flow/stages.h"

typedef enum tr_turn_kind {
    TR_TURN_FORWARD,
    TR_TURN_BACKWARD,
    TR_TURN_WEIGHTS, // gradients of weights, where those come later
    TR_TURN_KINDS
} tr_turn_kind;

// One wave goes through one chunk of the model.
typedef struct tr_pipeline_turn {
    tr_turn_kind kind;
    int chunk;
    int64_t wave;
} tr_pipeline_turn;

typedef struct tr_turns {
    tr_chunks chunks;
    int64_t waves;
    tr_pipeline_turn *turn; // [count] of one stage, or of all, in their order
    int64_t count;
    // In a time that all stages reckon in alike, so that they agree on the order of
    // their messages: how long turns take, and when each turn of every stage ends.
    int64_t *takes; // [TR_TURN_KINDS][chunks]
    int64_t *ends;  // [TR_TURN_KINDS][chunks][waves]
} tr_turns;

// The turn's place among those of all stages, as in `ends`.
int64_t tr__pipeline_turn_index(const tr_turns *turns, tr_pipeline_turn turn);
int64_t tr__pipeline_turn_takes(const tr_turns *turns, tr_pipeline_turn turn);
int64_t tr__pipeline_turn_begin(const tr_turns *turns, tr_pipeline_turn turn);
int64_t tr__pipeline_turn_end(const tr_turns *turns, tr_pipeline_turn turn);
// The stage's waves that are at work, from its first chunk forward to the end of the
// turn `ends` in chunk `last` of its own: so many at most.
int64_t tr__turns_under_way(const tr_turns *turns, tr_turn_kind ends, int last);
void tr__turns_clear(tr_turns *turns);
// How long turns take in each chunk, of units that cost so much. cost:
// [TR_TURN_KINDS][units]; first: [chunks + 1] the chunks' units; takes:
// [TR_TURN_KINDS][chunks], at least 1, in a unit of no meaning.
void tr__turns_take(const double *cost, int units, const int *first, int chunks,
                    int64_t *takes);

#endif

// The schedule of a pipeline: in which order a stage takes waves of micro-batches
// forward and backward through its units.
#ifndef TR_PLAN_FLOW_TURNS_H
#define TR_PLAN_FLOW_TURNS_H

#include <tranche/extend/mesh.h>

#include <stdbool.h>
#include <stdint.h>

typedef struct tr_pipeline_turn {
    int64_t wave;
    bool backward;
} tr_pipeline_turn;

// Turn `i`, 0 to 2 * waves - 1, of the mesh's rank. One forward, one backward
// (PipeDream-Flush; Narayanan et al., arXiv 2006.09503): a stage takes as many waves
// forward as stages follow it, then one forward and one backward by turns, then the
// backwards that are left. With one stage, each wave goes forward and then backward.
tr_pipeline_turn tr__turn_of(const tr_mesh *mesh, int64_t waves, int64_t i);
// Waves of the rank that are forward and not yet backward, at most.
int64_t tr__turns_under_way(const tr_mesh *mesh, int64_t waves);

#endif

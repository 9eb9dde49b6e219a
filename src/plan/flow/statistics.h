// The statistics of a step, and the norms of tensors.
#ifndef TR_PLAN_FLOW_STATISTICS_H
#define TR_PLAN_FLOW_STATISTICS_H

#include "plan/flow/flat.h"

// The statistics of a step: what ranks tell each other before the update, doubles.
// [ranks][doubles], each rank's: its flags, the loss's sums of each of its
// micro-batches [g][TR_SUMS], the squares of each 1,024 gradients of its parts of the
// flat buffers.
typedef enum tr_statistics_flag {
    TR_STATISTICS_ASKED,      // what this rank asks the others for (tr_asks)
    TR_STATISTICS_TOO_LARGE,  // gradients that did not fit the fixed-point sums
    TR_STATISTICS_NOT_FINITE, // gradients that no sums could hold
    TR_STATISTICS_SECONDS,    // of the step so far
    TR_STATISTICS_WAIT,       // of them, waiting for other ranks
    TR_STATISTICS_PEAK,       // bytes: the most that the process has had
    TR_STATISTICS_FIRST_BAD,  // what was first not finite (plan/units/finite.h); 0:
                              // nothing
    // Of the gradients of the rank's first micro-batch, and of tied tensors, of its
    // first wave.
    TR_STATISTICS_SQUARES,
    TR_STATISTICS_TIED_SQUARES,
    TR_STATISTICS_FLAGS
} tr_statistics_flag;

// What a rank asks all others for; a later one is more.
typedef enum tr_asks {
    TR_ASKS_NOTHING,
    TR_ASKS_SAVE, // a checkpoint
    TR_ASKS_END,  // it has been stopped, and they stop, too
} tr_asks;

typedef struct tr_statistics_layout {
    int buffer;
    int64_t doubles;  // of one rank
    int64_t sums;     // where the sums begin
    int64_t partials; // where the squares begin
} tr_statistics_layout;

// What a rank measures of its shards of the flat buffers, for the norms of tensors:
// tr_squares of each block of 1,024 elements and each parameter that has elements in it
// (ops/optimizers/optimizer_measure.h). Block b of a rank's shard of a flat buffer and
// that flat's parameter number k are at flat.parts + b + k; not all of them are used.
// The passing buffer has [data ranks][parts] of it at stages 1 to 3; at stage 0 every
// rank measures all.
typedef struct tr_norms_layout {
    int64_t parts;      // of one rank
    tr_parts_run *runs; // [run_count] which parts of all data ranks are which tensor's
    int64_t run_count;
} tr_norms_layout;

// How many data ranks' measures make up all: 1 at stage 0.
int64_t tr__norms_ranks(const tr_plan *plan);
// Where the measures are, and the norms: where both the host's updates and the device's
// reach them.
tr_space tr__norms_space(const tr_plan *plan);
// How many tr_squares a rank has for a flat buffer.
int64_t tr__norms_parts(const tr_plan *plan, const tr_flat *flat);
// Index of the tr_squares of a block (of 1,024 elements of its flat buffer) in which
// the parameter has elements.
int64_t tr__norms_part(const tr_plan *plan, const tr_plan_param *param, int64_t block);

#endif

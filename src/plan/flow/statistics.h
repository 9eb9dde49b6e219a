// The statistics of a step, and the norms of tensors.
#ifndef TR_PLAN_FLOW_STATISTICS_H
#define TR_PLAN_FLOW_STATISTICS_H

#include "comm/mesh.h"
#include "ops/flat/exact_sums/exact_sums.h"
#include "plan/flow/flat.h"

// The statistics of a step: what ranks tell each other before the update, doubles.
// [ranks][doubles], each rank's: its flags, the loss's sums of each of its
// micro-batches [g][TR_SUMS], and exact sums of the squares of the gradients that it
// owns (owners.h), so that the norm has the same bits whoever owns what.
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

// Which squares a sum is of: the noise scale looks at the gradients that are measured.
typedef enum tr_norm_sum {
    TR_NORM_UNTIED,
    TR_NORM_TIED,
    TR_NORM_UNMEASURED,
    TR_NORM_SUMS
} tr_norm_sum;

typedef struct tr_statistics_layout {
    int buffer;
    int64_t doubles; // of one rank
    int64_t sums;    // where the sums of the loss begin
    int64_t norm;    // where those of squares do: int64 [TR_NORM_SUMS][TR_EXACT_WORDS]
    int squares;     // buffer: f64 [blocks], of each 1,024 gradients of this rank's
    int64_t blocks;  // parts of the flat buffers
    tr_parts_run *runs; // [flats] of the squares that this rank owns
} tr_statistics_layout;

// What a rank measures of its shards of the flat buffers, for the norms of tensors:
// tr_squares of each block of 1,024 elements and each parameter that has elements in it
// (ops/optimizers/optimizer_measure.h). Block b of a rank's shard of a flat buffer and
// that flat's parameter number k are at flat.parts + b + k; not all of them are used.
// They are added up exactly: int64 [parameters][2][TR_EXACT_WORDS].
typedef struct tr_norms_layout {
    int64_t parts;
    tr_parts_run *runs; // [run_count] which parts go into which tensor's norms
    int64_t run_count;
} tr_norms_layout;

// Between which ranks those sums are added up, of which each has measured a part; 0:
// every rank has measured all.
tr_axes tr__norms_group(const tr_plan *plan);
// Elements [*first, *end) of the flat buffer are those that this rank measures.
void tr__norms_range(const tr_plan *plan, const tr_flat *flat, int64_t *first,
                     int64_t *end);
// Where the measures are, and the norms: where both the host's updates and the device's
// reach them.
tr_space tr__norms_space(const tr_plan *plan);
// How many tr_squares a rank has for a flat buffer.
int64_t tr__norms_parts(const tr_plan *plan, const tr_flat *flat);
// When it is known which gradients are measured: into which sum their squares go.
void tr__statistics_measured(tr_plan *plan);

#endif

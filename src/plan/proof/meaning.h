// What bytes mean to the proof: "the input of h.1, of micro-batch 2", "the sum of the
// gradient of h.0.weight over 3 contributions". Two meanings are equal or they are not;
// their words are for people.
#ifndef TR_PLAN_PROOF_MEANING_H
#define TR_PLAN_PROOF_MEANING_H

#include "plan/flow/plan.h"

// What `of`, `index` and `terms` are.
typedef enum tr_meaning_kind {
    TR_MEANS_NOTHING, // nobody has written it, or it has been let go
    TR_MEANS_SCRATCH, // what one step alone works with
    TR_MEANS_DROPPED, // what an interrupted step has left
    TR_MEANS_ZEROS,
    TR_MEANS_DATA, // index: micro-batch
    // of: unit, index: micro-batch, terms: segments behind it, version: and pieces of
    // the next one
    TR_MEANS_INPUT,
    TR_MEANS_INPUT_GRADIENT, // the same
    TR_MEANS_SAVED,          // the same
    TR_MEANS_HELD,           // the same, of what a backward keeps
    // A tensor that pieces of a program hand each other. of: unit, index: micro-batch,
    // terms: the first of these pieces, as one of the unit's programs, version: which
    // of the unit's values it is
    TR_MEANS_CARRIED,
    TR_MEANS_WAVE,          // of: unit, index: first micro-batch, terms: how many
    TR_MEANS_MERGED_WAVE,   // of: unit, index: first micro-batch
    TR_MEANS_WAVE_GRADIENT, // as of WAVE
    TR_MEANS_MERGED_WAVE_GRADIENT,
    // This rank's parts of wave tensors on their way to other ranks; those of all
    // ranks. of: unit, index: segment, terms: 1: of their gradients
    TR_MEANS_WAVE_PARTS,
    TR_MEANS_ALL_WAVE_PARTS,
    // of: flat buffer; as units compute with them; index: 1: one rank's part of them,
    // to be gathered
    TR_MEANS_PARAMETERS,
    TR_MEANS_MASTERS,     // of: flat buffer; f32 beside parameters of 16 bits
    TR_MEANS_STATE,       // of: flat buffer, index: which state of the optimizer
    TR_MEANS_MOVED_STATE, // the same, behind the first phase of an update
    TR_MEANS_GRADIENT,    // of: parameter, index: last micro-batch; in f32
    TR_MEANS_SUM,         // the same, of the type of the sums
    TR_MEANS_HANDED,      // of: flat buffer, index: which scope; over all ranks
    // of: flat buffer, index: so many scopes; over all ranks. terms: where several
    // ranks make a part each, twice the parts that are in it, and 1 where no element
    // lacks
    TR_MEANS_TOTAL,
    // of: flat buffer, index: of so many stages; f32, for the noise scale. Of one
    // stage, terms and sum: as of a sum
    TR_MEANS_FIRST_WAVE,
    TR_MEANS_MODEL_STATES,  // of: unit
    TR_MEANS_LOSS,          // index: micro-batch
    TR_MEANS_FLAG,          // of: tr_statistics_flag
    TR_MEANS_FIRST_SQUARES, // of the first micro-batch's gradients
    TR_MEANS_SQUARES,       // of: flat buffer
    TR_MEANS_SQUARE_SUMS,   // of the squares of all that this rank owns
    TR_MEANS_STATISTICS,    // of the step, of all ranks
    TR_MEANS_MEASURES,      // index: elements of how many
    TR_MEANS_TENSOR_SUMS,   // of what has been measured; index: 1: by all ranks
    TR_MEANS_NORMS,         // of all tensors
    TR_MEANS_DIRECTION, // of: flat buffer; of elements; index: whose (rules_update.c)
    TR_MEANS_LOGITS,
    TR_MEANS_CACHE,  // of: unit; what it keeps of earlier positions
    TR_MEANS_PACKED, // of: unit, index: 1: the backward's; its parameters, packed
} tr_meaning_kind;

typedef struct tr_meaning {
    tr_meaning_kind kind;
    int32_t of;
    // Of parameters and states: how many updates after those that the step computes
    // with. Of what a step makes of gradients: whose, the same way.
    int32_t version;
    int32_t terms;
    int64_t index;
    // Hash of the terms of a sum, whatever their order: contributions add up.
    uint64_t sum;
    // Where byte 0 of the whole thing lies, in bytes from the buffer's begin: so a part
    // of it has its place.
    int64_t base;
} tr_meaning;

bool tr__meaning_equal(const tr_meaning *a, const tr_meaning *b);
// A contribution to a sum: of a segment of a unit, on a micro-batch.
uint64_t tr__contribution(int32_t unit, int32_t segment, int64_t micro);
// In words. version: what the step computes with. text: [size].
void tr__meaning_words(const tr_plan *plan, const tr_meaning *meaning, int32_t version,
                       char *text, size_t size);

#endif

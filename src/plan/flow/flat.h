// Flat buffers: their content, their places and their types.
#ifndef TR_PLAN_FLOW_FLAT_H
#define TR_PLAN_FLOW_FLAT_H

#include "base/stride.h"
#include "ops/flat/update/update.h"
#include "plan/flow/owners.h"
#include "plan/flow/parts.h"
#include "plan/flow/step.h"

#include <tranche/extend/plan.h>

#include <assert.h>
#include <stddef.h>

// One tensor of the model, or one slice of it, as it lies in its flat buffer.
typedef struct tr_plan_param {
    char *name;    // full
    uint64_t hash; // of the name
    tr_shape shape;
    // The tensor in files, and which of its elements this one has: all of it, rows (a
    // slice), or a part that ranks of the tensor axis share.
    const char *stored;
    tr_shape stored_shape;
    tr_stride lies;
    tr_division cut; // of a part: how the stored tensor is cut
    // Kept in few bits: its elements are bytes of that (base/quantized.h), of its part
    // of the stored tensor, or of that with rows and columns exchanged. The bits that
    // the whole tensor's values are of; those that lie here; and the part's shape as
    // the files have it.
    tr_quantization quantized, kept;
    tr_shape plain;
    bool transposed;
    tr_init init;
    int flat;
    int64_t offset, count; // elements
    int place;             // which of its flat buffer's parameters, by offset
    int tensor;            // the plan's first parameter that is of the same stored one
} tr_plan_param;

enum {
    TR_FLAT_ELEMENTS = 16,    // a flat buffer is a multiple of a cache line long
    TR_SHARD_ELEMENTS = 1024, // shards are cut at multiples: whole blocks of the norm,
                              // and of what NVMe writes
    TR_UPDATE_SLOTS_MAX = 64, // of the ring that an update from NVMe is staged in
};

// Elements [first, first + count) of a flat buffer, in a buffer that lives always.
struct tr_flat_range {
    int buffer; // -1: none
    int64_t first, count;
};

// A flat buffer: all trained parameters of one unit, but for those that are apart; or
// all these; or all its frozen ones; or one tied tensor. It is sharded as a whole.
struct tr_flat {
    const char *name;
    tr_param_axes axes; // of all its parameters
    char *own_name;     // where `name` is its own, else NULL
    bool tied;
    bool frozen;    // not trained: no gradients, no states, no update
    bool quantized; // nor kept as numbers: bits that only its unit's ops make sense of
    bool apart;     // the optimizer keeps other states of it (tr_apart)
    bool slice;     // of a tied tensor that is used in slices
    bool split;     // each rank of the tensor axis has a part of its parameters
    bool repeated;  // a part that it has in common with those beside it
    bool summed;    // has all of them, and its tokens' part of the gradients
    bool measured;  // its gradients count for the noise scale, where it is measured
    const char *no_micro_norm; // why not, in words; NULL: it does, or nothing measures
    bool offloaded; // states and update are elsewhere, and gradients go there
    size_t first_param, end_param; // its parameters are among these of the plan
    int param_count;
    int64_t all;   // elements, padding included
    int64_t count; // of them on this rank: all, or none on a stage without its users
    int64_t shard; // elements of a data rank's part (comm.h), a multiple of 1,024
    int64_t first, own; // this data rank's part: [first, first + own)
    // Of the type that units compute in, on the device; buffer -1: only while it is
    // used.
    tr_flat_range param;
    // What is kept of it for the update, by part (parts.h) or by name.
    union {
        tr_flat_range part[TR_PARTS];
        struct {
            // f32, what the update changes; elsewhere than param, or param. Buffer -1:
            // frozen, and kept as `copy` alone.
            tr_flat_range master;
            tr_flat_range grad;       // what the update reads, of the type of the sums
            tr_flat_range statistics; // none: they are the step's
            // What is used of it, where the update is: master itself, or where units
            // compute in 16 bits what the update rounds it to: param, or, where that
            // is elsewhere, a buffer that is fetched from.
            tr_flat_range copy;
            tr_flat_range state[TR_OPTIMIZER_STATES];
        };
    };
    tr_flat_range sums; // gradients that stay on the device until they are complete:
                        // grad, or what is evicted to it; buffer -1: none stay
    int64_t squares;    // where the squares of its gradients begin, of the statistics'
    int64_t parts;      // where its tensors' parts begin in what a rank measures
};
static_assert(offsetof(tr_flat, state) ==
                  offsetof(tr_flat, part) + TR_PART_STATE * sizeof(tr_flat_range),
              "parts lie in their order");

// Is it kept in the 16 bits that units compute with, and in nothing else?
bool tr__flat_is_half(const tr_flat *flat);
// Bytes of an element of the parameters that units compute with.
int64_t tr__param_bytes(const tr_plan *plan);
// Are they of 16 bits, beside master weights in f32?
bool tr__plan_is_half(const tr_plan *plan);
// Are gradients summed in another type than the f32 that a backward makes? Then each
// micro-batch's is made by itself, and accumulated into the sums.
bool tr__plan_accumulates(const tr_plan *plan);
int64_t tr__sum_bytes(const tr_plan *plan); // of an element of the sums
// Of so many elements of them in memory: whole lines of the cache.
int64_t tr__sums_bytes(const tr_plan *plan, int64_t count);
// Elements of a flat buffer that a rank updates at most: its shard, or, at stage 0,
// all.
int64_t tr__update_shard(const tr_plan *plan, const tr_flat *flat);
// Are gradients handed on after each wave, to another rank or another space? Some of
// the plan's; those of a flat buffer.
bool tr__plan_grads_pass(const tr_plan *plan);
bool tr__flat_grads_pass(const tr_plan *plan, int flat);
// Do they leave the device then, and not only as the step's sums? Some; those of a flat
// buffer.
bool tr__plan_evicts_scopes(const tr_plan *plan);
bool tr__flat_evicts_scopes(const tr_plan *plan, int flat);
// Does what each unit adds to it leave by itself, where gradients pass? That is so of a
// slice of a tied tensor, and where a stage of a pipeline may take another wave through
// one user of the tensor before it takes this one through the next.
bool tr__flat_leaves_by_use(const tr_plan *plan, int flat);
// Do floats leave the device more than once in a step, and are added up where they go?
// Only where a loss outside of the model does not let the wave be the whole batch.
bool tr__plan_evicts_again(const tr_plan *plan);
// Does something lie between its parameters, or behind them?
bool tr__flat_has_gaps(const tr_plan *plan, int flat);
// Elements of the flat buffers that are trained; of those that are updated on the
// device.
int64_t tr__plan_trained(const tr_plan *plan);
int64_t tr__plan_staying(const tr_plan *plan);
// The backward steps of one scope add to one gradient of a flat buffer before it goes
// to other ranks. A scope is the optimizer step, the wave (stages 2 and 3) or, of what
// leaves by use, one unit in the wave. So the whole gradient of a slice is in memory
// only while one of its users computes, and the ranks' sums take the contribution of
// each user.
int64_t tr__gradient_scope(const tr_plan *plan, int flat, int unit, int64_t wave);

#endif

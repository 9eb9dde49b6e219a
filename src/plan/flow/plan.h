// The content of a plan. Passes fill it in, in the order of make.c. Nobody changes it
// afterwards.
#ifndef TR_PLAN_FLOW_PLAN_H
#define TR_PLAN_FLOW_PLAN_H

#include "comm/mesh.h"
#include "plan/flow/flat.h"
#include "plan/flow/statistics.h"
#include "plan/flow/step.h"
#include "plan/flow/turns.h"
#include "plan/flow/unit_values.h"
#include "plan/units/program.h"

#include <tranche/extend/plan.h>

typedef struct tr_buffer {
    tr_ledger_category category;
    tr_space space;
    int sequence; // of tr_sequence_kind, -1: lives always
    int64_t bytes;
    int32_t first, last; // steps of its sequence
    int64_t offset;      // in its space's arena
} tr_buffer;

// A state of the model: not sharded, not offloaded, no gradient.
typedef struct tr_plan_state {
    char *name; // full
    tr_tensor_desc desc;
    float init;
    int unit;
    int64_t offset; // bytes, in the buffer of the unit's states
} tr_plan_state;

// Bytes that this rank sends in one optimizer step, and its exchanges of several ranks,
// messages of stages left out.
typedef struct tr_traffic {
    int64_t gather, reduce;
    int64_t between;                           // of both, what goes to other nodes
    int64_t exchanges[TR_EXCHANGE_ALGORITHMS]; // how many
    int64_t device_host;                       // both ways
    int64_t reached;                           // tr_reach of all steps
    int64_t nvme;                              // read and written, whole blocks
} tr_traffic;

// What a rank of a stage of the pipeline takes and computes in a step; and, of a step
// that was simulated (else 0), how long it computes, waits for other stages, for
// messages that are under way, and for ranks whose kernels take longer. `idle` is all
// of the step in which it does not compute.
typedef struct tr_stage_figures {
    int64_t bytes[TR_SPACES];
    double flops;
    double step, computing, bubble, messages, slower, update, idle; // seconds
} tr_stage_figures;

typedef struct tr_plan_unit {
    tr_unit_program *program; // shared by units of the same kind
    bool owns_program;        // the first of its kind
    int states;               // buffer of its states, -1: none
    int cache;                // buffer of its caches, -1: none
    bool recomputed;
    bool fp8;  // its products take operands of 8 bits
    int chunk; // of the model, whose stage of the pipeline runs it (tr_chunks)
    int flats[TR_UNIT_FLATS_MAX];
} tr_plan_unit;

struct tr_plan {
    tr_plan_request request; // resolved: no zeros left that mean "choose"
    tr_measure asked;        // request.measure is what a pass makes of it
    bool micro_norms_tied;   // tied tensors count for the noise scale, too
    // The last unit has no loss: its outputs go to the caller, who gives their
    // gradients back (passes/hand_out.c).
    bool hands_out;
    tr_part_rows rows[2];   // of what is kept of flat buffers; of those apart
    tr_target target;       // of kernels on the device
    tr_target host;         // and of those beside it
    tr_batch_tensors batch; // the model's: what a slot of the ring holds
    tr_plan_unit *units;
    int unit_count;   // of the model
    tr_chunks chunks; // parts of it that the pipeline's stages run
    int *chunk_first; // [chunks + 1] the first unit of each
    // [TR_TURN_KINDS][chunks] How long a micro-batch takes in each, by arithmetic, in a
    // unit of no meaning.
    int64_t *chunk_takes;
    tr_turns turns[TR_SEQUENCES]; // of training, of an evaluation; while passes work
    int64_t evaluated;            // micro-batches of the sequence of an evaluation
    // [stages] Of a plan that is proved, and has several stages; else NULL.
    tr_stage_figures *stages;
    tr_flat *flats;
    size_t flat_count, flat_capacity;
    tr_plan_param *params;
    size_t param_count, param_capacity;
    tr_plan_state *states;
    size_t state_count, state_capacity;
    tr_unit_values unit_values[TR_SEQUENCES]; // while passes work
    tr_sequence sequences[TR_SEQUENCES];
    // Of the payloads of all steps: operands, launches of ops, and what these share.
    tr_step_operand *operands;
    size_t operand_count, operand_capacity;
    tr_op_launch *launches;
    size_t launch_count, launch_capacity;
    tr_prepared_op *prepared;
    size_t prepared_count, prepared_capacity;
    // Prepared ops by their hashes: index + 1, 0: none. A power of two of them.
    size_t *prepared_by_hash, prepared_room;
    tr_buffer *buffers;
    size_t buffer_count, buffer_capacity;
    int data_ring[2]; // buffers: of training, of evaluation (or inference)
    int64_t slots[2]; // micro-batches in each ring
    int64_t slot_bytes;
    tr_statistics_layout statistics; // of training
    tr_norms_layout norms;           // where request.tensor_norms
    int sums;    // buffer: double [evaluated][TR_SUMS] of evaluation
    int staging; // buffer: what moves between ranks passes through it
    tr_traffic traffic;
    int scratch;  // buffer: of the backend's libraries. No step names it: the compute
                  // queue alone uses it, one launch after the other. -1: none
    int logits;   // buffer, -1: none
    int landing;  // buffer: where the host readies the caller's micro-batch, if that
                  // lies on a device which the host does not reach. No step names it.
                  // -1: no
    int exchange; // buffer: what moves between NVMe and files passes through it; -1: no
    // The size of each arena. Buffers that live always come first in it.
    int64_t persistent_bytes[TR_SPACES], arena_bytes[TR_SPACES];
    tr_ledger ledger;
    double flops;
    tr_model_flops model_flops; // of a training step
    char *why_wave;             // in words, NULL: as asked
};

// Do outputs and their gradients pass between engine and caller in the memory of a
// device that the host does not reach?
static inline bool tr__hands_on_device(const tr_plan *plan) {
    return plan->request.discrete && plan->request.parts_on_device;
}

// Are micro-batches there, too?
static inline bool tr__rows_on_device(const tr_plan *plan) {
    return tr__hands_on_device(plan) && plan->hands_out && plan->request.own_rows;
}

// A buffer of the plan; -1 and an error when there is no memory.
int tr__plan_buffer(tr_plan *plan, tr_buffer buffer, tr_error *err);
// Appends an operand to those of the plan. TR_MEMORY.
tr_status tr__plan_operand(tr_plan *plan, tr_step_operand operand, tr_error *err);
// The space of what host and device share: micro-batches, statistics, the model's
// states, logits. A discrete device reaches it on the host.
tr_space tr__plan_shared_space(const tr_plan *plan);
// Do ranks exchange inside of units?
bool tr__plan_exchanges_inside(const tr_plan *plan);
// How many nodes its ranks are on; the last may have fewer of them.
int64_t tr__plan_nodes(const tr_plan *plan);
// What plan->staging is for.
tr_comm_room tr__plan_room(const tr_plan *plan);
// So many micro-batches has a sequence.
int64_t tr__plan_micros(const tr_plan *plan, tr_sequence_kind kind);
// How often a training step goes through its micro-batches (tr_plan_request.passes): up
// to the loss, through the loss, and on from it; or all at once.
int64_t tr__plan_rounds(const tr_plan *plan);
// The stage that runs it.
int64_t tr__plan_stage_of(const tr_plan *plan, int unit);
// Does this rank run the unit? Of a number that is none: no.
bool tr__plan_runs(const tr_plan *plan, int unit);
// The first unit of this rank, from `unit` on; unit_count: none.
int tr__plan_next(const tr_plan *plan, int unit);
// Does the unit begin, or end, a chunk whose neighbour another stage runs?
bool tr__plan_unit_receives(const tr_plan *plan, int unit);
bool tr__plan_unit_sends(const tr_plan *plan, int unit);
// The first unit of this rank that has a backward; -1: none.
int tr__plan_lowest(const tr_plan *plan);
// The stage that has the loss.
int64_t tr__plan_last_stage(const tr_plan *plan);
// Ranks along the data axis, and which of them this one is.
int64_t tr__data_ranks(const tr_plan_request *request);
int64_t tr__data_rank(const tr_plan_request *request);
bool tr__has_stages(const tr_plan_request *request);
// The ZeRO stage in effect: with one data rank there is nothing to shard, so it is 0.
int tr__plan_stage(const tr_plan *plan);
// Of one model: does everything that outlives a step lie in both at the same places?
bool tr__plans_same_places(const tr_plan *a, const tr_plan *b);
// The largest number of slices that a stored tensor has in the plan: 1 if none is
// sliced.
int tr__plan_slices(const tr_plan *plan);
// The step at which most bytes of a space are in use, and its sequence.
tr_status tr__plan_fullest(const tr_plan *plan, tr_space space, tr_sequence_kind *kind,
                           int32_t *step, tr_error *err);

// Do launches on the host reach what they work on? Those for another machine need not.
tr_status tr__plan_check_reach(const tr_plan *plan, tr_error *err);

// Hashes of what ranks do together, of all sequences in their order.
typedef struct tr_plan_digest {
    uint64_t of_group[TR_AXES_SETS]; // by axes: equal on all ranks of such a group, of
                                     // what all of it exchange
    uint64_t all; // of all groups: equal on ranks that differ on no pipeline axis,
                  // which walk through the same units
} tr_plan_digest;
void tr__plan_exchanges(const tr_plan *plan, tr_plan_digest *digest);

#endif

// Inside of a plan. Passes fill it in, in the order of plan.c; nobody changes it after.
#ifndef TR_PLAN_PLAN_H
#define TR_PLAN_PLAN_H

#include "plan/program.h"

#include <tranche/plan.h>

// What a step of the plan does.
// X(name): load      waits until the reading thread has filled the micro-batch's slot
//          forward   runs one segment of a unit on one micro-batch
//          combine   ends a segment: every micro-batch of the wave has added to its
//          wave
//                    tensors (ranks merge theirs here)
//          recompute makes again what a unit's forward did not keep
//          backward  runs one segment's backward on one micro-batch
//          unload    gives the micro-batch's slot back
//          clear     sets the loss's sums to zero
//          norm      sums the squares of all gradients
//          update    the optimizer, on one flat buffer
#define TR_STEP_LIST(X)                                                                \
    X(load)                                                                            \
    X(forward) X(combine) X(recompute) X(backward) X(unload) X(clear) X(norm) X(update)

typedef enum tr_plan_step_kind {
#define TR_STEP_ENUM(name) TR_STEP_##name,
    TR_STEP_LIST(TR_STEP_ENUM)
#undef TR_STEP_ENUM
        TR_STEP_KINDS
} tr_plan_step_kind;

typedef enum tr_stream { TR_STREAM_COMPUTE, TR_STREAM_DATA } tr_stream;

// Buffers that a step may name, besides parameters, gradients and data.
typedef enum tr_slot {
    TR_SLOT_INPUT,
    TR_SLOT_OUTPUT,
    TR_SLOT_INPUT_GRAD,
    TR_SLOT_OUTPUT_GRAD,
    TR_SLOT_SAVED,
    TR_SLOT_WAVE,
    TR_SLOT_WAVE_GRAD,
    TR_SLOT_TEMP,
    TR_SLOTS
} tr_slot;

typedef struct tr_plan_step {
    tr_plan_step_kind kind;
    tr_stream stream;
    int32_t unit; // update: the flat buffer
    int32_t segment;
    int64_t micro;   // micro-batch of the step, 0..g-1
    bool lean;       // forward: keeps nothing for the backward
    uint32_t fresh;  // backward: bit f: the first to write the gradient of flat f
    bool fresh_wave; // the first of the wave to write its wave tensors
    int32_t buffer[TR_SLOTS]; // -1: none
} tr_plan_step;

typedef struct tr_sequence {
    tr_plan_step *steps;
    size_t count, capacity;
} tr_sequence;

// The sequences of a plan. Only one of them is at work at a time; their passing buffers
// share memory.
typedef enum tr_sequence_kind {
    TR_SEQUENCE_TRAIN,    // one optimizer step
    TR_SEQUENCE_EVALUATE, // one micro-batch forward
    TR_SEQUENCE_ANSWER,   // one micro-batch forward, with logits (inference plans)
    TR_SEQUENCES
} tr_sequence_kind;

typedef struct tr_buffer {
    tr_ledger_category category;
    int sequence; // of tr_sequence_kind, -1: lives always
    int64_t bytes;
    int32_t first, last; // steps of its sequence
    int64_t offset;      // in the device arena
} tr_buffer;

// One tensor of the model, where it lies in its flat buffer.
typedef struct tr_plan_param {
    char *name; // full
    tr_shape shape;
    tr_init init;
    int flat;
    int64_t offset, count; // elements
} tr_plan_param;

// A flat buffer: all parameters of one unit, or one tied tensor. The grain of sharding.
typedef struct tr_flat {
    const char *name;
    bool tied;
    int64_t count;             // elements, padding included
    int param, grad, state[2]; // buffers, -1: none
} tr_flat;

typedef struct tr_plan_unit {
    tr_unit_program *program; // shared by units of the same kind
    bool owns_program;        // the first of its kind
    bool recomputed;
    int flats[TR_UNIT_FLATS_MAX];
} tr_plan_unit;

struct tr_plan {
    tr_plan_request request; // resolved: no zeros left that mean "choose"
    tr_isa isa;
    tr_tensor_desc data[TR_DATA_KINDS]; // with TR_BATCH
    tr_plan_unit *units;
    int unit_count;
    tr_flat *flats;
    size_t flat_count, flat_capacity;
    tr_plan_param *params;
    size_t param_count, param_capacity;
    tr_sequence sequences[TR_SEQUENCES];
    size_t update_begin; // of TRAIN: steps from here on change parameters
    tr_buffer *buffers;
    size_t buffer_count, buffer_capacity;
    int data_ring[2]; // buffers: of training, of evaluation (or the answer's)
    int64_t slots[2]; // micro-batches in each ring
    int64_t slot_bytes;
    int sums[2];              // buffers: of training, of evaluation
    int answer;               // buffer, -1: none
    int64_t persistent_bytes; // of the arena: buffers that live always come first
    tr_ledger ledger;
    double flops;
    char *why_wave; // in words, NULL: as asked
};

// ---- passes, in order
// ----------------------------------------------------------------

// Units' programs (one for each kind).
tr_status tr__pass_compile(tr_plan *plan, tr_error *err);
// Flat buffers and the parameters in them.
tr_status tr__pass_partition(tr_plan *plan, tr_error *err);
// The order of work: wave by wave, unit by unit, segment by segment.
tr_status tr__pass_order(tr_plan *plan, tr_error *err);
// Units whose activations are dropped and made again before their backward.
tr_status tr__pass_recompute(tr_plan *plan, tr_error *err);
// Buffers of every step, and from when to when each lives.
tr_status tr__pass_lifetimes(tr_plan *plan, tr_error *err);
// Where each lies.
tr_status tr__pass_offsets(tr_plan *plan, tr_error *err);
// The bytes, by category.
tr_status tr__pass_ledger(tr_plan *plan, tr_error *err);

// Proves, from the steps alone and not from what the allocator thought, that no two
// buffers that live at the same time overlap, that none lies outside of the arena, and
// that nothing is read before it is written. TR_INTERNAL names the two.
tr_status tr__plan_check(const tr_plan *plan, tr_error *err);

// A buffer of the plan; -1 and an error when there is no memory.
int tr__plan_buffer(tr_plan *plan, tr_buffer buffer, tr_error *err);
// Appends a step to a sequence.
tr_status tr__sequence_add(tr_sequence *sequence, tr_plan_step step, tr_error *err);
const char *tr__plan_step_name(tr_plan_step_kind kind);
const char *tr__sequence_name(tr_sequence_kind kind);
// The program that a forward, recompute or backward step runs, NULL for other kinds.
const tr_program *tr__step_program(const tr_plan *plan, const tr_plan_step *step,
                                   tr_sequence_kind sequence);

#endif

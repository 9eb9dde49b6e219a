// A step of the plan, and a sequence of them: what it does, how, when, and on which
// buffers.
#ifndef TR_PLAN_FLOW_STEP_H
#define TR_PLAN_FLOW_STEP_H

#include "comm/mesh.h"
#include "ops/flat/update/update.h"
#include "plan/flow/payload.h"
#include "plan/flow/streams.h"
#include "plan/units/program.h"

#include <tranche/extend/plan.h>

// What a step of the plan does, in one word, for people.
// X(name):
//   load              waits until the reading thread has filled the micro-batch's slot
//   gather            brings the ranks' parts of something together: a flat buffer's
//                     parameters or gradients, wave tensors of a segment (wave.h), or
//                     the statistics of the step
//   read              brings part of a flat buffer from NVMe to staging in host memory
//   fetch             brings parameters from where they live, or from staging, to the
//                     device; or a unit's inputs
//   forward           runs one segment of a unit on one micro-batch
//   pack              brings this rank's parts of a segment's wave tensors together for
//                     the gather, when every micro-batch has added to them
//   merge             makes one tensor of the parts of micro-batches and ranks
//   hand_out          gives the caller a micro-batch's outputs, and takes their
//                     gradients
//   send, receive     hands a micro-batch's inputs, or their gradient, to another
//                     stage of the pipeline
//   recompute         recomputes what a unit's forward did not keep
//   backward          runs one segment's backward on one micro-batch
//   micro_norm        squares the first micro-batch's gradients of one segment of a
//                     unit into the statistics, before others add to them
//   micro_norm_tied   squares a tied tensor's gradient into the statistics, when the
//                     rank's first wave has added to it and no other wave has
//   accumulate        adds a micro-batch's gradient of a flat buffer to its sums, where
//                     these are not f32
//   reduce            sums the ranks' gradients of a flat buffer; each gets its shard
//   gradient_squares  squares a flat buffer's complete gradients, by blocks, into the
//                     statistics: on the host, or before they leave for NVMe
//   evict             takes gradients to where the update is, or to staging; or takes a
//                     unit's inputs to where they wait
//   add               adds further gradients to those that were evicted, or that were
//                     reduced before
//   write             brings part of a flat buffer from staging to NVMe
//   unload            gives the micro-batch's slot back
//   clear             sets to zero: the loss's sums; of a flat buffer's gradients what
//                     the next step does not make
//   norm              squares the gradients of all flat buffers that stay on the device
//   square_sums       adds up exactly the squares of all gradients that the rank owns,
//                     into its statistics
//   report            writes this rank's own statistics: how long the step has taken,
//                     the memory of the process, what it asks the other ranks for
//   decide            lets the engine decide by the statistics of all ranks: the update
//                     is applied, deferred to the next step, or skipped
//   direction_norms   the first phase of an update that needs the norms of each tensor,
//                     on elements of one flat buffer
//   direction         the first phase of an update that takes matrices as wholes, on
//                     elements of one flat buffer
//   tensor_sums       adds up exactly what this rank has measured of each tensor
//   tensor_norms      rounds these sums, of all ranks, to each tensor's norms
//   update            runs the optimizer on elements of one flat buffer
//   track             updates a unit's states
#define TR_VERB_LIST(X)                                                                \
    X(load)                                                                            \
    X(read)                                                                            \
    X(fetch)                                                                           \
    X(gather)                                                                          \
    X(forward)                                                                         \
    X(pack)                                                                            \
    X(merge)                                                                           \
    X(hand_out)                                                                        \
    X(recompute)                                                                       \
    X(backward)                                                                        \
    X(micro_norm)                                                                      \
    X(micro_norm_tied)                                                                 \
    X(accumulate)                                                                      \
    X(reduce)                                                                          \
    X(gradient_squares)                                                                \
    X(evict)                                                                           \
    X(add)                                                                             \
    X(write)                                                                           \
    X(unload)                                                                          \
    X(clear)                                                                           \
    X(norm)                                                                            \
    X(direction_norms)                                                                 \
    X(tensor_norms)                                                                    \
    X(square_sums)                                                                     \
    X(tensor_sums)                                                                     \
    X(update) X(track) X(report) X(decide) X(direction) X(send) X(receive)

typedef enum tr_verb {
#define TR_VERB_ENUM(name) TR_VERB_##name,
    TR_VERB_LIST(TR_VERB_ENUM)
#undef TR_VERB_ENUM
        TR_VERBS
} tr_verb;

// How a step does it. The executor has one function for each shape.
typedef enum tr_step_shape {
    TR_STEP_IS_LAUNCH,   // kernels: a unit's program (program.h), or ops
    TR_STEP_IS_COPY,     // between spaces
    TR_STEP_IS_EXCHANGE, // between ranks
    TR_STEP_IS_FILE,     // between the file and memory
    TR_STEP_IS_FEED,     // a micro-batch's slot, from and to the reading thread
    TR_STEP_IS_HOST,     // what the engine or its caller does in the step's middle
    TR_STEP_SHAPES
} tr_step_shape;

// Places in a sequence by which passes find their own.
typedef enum tr_mark {
    TR_MARK_NONE,
    TR_MARK_BEGIN,    // clears the statistics, before all else
    TR_MARK_NORM,     // all gradients are there: squares those that stay on the device
    TR_MARK_DECISION, // the update begins behind it
    TR_MARK_MEASURE,  // the first phase of an update, on elements of one flat buffer
    TR_MARK_TOTAL,    // brings together what these have measured
    TR_MARK_DIRECT,   // the first phase of one that takes matrices as wholes
    TR_MARK_UPDATE,   // elements of one flat buffer: these steps end the sequence
} tr_mark;

// When a step is done (exec/guards.h). Flags decide that: was the walk asked for an
// end, what has the host step decide decided, was the update before deferred to this
// step?
typedef enum tr_step_guard {
    TR_GUARD_RUNNING,  // until somebody asks for an end
    TR_GUARD_ALWAYS,   // other ranks or later steps wait for what it moves
    TR_GUARD_APPLIED,  // once it is decided that the update is applied
    TR_GUARD_AT_ONCE,  // the same, where the update is not deferred to the next step,
    TR_GUARD_DEFERRED, // which does it by steps of this kind
} tr_step_guard;

// A step as people call it. Neither passes nor the executor nor the proof read it.
typedef struct tr_step_label {
    const char *what; // of its subject: "gradients"; NULL: nothing has to be said
    tr_verb verb;
    bool usual; // that is what the verb is about where nothing is said
    bool piece; // of an update that is staged, or of what is moved for it
} tr_step_label;

// Whose work a step does. The proof holds it against the bytes of the operands.
typedef enum tr_subject { TR_OF_NOBODY, TR_OF_UNIT, TR_OF_FLAT } tr_subject;

typedef struct tr_plan_step {
    int32_t id; // unique in its sequence, kept when passes insert others around it
    tr_step_label label;
    tr_step_shape shape : 8; // narrow: a plan has hundreds of thousands of steps
    tr_mark mark : 8;
    tr_step_guard guard : 8;
    tr_subject subject : 8;
    tr_stream stream : 8;
    bool of_micro_batch;  // it works on `micro` alone
    bool backward;        // of wave tensors: of their gradients
    int32_t unit;         // the unit, or the flat buffer; kernels draw by the unit
    int32_t segment;      // of the unit
    int64_t micro;        // micro-batch of this rank's step, 0..g-1; kernels draw by it
    int64_t first, count; // elements of the flat buffer that are moved or updated
    // So many of the sequence's steps of each stream must be done, where no earlier
    // step that this one comes after has waited for them (schedule.c).
    int32_t wait[TR_STREAMS];
    tr_payload payload; // what it launches or moves
} tr_plan_step;

// The step `before` must be done before the step `after` begins, though that needs none
// of its bytes: it bounds what is in flight. Steps by their ids.
typedef struct tr_limit {
    int32_t before, after;
} tr_limit;

typedef struct tr_sequence {
    tr_plan_step *steps;
    size_t count, capacity;
    tr_limit *limits;
    size_t limit_count, limit_capacity;
    int32_t ids; // given so far
} tr_sequence;

// The sequences of a plan. Only one of them is at work at a time; their passing buffers
// share memory.
typedef enum tr_sequence_kind {
    TR_SEQUENCE_TRAIN,     // one optimizer step
    TR_SEQUENCE_EVALUATE,  // micro-batches forward: one, or as many as keep all stages
                           // of a pipeline at work
    TR_SEQUENCE_INFERENCE, // one micro-batch forward, with logits (inference plans)
    TR_SEQUENCE_SYNC_PARAMETERS, // parameters that every rank keeps are made the same
                                 // on all
    TR_SEQUENCES
} tr_sequence_kind;

// ---- names

const char *tr__verb_name(tr_verb kind);
const char *tr__sequence_name(tr_sequence_kind kind);
const char *tr__part_name(tr_part part);
// "gather gradients of ...": parameters go without saying.
tr_step_label tr__label_of_part(tr_verb verb, tr_part part);

// ---- what a step is

// Steps that run a unit's program, or merge its wave tensors.
bool tr__step_is_of_unit(const tr_plan_step *step);
// Steps that merge wave tensors, or bring their parts together for it.
bool tr__step_is_of_wave(const tr_plan_step *step);
// The name of the unit or the flat buffer that the step works on, NULL: of none.
const char *tr__step_subject(const tr_plan *plan, const tr_plan_step *step);

// ---- operands

// Operand `i` of the step's payload.
tr_step_operand *tr__step_operand(const tr_plan *plan, const tr_plan_step *step,
                                  size_t i);
// Bytes that this rank has of it.
int64_t tr__operand_bytes(const tr_step_operand *operand);
// The unit's program that the step runs; NULL: none.
const tr_program *tr__payload_program(const tr_plan_step *step);
// The first op of those that it launches; NULL: none, or a unit's program.
const tr_op *tr__step_op(const tr_plan *plan, const tr_plan_step *step);
// Does it run a unit's program of this variant? A forward, whatever it keeps?
bool tr__step_runs(const tr_plan_step *step, tr_variant variant);
bool tr__step_is_forward(const tr_plan_step *step);
// Does it run gradients of weights that come later?
bool tr__step_runs_weights(const tr_plan_step *step);
// Does it run the first, the last of pieces that follow each other at once?
bool tr__step_begins(const tr_plan_step *step);
bool tr__step_ends(const tr_plan_step *step);
// Does it read from the file (else it writes there)?
bool tr__step_reads_file(const tr_plan *plan, const tr_plan_step *step);
// Does it read or write bytes of the buffer?
bool tr__step_touches(const tr_plan *plan, const tr_plan_step *step, int32_t buffer);
// Does an instruction of the step's program add to its result i, or write it? Does it
// pack what others read?
bool tr__step_adds(const tr_plan *plan, const tr_plan_step *step,
                   const tr_instruction *at, int i);
bool tr__step_packs(const tr_plan *plan, const tr_plan_step *step,
                    const tr_instruction *at);
// Appends a step to a sequence; one without an id gets one.
tr_status tr__sequence_add(tr_sequence *sequence, tr_plan_step step, tr_error *err);
// The first step of the update: it comes after the step decide, and ends the sequence.
// The sequence's count: there is none.
size_t tr__sequence_update(const tr_sequence *sequence);

#endif

// Inside of a plan. Passes fill it in, in the order of plan.c; nobody changes it after.
#ifndef TR_PLAN_PLAN_H
#define TR_PLAN_PLAN_H

#include "base/json_writer.h"
#include "ops/update/update.h"
#include "plan/program.h"

#include <tranche/plan.h>

// What a step of the plan does.
// X(name): load      waits until the reading thread has filled the micro-batch's slot
//          gather    brings the ranks' parts of something together: a flat buffer's
//                    parameters or gradients, or the record of the step
//          read      brings part of a flat buffer from NVMe to staging in host memory
//          fetch     brings parameters from where they live, or from staging, to the
//                    device; or what a unit was given
//          forward   runs one segment of a unit on one micro-batch
//          combine   ends a segment: every micro-batch of the wave has added to its
//                    wave tensors; micro-batches and ranks merge theirs here
//          recompute makes again what a unit's forward did not keep
//          backward  runs one segment's backward on one micro-batch
//          gauge     the squares of the first micro-batch's gradients of one segment of
//                    a unit, into the record, before others add to them
//          gauge_tied the squares of a tied tensor's gradient, into the record, when
//          the
//                    rank's first wave has added to it and no other
//          fold      adds a micro-batch's gradient of a flat buffer to its sums, where
//                    these are not f32
//          reduce    sums the ranks' gradients of a flat buffer; each gets its shard
//          square    the squares of a flat buffer's complete gradients, by blocks,
//                    into the record, before they leave for NVMe
//          evict     adds gradients to their sums where the update is, or takes them to
//                    staging; or takes what a unit was given to where it waits
//          write     brings part of a flat buffer from staging to NVMe
//          unload    gives the micro-batch's slot back
//          clear     sets to zero: the loss's sums; of a flat buffer's gradients what
//                    the next step does not make
//          norm      the squares of this rank's gradients, by blocks, into the record,
//                    but for those that have left for NVMe
//          measure   the first phase of an update that needs the norms of each tensor,
//                    on elements of one flat buffer
//          total     each tensor's norms, of what has been measured of it
//          update    the optimizer, on elements of one flat buffer
//          track     brings a unit's states up to date
#define TR_STEP_LIST(X)                                                                \
    X(load)                                                                            \
    X(read)                                                                            \
    X(fetch)                                                                           \
    X(gather)                                                                          \
    X(forward)                                                                         \
    X(combine)                                                                         \
    X(recompute)                                                                       \
    X(backward)                                                                        \
    X(gauge)                                                                           \
    X(gauge_tied)                                                                      \
    X(fold)                                                                            \
    X(reduce)                                                                          \
    X(square)                                                                          \
    X(evict) X(write) X(unload) X(clear) X(norm) X(measure) X(total) X(update) X(track)

typedef enum tr_plan_step_kind {
#define TR_STEP_ENUM(name) TR_STEP_##name,
    TR_STEP_LIST(TR_STEP_ENUM)
#undef TR_STEP_ENUM
        TR_STEP_KINDS
} tr_plan_step_kind;

// How a step does it. The executor has one function for each shape.
typedef enum tr_step_shape {
    TR_STEP_IS_LAUNCH,   // kernels: a unit's program (program.h), or flat_launch.h
    TR_STEP_IS_COPY,     // between spaces (moves.h)
    TR_STEP_IS_EXCHANGE, // between ranks (moves.h)
    TR_STEP_IS_FILE,     // between the file and memory (moves.h)
    TR_STEP_IS_FEED,     // a micro-batch's slot, from and to the reading thread
    TR_STEP_SHAPES
} tr_step_shape;

// Steps of the compute and data streams are done when the next step begins. Those of
// the communication stream (gather, reduce), of the copy stream (fetch, evict) and of
// the NVMe stream (read, write) begin when they are reached, on each stream one after
// the other, and go on beside what follows, until a step waits for them.
typedef enum tr_stream {
    TR_STREAM_COMPUTE,
    TR_STREAM_DATA,
    TR_STREAM_COMM,
    TR_STREAM_COPY,
    TR_STREAM_NVME,
    TR_STREAMS
} tr_stream;

// What a gather brings together, and what a read or write moves.
typedef enum tr_part {
    TR_PART_PARAM, // read, write: what the update changes
    TR_PART_GRAD,
    TR_PART_RECORD,
    TR_PART_COPY,  // in 16 bits: what the update rounds that to, and units compute with
    TR_PART_STATE, // the optimizer's first; the others follow
    TR_PARTS = TR_PART_STATE + TR_OPTIMIZER_STATES,
    TR_PART_NORMS = TR_PARTS, // what each rank has measured: only gathered
    TR_PART_BOUNDARY,         // what a unit is given: only evicted and fetched
} tr_part;

// Buffers that a step may name, besides parameters, gradients and data: its operands,
// by role.
typedef enum tr_slot {
    TR_SLOT_INPUT,
    TR_SLOT_OUTPUT,
    TR_SLOT_INPUT_GRAD,
    TR_SLOT_OUTPUT_GRAD,
    TR_SLOT_SAVED,
    TR_SLOT_WAVE,
    TR_SLOT_WAVE_GRAD,
    TR_SLOT_TEMP,
    TR_SLOT_NORMS, // measure: what ranks measure; update: the norms of tensors
    TR_SLOT_PART,  // measure, update: where the first part is staged; the others follow
    TR_SLOTS = TR_SLOT_PART + TR_PARTS
} tr_slot;

// When a step is done. Flags that only the engine sets decide: was the walk asked for
// an end, is the update applied, is it left to the next step, was the one before left
// to this step.
typedef enum tr_step_guard {
    TR_GUARD_RUNNING,  // until somebody asks for an end
    TR_GUARD_ALWAYS,   // other ranks or later steps wait for what it moves
    TR_GUARD_APPLIED,  // once the norm is known and the update is not skipped
    TR_GUARD_AT_ONCE,  // the same, where the update is not left to the next step,
    TR_GUARD_DEFERRED, // which does it by steps of this kind
} tr_step_guard;

typedef struct tr_plan_step {
    int32_t id; // unique in its sequence, kept when passes insert others around it
    tr_plan_step_kind kind;
    tr_stream stream;
    tr_step_guard guard;
    int32_t unit; // gather, reduce, fold, update: the flat buffer
    int32_t segment;
    int64_t micro; // micro-batch of this rank's step, 0..g-1
    tr_part part;  // gather, clear, read, write, fetch, evict
    bool lean;     // forward: keeps nothing for the backward
    bool backward; // combine: of gradients
    bool whole;    // clear, of gradients: all (else: what lies between parameters)
    // The operands that the step writes, of those that it contributes to: it adds to
    // the others (adds.c). Bits: tr__operand_bit.
    uint64_t writes;
    // So many of the sequence's communication, copy and NVMe steps must be done, where
    // no earlier step has waited for them (schedule.c).
    int32_t wait, wait_copy, wait_nvme;
    int32_t binding; // where the unit's flat buffers lie: in plan->bindings, -1: none
    // Read, write, measure, update: elements of the flat buffer, multiples of 1,024 but
    // for the end, and in which slot of the update's ring they are staged (-1: in
    // none).
    int64_t first, count;
    int32_t slot;
    // Gauge_tied, fold, reduce, square, evict: INPUT is what is read (-1: the flat's
    // sums), OUTPUT where to (-1: the flat's own). Fetch and gather of parameters:
    // OUTPUT is where they go (-1: in place, in the flat's own); INPUT, of a gather,
    // this rank's part, of a fetch, where it is staged (-1: the flat's). Read: OUTPUT,
    // write: INPUT. Gather of norms: OUTPUT is what ranks have measured; total: INPUT
    // that, OUTPUT tr_squares for each parameter of the plan (of its tensor: at the
    // index tr_plan_param.tensor).
    int32_t buffer[TR_SLOTS]; // -1: none
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
    TR_SEQUENCE_TRAIN,    // one optimizer step
    TR_SEQUENCE_EVALUATE, // one micro-batch forward
    TR_SEQUENCE_ANSWER,   // one micro-batch forward, with logits (inference plans)
    TR_SEQUENCE_FENCE,    // parameters that every rank keeps are made the same on all
    TR_SEQUENCES
} tr_sequence_kind;

typedef struct tr_buffer {
    tr_ledger_category category;
    tr_space space;
    int sequence; // of tr_sequence_kind, -1: lives always
    int64_t bytes;
    int32_t first, last; // steps of its sequence
    int64_t offset;      // in its space's arena
} tr_buffer;

// One tensor of the model, or one slice of it, where it lies in its flat buffer.
typedef struct tr_plan_param {
    char *name;    // full
    uint64_t hash; // of the name
    tr_shape shape;
    // The tensor that files hold, and the first element of it that this is: of itself
    // 0.
    const char *stored;
    tr_shape stored_shape;
    int64_t first;
    tr_init init;
    int flat;
    int64_t offset, count; // elements
    int place;             // which of its flat buffer's parameters, by offset
    int tensor;            // the plan's first parameter that is of the same stored one
} tr_plan_param;

// A state of the model: not sharded, not offloaded, no gradient.
typedef struct tr_plan_state {
    char *name; // full
    tr_tensor_desc desc;
    float init;
    int unit;
    int64_t offset; // bytes, in the buffer of the unit's states
} tr_plan_state;

enum {
    TR_FLAT_ELEMENTS = 16,    // a flat buffer is a multiple of a cache line long
    TR_SHARD_ELEMENTS = 1024, // shards are cut at multiples: whole blocks of the norm,
                              // and of what NVMe writes
    TR_UPDATE_SLOTS_MAX = 64, // of the ring that an update from NVMe is staged in
};

// Elements [first, first + count) of a flat buffer, in a buffer that lives always.
typedef struct tr_flat_range {
    int buffer; // -1: none
    int64_t first, count;
} tr_flat_range;

// A flat buffer: all parameters of one unit, or one tied tensor. The grain of sharding.
typedef struct tr_flat {
    const char *name;
    bool tied;
    bool slice;  // of a tied tensor that is used in slices
    bool gauged; // its gradients count for the noise scale, where it is measured
    const char *not_gauged; // why not, in words; NULL: it does, or nothing measures
    bool leaves;            // states and update are elsewhere, and gradients go there
    size_t first_param, end_param; // its parameters are among these of the plan
    int param_count;
    int64_t count;      // elements, padding included
    int64_t shard;      // elements of a rank's part (comm.h), a multiple of 1,024
    int64_t first, own; // this rank's part: [first, first + own)
    // Of the type that units compute in, on the device; buffer -1: only while it is
    // used.
    tr_flat_range param;
    // f32, what the update changes; elsewhere than param, or param.
    tr_flat_range master;
    // What is used of it, where the update is: master itself, or where units compute in
    // 16 bits what the update rounds it to: param, or, where that is elsewhere, a
    // buffer that is fetched from.
    tr_flat_range copy;
    tr_flat_range grad; // what the update reads, of the type of the sums
    tr_flat_range sums; // gradients that stay on the device until they are complete:
                        // grad, or what is evicted to it; buffer -1: none stay
    tr_flat_range state[TR_OPTIMIZER_STATES]; // f32
    int64_t squares; // where the squares of its gradients begin, of the record's
    int64_t parts;   // where its tensors' parts begin in what a rank measures
} tr_flat;

// Where a unit's flat buffers lie while a step works on it. Buffers; -1: not touched.
typedef struct tr_binding {
    int32_t param[TR_UNIT_FLATS_MAX];
    int32_t grad[TR_UNIT_FLATS_MAX]; // f32
} tr_binding;

// The record of a step: what ranks tell each other before the update, doubles.
// [ranks][doubles], each rank's: its flags, the loss's sums of each of its
// micro-batches [g][TR_SUMS], the squares of each 1,024 gradients of its parts of the
// flat buffers.
typedef enum tr_record_flag {
    TR_RECORD_ASKED,      // 1: for a checkpoint, 2: for an end
    TR_RECORD_TOO_LARGE,  // gradients that did not fit the fixed-point sums
    TR_RECORD_NOT_FINITE, // gradients that no sums could hold
    TR_RECORD_SECONDS,    // of the step so far
    TR_RECORD_WAIT,       // of them, waiting for other ranks
    TR_RECORD_PEAK,       // bytes: the most that the process has had
    TR_RECORD_FIRST_BAD,  // what was first not finite (exec/finite.c); 0: nothing
    // Of the gradients of the rank's first micro-batch, and of tied tensors, of its
    // first wave.
    TR_RECORD_SQUARES,
    TR_RECORD_TIED_SQUARES,
    TR_RECORD_FLAGS
} tr_record_flag;

typedef struct tr_record_layout {
    int buffer;
    int64_t doubles;  // of one rank
    int64_t sums;     // where the sums begin
    int64_t partials; // where the squares begin
} tr_record_layout;

// What a rank measures of its shards of the flat buffers, for the norms of tensors:
// tr_squares of each block of 1,024 elements and each parameter that has elements in it
// (ops/optimizer_measure.h). Block b of a rank's shard of a flat buffer and that flat's
// parameter number k are at flat.parts + b + k; not all of them are used. The passing
// buffer has [ranks][parts] of it at stages 1 to 3; at stage 0 every rank measures all.
typedef struct tr_norms_layout {
    int64_t parts;      // of one rank
    tr_parts_run *runs; // [run_count] which parts of all ranks are which tensor's
    int64_t run_count;
} tr_norms_layout;

// Bytes that this rank sends in one optimizer step.
typedef struct tr_traffic {
    int64_t gather, reduce;
    int64_t device_host; // both ways
    int64_t reached;     // tr_reach of all updates
    int64_t nvme;        // read and written, whole blocks
} tr_traffic;

typedef struct tr_plan_unit {
    tr_unit_program *program; // shared by units of the same kind
    bool owns_program;        // the first of its kind
    int states;               // buffer of its states, -1: none
    bool recomputed;
    int flats[TR_UNIT_FLATS_MAX];
} tr_plan_unit;

struct tr_plan {
    tr_plan_request request; // resolved: no zeros left that mean "choose"
    tr_measure asked;        // request.measure is what a pass makes of it
    bool gauges_tied;        // tied tensors count for the noise scale, too
    tr_isa isa;
    tr_tensor_desc data[TR_DATA_KINDS]; // with TR_BATCH
    tr_plan_unit *units;
    int unit_count;
    tr_flat *flats;
    size_t flat_count, flat_capacity;
    tr_plan_param *params;
    size_t param_count, param_capacity;
    tr_plan_state *states;
    size_t state_count, state_capacity;
    tr_binding *bindings;
    size_t binding_count, binding_capacity;
    tr_sequence sequences[TR_SEQUENCES];
    tr_buffer *buffers;
    size_t buffer_count, buffer_capacity;
    int data_ring[2]; // buffers: of training, of evaluation (or the answer's)
    int64_t slots[2]; // micro-batches in each ring
    int64_t slot_bytes;
    tr_record_layout record; // of training
    tr_norms_layout norms;   // where request.tensor_norms
    int sums;                // buffer: double [TR_SUMS] of evaluation
    int staging;             // buffer: what moves between ranks passes through it
    tr_traffic traffic;
    int answer;   // buffer, -1: none
    int exchange; // buffer: what moves between NVMe and files passes through it; -1: no
    // Of each arena: buffers that live always come first; all bytes of it.
    int64_t persistent_bytes[TR_SPACES], arena_bytes[TR_SPACES];
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
// Proves that the slices of every stored tensor are the whole of it, each element once.
// Called by tr__pass_partition.
tr_status tr__plan_check_slices(const tr_plan *plan, tr_error *err);
// In how many slices the plan has a stored tensor at most: 1 where none is sliced.
int tr__plan_slices(const tr_plan *plan);
// The order of work: wave by wave, unit by unit, segment by segment.
tr_status tr__pass_order(tr_plan *plan, tr_error *err);
// Units whose activations are dropped and made again before their backward.
tr_status tr__pass_recompute(tr_plan *plan, tr_error *err);
// Sums that are not f32: each micro-batch's gradients are folded into them.
tr_status tr__pass_fold(tr_plan *plan, tr_error *err);
// The squares of one micro-batch's gradients, or of one wave's, for the noise scale.
tr_status tr__pass_gauge(tr_plan *plan, tr_error *err);
// What ranks bring together and sum, and when.
tr_status tr__pass_communicate(tr_plan *plan, tr_error *err);
// Updates of what lives on NVMe: cut into pieces, read ahead and written back.
tr_status tr__pass_stage(tr_plan *plan, tr_error *err);
// The record of the step, and the bytes that move in it.
tr_status tr__pass_traffic(tr_plan *plan, tr_error *err);
// The inputs of recomputed units leave the device, and come back.
tr_status tr__pass_boundary(tr_plan *plan, tr_error *err);
// Buffers that live always and belong to no flat buffer; the buffers of every step.
tr_status tr__pass_kept(tr_plan *plan, tr_error *err);
tr_status tr__pass_values(tr_plan *plan, tr_error *err);
// Who waits for whom, from what the steps access (access.h); and from that, from when
// to when each buffer lives.
tr_status tr__pass_schedule(tr_plan *plan, tr_error *err);
// Where each lies.
tr_status tr__pass_offsets(tr_plan *plan, tr_error *err);
// The bytes, by category.
tr_status tr__pass_ledger(tr_plan *plan, tr_error *err);

// Proves, from the steps alone and not from what the allocator thought, that no two
// buffers that live at the same time overlap, that none lies outside of the arena, and
// that nothing is read before it is written. TR_INTERNAL names the two.
tr_status tr__plan_check(const tr_plan *plan, tr_error *err);

// tr_plan_make without the proof: of a plan that is looked at, and not walked by an
// executor.
tr_status tr__plan_draft(const tr_plan_request *request, tr_plan **out, tr_error *err);

// The step at which most bytes of a space live, and of which sequence.
tr_status tr__plan_fullest(const tr_plan *plan, tr_space space, tr_sequence_kind *kind,
                           int32_t *step, tr_error *err);

// "batch 8 = micro-batch 2 x 4 accumulation steps x 1 rank".
void tr__plan_print_batch(const tr_plan_request *request, FILE *to);
// tr_plan_print_json without the braces around it.
tr_status tr__plan_write_members(const tr_plan *plan, tr_json_writer *to,
                                 tr_error *err);

// A buffer of the plan; -1 and an error when there is no memory.
int tr__plan_buffer(tr_plan *plan, tr_buffer buffer, tr_error *err);
// The slot of the step that names where operands of the place lie; TR_SLOTS: none.
tr_slot tr__place_slot(tr_place place);
// Which bit of tr_plan_step.writes is that of an operand: what a slot names, or the
// gradient of the unit's flat buffer `flat`.
uint64_t tr__slot_bit(tr_slot slot);
uint64_t tr__grad_bit(int flat);
uint64_t tr__operand_bit(const tr_operand *operand);
// Does an instruction of the step add to its result i, or write it?
bool tr__step_adds(const tr_plan_step *step, const tr_instruction *at, int i);
// Appends a step to a sequence; one without an id gets one.
tr_status tr__sequence_add(tr_sequence *sequence, tr_plan_step step, tr_error *err);
// The first of the steps at the end of a sequence that are done only where the update
// is applied: before it the engine decides. Their count: there is none.
size_t tr__sequence_applied(const tr_sequence *sequence);
// A binding of the plan, one that is there already where it is the same; -1: no memory.
int32_t tr__plan_bind(tr_plan *plan, const tr_binding *binding, tr_error *err);
// Bit f: the program reads (TR_PLACE_PARAM) or writes (TR_PLACE_PARAM_GRAD) the unit's
// flat f.
uint32_t tr__program_flats(const tr_program *program, tr_place place);
// Result `at` of a program, counted through all its instructions; NULL: no more. Has an
// earlier one been the same tensor?
const tr_operand *tr__program_result(const tr_program *program, size_t at,
                                     const tr_tensor_desc **desc);
bool tr__program_repeats(const tr_program *program, size_t at,
                         const tr_operand *result);
// The gradients of the unit's own flat buffer that a segment's backward makes, one
// after the other: `next`: 0 at first; NULL: no more. *count: f32 elements.
const tr_operand *tr__unit_gradient(const tr_unit_program *unit, int segment,
                                    size_t *next, int64_t *count);
// Wave tensors are there in so many parts, each a block of the unit's wave_bytes: one
// for each micro-batch where the run is reproducible, so that they are merged in one
// order whatever the ranks; else one, to which all micro-batches of a rank add. What
// they are merged to is the first.
int64_t tr__wave_parts(const tr_plan *plan, tr_sequence_kind sequence);
// Do the unit's wave tensors belong to the whole step, since none of its segments waits
// for them?
bool tr__wave_is_step(const tr_unit_program *unit);
// Bytes through which ranks merge what a combine step ends; 0 where nothing of other
// ranks is merged.
int64_t tr__combine_bytes(const tr_plan *plan, const tr_plan_step *step);
// The wave tensors that a combine step ends: those to which its segment has added, in
// the forward, or their gradients. `next`: 0 at first; false: no more.
typedef struct tr_wave_tensor {
    int64_t offset, bytes; // in a part
    tr_tensor_desc desc;
    const tr_op *op; // whose merge rule; NULL: they are added
    bool own;        // the rank's: no other rank's are merged with them
} tr_wave_tensor;
bool tr__combine_next(const tr_plan *plan, const tr_plan_step *step, size_t *next,
                      tr_wave_tensor *tensor);
int32_t tr__combine_buffer(const tr_plan_step *step); // that of the tensors
// ---- on NVMe
enum {
    TR_NVME_ALIGNMENT = 4096, // bytes: of offsets, lengths and memory
    TR_EXCHANGE_ELEMENTS = 1 << 20,
};
// Where a flat buffer's part lives.
const tr_flat_range *tr__flat_range(const tr_flat *flat, tr_part part);
bool tr__is_on_nvme(const tr_plan *plan, const tr_flat_range *range);
// Does anything of the plan?
bool tr__plan_uses_nvme(const tr_plan *plan);
// The same of a part of its flat buffers, which is alike for all of them. (The copy is
// a part of its own in 16 bits alone.)
bool tr__part_is_on_nvme(const tr_plan *plan, tr_part part);
// What is read to be fetched: what the update changes, or its copy in 16 bits.
tr_part tr__used_part(const tr_plan *plan);
// Bytes of an element of a part of a flat buffer.
int64_t tr__part_bytes(const tr_plan *plan, tr_part part);
// Elements of a part from one possible cut to the next: whole shards' blocks, in memory
// and in the file.
int64_t tr__nvme_elements(const tr_plan *plan, tr_part part);
// Elements that the exchange has room for, and bytes that each takes in it: f32, and
// behind all of these the copies.
int64_t tr__exchange_elements(const tr_plan *plan);
int64_t tr__exchange_bytes(const tr_plan *plan);
// Bytes that so many elements of a part take in the file: whole blocks.
int64_t tr__nvme_bytes(const tr_plan *plan, tr_part part, int64_t count);

// Hash of what ranks do together, of all sequences in their order: equal on all ranks
// whose plans fit together.
uint64_t tr__plan_exchanges(const tr_plan *plan);
tr_step_shape tr__step_shape(const tr_plan_step *step);
// Steps that run a unit's program, or end its segment.
bool tr__step_is_of_unit(const tr_plan_step *step);
// Backward steps of one scope add to one gradient of a flat, before it is handed to
// other ranks: those of the optimizer step, of the wave (stages 2 and 3) or, for a
// slice of a tied tensor, of one unit in it. A slice is so never there in full for
// longer than one of its users is at work, and the ranks' sums take what each user has
// made.
int64_t tr__gradient_scope(const tr_plan *plan, int flat, int unit, int64_t wave);
// How many of the stream's steps must be done before the step.
int32_t tr__step_wait(const tr_plan_step *step, tr_stream stream);
// Steps that move what a unit is given.
bool tr__step_is_of_boundary(const tr_plan_step *step);
// Steps that work on a flat buffer.
bool tr__step_is_of_flat(const tr_plan_step *step);
// Steps that work on one micro-batch.
bool tr__step_is_of_micro_batch(const tr_plan_step *step);
// The name of the unit or the flat buffer that the step works on, NULL: of none.
const char *tr__step_subject(const tr_plan *plan, const tr_plan_step *step);
// The ZeRO stage that is at work: with one rank there is nothing to shard.
int tr__plan_stage(const tr_plan *plan);
// Bytes of an element of the parameters that units compute with.
int64_t tr__param_bytes(const tr_plan *plan);
// Are they of 16 bits, beside master weights in f32?
bool tr__plan_is_half(const tr_plan *plan);
// Are gradients summed in another type than the f32 that a backward makes? Then each
// micro-batch's is made by itself, and folded into the sums.
bool tr__plan_folds(const tr_plan *plan);
int64_t tr__sum_bytes(const tr_plan *plan); // of an element of the sums
// Of so many elements of them in memory: whole lines of the cache.
int64_t tr__sums_bytes(const tr_plan *plan, int64_t count);
// Elements of a flat buffer that a rank updates at most: its shard, or, at stage 0,
// all.
int64_t tr__update_shard(const tr_plan *plan, const tr_flat *flat);
// How many ranks' measures make up all: 1 at stage 0.
int64_t tr__norms_ranks(const tr_plan *plan);
// How many tr_squares a rank has for a flat buffer.
int64_t tr__norms_parts(const tr_plan *plan, const tr_flat *flat);
// Index of the tr_squares of a block (of 1,024 elements of its flat buffer) in which
// the parameter has elements.
int64_t tr__norms_part(const tr_plan *plan, const tr_plan_param *param, int64_t block);
// Are gradients handed on after each wave, to another rank or another space? Some of
// the plan's; those of a flat buffer.
bool tr__plan_grads_pass(const tr_plan *plan);
bool tr__flat_grads_pass(const tr_plan *plan, int flat);
// Does something lie between its parameters, or behind them?
bool tr__flat_has_gaps(const tr_plan *plan, int flat);
// Elements of the flat buffers that are updated on the device.
int64_t tr__plan_staying(const tr_plan *plan);
const char *tr__plan_step_name(tr_plan_step_kind kind);
const char *tr__sequence_name(tr_sequence_kind kind);
const char *tr__stream_name(tr_stream stream);
const char *tr__part_name(tr_part part);
// The program that a forward, recompute or backward step runs, NULL for other kinds.
const tr_program *tr__step_program(const tr_plan *plan, const tr_plan_step *step,
                                   tr_sequence_kind sequence);

#endif

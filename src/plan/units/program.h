// Unit programs: the ops of one unit (or segment of it), compiled once for each kind of
// unit, with operands at offsets relative to blocks that a step of the plan names.
#ifndef TR_PLAN_UNITS_PROGRAM_H
#define TR_PLAN_UNITS_PROGRAM_H

#include "comm/mesh.h"
#include "graph/derive.h"
#include "plan/units/operand.h"

#include <tranche/extend/plan.h>
#include <tranche/model.h>

// Which block an operand lies in.
typedef enum tr_place {
    TR_PLACE_NONE,
    TR_PLACE_PARAM,       // one of the unit's flat buffers
    TR_PLACE_PARAM_GRAD,  // the accumulator of one
    TR_PLACE_DATA,        // the micro-batch's slot of the data ring
    TR_PLACE_INPUT,       // boundary before the unit
    TR_PLACE_OUTPUT,      // boundary after it
    TR_PLACE_INPUT_GRAD,  // gradients of the two
    TR_PLACE_OUTPUT_GRAD, //
    TR_PLACE_SAVED,       // kept from forward to backward, or from segment to segment
    TR_PLACE_HELD,        // kept by a backward for the gradients of weights, later
    TR_PLACE_WAVE,        // one for all micro-batches of the wave
    TR_PLACE_WAVE_GRAD,   //
    TR_PLACE_CARRIED,     // from piece to piece of a program, while ranks exchange
    TR_PLACE_TEMP,        // within one piece, workspaces included
    TR_PLACE_SUMS,        // the loss's
    TR_PLACE_STATE,       // the unit's states
    TR_PLACE_LOGITS,      // inference: the logits
    TR_PLACE_CACHE,       // inference: what the unit keeps of earlier positions
    TR_PLACE_PACKED,      // what kernels have packed of the unit's parameters: those of
    TR_PLACE_PACKED_BACKWARD, // forward ops, and those that only the backward has
    TR_PLACE_FIRST_BAD,       // what was first not finite (finite.h)
    TR_PLACE_COUNT
} tr_place;

// A unit's flat buffers: its own, the first of which is flat 0, then the tied tensors
// that it uses.
enum { TR_UNIT_FLATS_MAX = 32 };

// A unit's own flat buffers, by what lies in them.
typedef enum tr_own {
    TR_OWN_TRAINED,   // also where there is nothing at all
    TR_OWN_APART,     // trained, with other states of the optimizer
    TR_OWN_FROZEN,    // not trained
    TR_OWN_QUANTIZED, // neither, and kept in few bits
    // Trained, apart, or not trained, of which ranks of the tensor axis have parts.
    TR_OWN_SPLIT,
    TR_OWN_SPLIT_APART,
    TR_OWN_SPLIT_FROZEN,
    TR_OWN_SPLIT_QUANTIZED,
    TR_OWN_REPEATED, // the same, of which some of these ranks have one part alike
    TR_OWN_REPEATED_APART,
    TR_OWN_REPEATED_FROZEN,
    TR_OWN_REPEATED_QUANTIZED,
    TR_OWN_SUMMED, // trained, and these ranks sum its gradient (tr_param_info.summed)
    TR_OWN_SUMMED_APART,
    TR_OWN
} tr_own;

typedef struct tr_operand {
    tr_place place; // TR_PLACE_NONE: absent
    int flat;       // of a parameter: which of the unit's flat buffers
    int64_t offset; // bytes
    tr_value value; // of the unit's graph; for the checker
    int block;      // of the program's; -1: absent
    // Of a parameter and its gradient: bytes of zeros behind it that the kernel also
    // works on (tr_kernel.padding).
    int64_t padding;
} tr_operand;

typedef struct tr_instruction {
    tr_op_desc desc;
    const tr_kernel *kernel;
    void *state; // the kernel's, from `prepare`
    tr_operand in[TR_OP_IN_MAX], out[TR_OP_OUT_MAX];
    int64_t workspace; // offset in TR_PLACE_TEMP
    size_t shared; // desc.finds: so many instructions before it is the one that leaves
    tr_operand packed; // TR_PLACE_NONE: the kernel packs nothing
    int64_t packed_bytes;
    uint32_t accumulate; // always
    uint32_t first;      // unless the step writes them (graph.h, tr_call.first)
    bool again;          // makes once more what a forward has made and not kept
    tr_axes exchange;    // between which ranks result 0 is summed behind it; 0: none
    // So many exchanges, the oldest of those that nobody has waited for, are done when
    // it begins; not 0: a piece begins with it.
    int takes;
} tr_instruction;

// What an instruction is asked to do where it is launched alone, without another that
// it shares anything with.
static inline tr_op_desc tr__desc_alone(const tr_instruction *at) {
    tr_op_desc desc = at->desc;
    desc.leaves = desc.finds = false;
    return desc;
}

// A block that a program works in. A step that runs it names for each block where that
// lies, in their order.
typedef struct tr_program_block {
    tr_place place;
    int flat;  // of parameters and their gradients
    bool part; // of wave tensors: the micro-batch's part, which it contributes to
    tr_step_operand of; // mode and bytes: what the program does there; no buffer
} tr_program_block;

enum { TR_PROGRAM_BLOCKS_MAX = TR_PLACE_COUNT + 2 + 2 * TR_UNIT_FLATS_MAX };

// Bytes of a block that it accesses in one way.
typedef struct tr_program_access {
    int block;
    tr_step_operand of;
} tr_program_access;

// What a program of a unit is for: its role.
typedef enum tr_variant {
    TR_VARIANT_FORWARD,       // keeps what the backward reads
    TR_VARIANT_SAVES_NOTHING, // the forward of a unit that is recomputed
    TR_VARIANT_EVALUATE,      // keeps nothing, and nothing random is done
    TR_VARIANT_BACKWARD,
    TR_VARIANT_RECOMPUTE, // makes again what the forward would have kept
    TR_VARIANT_INFERENCE,
    TR_VARIANT_TRACK, // brings states up to date, after a step that was applied
    TR_VARIANTS
} tr_variant;

// What ranks have exchanged before a piece begins.
typedef struct tr_received {
    tr_operand operand;
    int64_t bytes;
} tr_received;

// A piece of what a role does. Its own pieces are numbered by segment and, within a
// segment, in the order in which they run.
typedef struct tr_program {
    tr_variant variant; // its role
    int segment;        // 0 where the role is not cut by segments
    int piece;          // among those of its role
    // The first, the last of the pieces that follow each other at once: those of its
    // segment, but for the gradients of weights that come later.
    bool begins, ends;
    bool weights; // of a backward: makes those, and is a piece by itself
    // Not 0: it is an exchange. Its only instruction names what is summed, where it
    // lies, over the ranks on these axes.
    tr_axes exchange;
    // What the piece waits for: exchanges of its segment, in their order. (What it
    // does not wait for goes on beside it.)
    tr_received *received;
    size_t received_count;
    tr_instruction *instructions;
    size_t count;
    size_t weights_at; // before it is cut: where they begin; `count`: there are none
    tr_program_block *blocks;
    size_t block_count;
    tr_program_access *accesses;
    size_t access_count;
    int64_t temp_bytes;
    int64_t carried_bytes; // of all its pieces together
    tr_cost cost;
} tr_program;

typedef struct tr_program_param {
    int flat;        // of the unit
    int64_t offset;  // elements
    int64_t padding; // zeros behind it that kernels ask for, elements
} tr_program_param;

typedef struct tr_unit_program {
    const char *kind;
    uint32_t recomputed; // classes of tensors that are recomputed (tr_recompute_class)
    tr_graph *graph;
    uint64_t graph_hash; // where rows of the model rewrite it, else 0
    tr_derivation derived;
    int segments;
    // All its programs, by role, then by piece: those of a role are [first_of[role],
    // first_of[role + 1]). Forwards, evaluation and backward are cut by segments, other
    // roles are not; and each role is cut where ranks exchange inside of the unit
    // (pieces.c).
    tr_program *programs;
    int first_of[TR_VARIANTS + 1];
    int64_t input_bytes, output_bytes;           // of one micro-batch's boundary
    int64_t input_grad_bytes, output_grad_bytes; // the same, 0: they have no gradients
    int64_t saved_bytes, held_bytes;             // of one micro-batch
    int64_t wave_bytes;                          // of the unit
    int64_t *state_offset;                       // [graph->state_count] bytes
    int64_t state_bytes;                         // of the unit
    int64_t logits_bytes;
    int64_t packed_bytes[2];  // of the unit: forward ops', and the backward's
    int64_t cache_bytes;      // of the unit
    int64_t cache_room;       // positions of its smallest cache; INT64_MAX: none
    tr_program_param *params; // [graph->param_count]
    int flat_count;           // own and tied
    uint32_t frozen_flats;    // bit f: its flat f is not trained
    // Of the unit's own flat buffers: which flat it is, -1: there is none; elements.
    int own[TR_OWN];
    int64_t own_elements[TR_OWN];
} tr_unit_program;

typedef struct tr_compile_request {
    int64_t micro_batch;
    bool many;                    // more than one micro-batch adds to a gradient
    bool cuts_tied;               // tied tensors may be cut over tensor ranks
    bool train;                   // else inference: only `inference` is compiled,
    bool all_rows;                // for every row of the loss
    int64_t cache_positions;      // tr_plan_request.cache_positions
    int64_t cache_piece;          // positions that are computed at once at most
    bool recompute;               // `saves nothing` programs will be asked for
    uint32_t recomputed;          // classes of tensors that the backward recomputes
    tr_target target;             // of all kernels
    tr_dtype real;                // f32, bf16 or f16: what units compute in
    bool fp8;                     // and whether the unit multiplies in 8 bits
    tr_quantization quantization; // how frozen weights of linear layers are kept
    bool weights_later;           // gradients of weights may come later
    bool params_come;             // parameters are there for a while
    bool finite;                  // results of a training are checked (finite.h)
    bool packs;                   // kernels keep what they make of parameters
    const tr_plan_request *plan;  // says what is frozen, and has the model
    bool input_fixed[TR_GRAPH_IO_MAX]; // of its inputs: nothing trained leads to
                                       // it
    bool input_cut[TR_GRAPH_IO_MAX];   // it is this rank's tokens of the whole
    bool last;                         // of the model's units
} tr_compile_request;

// Compiles a unit with these inputs [input_count]. Prepares its kernels; allocates no
// tensors.
tr_status tr__unit_compile(const tr_compile_request *request, const tr_model_unit *unit,
                           const tr_tensor_desc *inputs, int input_count,
                           const tr_batch_tensors *batch, tr_unit_program **out,
                           tr_error *err);
void tr__unit_program_destroy(tr_unit_program *program); // NULL-safe

// Once the device is open and before the first launch: readies the program's kernels
// (tr_kernel.bind), or those of all programs of a unit.
tr_status tr__program_bind(const tr_program *program, tr_error *err);
tr_status tr__unit_bind(const tr_unit_program *unit, tr_error *err);

// The pieces that the unit has of a role, 0: it has no such program; and one of them,
// NULL: there is none.
int tr__unit_pieces(const tr_unit_program *unit, tr_variant role);
const tr_program *tr__unit_piece(const tr_unit_program *unit, tr_variant role,
                                 int piece);
// The pieces that a role has of a segment: the first, and the one behind the last.
typedef struct tr_piece_range {
    int first, end;
} tr_piece_range;
tr_piece_range tr__segment_pieces(const tr_unit_program *unit, tr_variant role,
                                  int segment);
// Of these, those that make gradients of weights later (at most one); all others.
tr_piece_range tr__segment_weights(const tr_unit_program *unit, int segment);
tr_piece_range tr__segment_at_once(const tr_unit_program *unit, tr_variant role,
                                   int segment);
// Bit f: a piece of the segment reads (TR_PLACE_PARAM) or writes (TR_PLACE_PARAM_GRAD)
// the unit's flat f.
uint32_t tr__segment_flats(const tr_unit_program *unit, tr_variant role, int segment,
                           tr_place place);
// The same of these pieces; of those that follow each other at once, of which the
// program is one.
uint32_t tr__pieces_flats(const tr_unit_program *unit, tr_variant role,
                          tr_piece_range pieces, tr_place place);
uint32_t tr__run_flats(const tr_unit_program *unit, const tr_program *program,
                       tr_place place);
// Do ranks exchange inside of the unit in any of its roles?
bool tr__unit_exchanges(const tr_unit_program *unit);
// Where tensor `index` lies among those that a unit hands on, in bytes.
int64_t tr__graph_output_offset(const tr_graph *graph, int64_t micro_batch, int index);
// Does a step have its backward? Else nothing in it, or before it, is trained.
bool tr__unit_has_backward(const tr_unit_program *program);
// Bit f: the program reads (TR_PLACE_PARAM) or writes (TR_PLACE_PARAM_GRAD) the unit's
// flat f.
uint32_t tr__program_flats(const tr_program *program, tr_place place);
// A result of an instruction.
typedef struct tr_result {
    const tr_instruction *of;
    int index;
} tr_result;
static inline const tr_operand *tr__result_operand(tr_result result) {
    return &result.of->out[result.index];
}
// Result `at` of a segment's pieces, counted through all their instructions but
// exchanges; of NULL: no more. Has an earlier one been the same tensor?
tr_result tr__segment_result(const tr_unit_program *unit, tr_variant role, int segment,
                             size_t at);
bool tr__segment_repeats(const tr_unit_program *unit, tr_variant role, int segment,
                         size_t at);
// Does one of its kernels keep something in the place, TR_PLACE_PACKED or ..._BACKWARD?
bool tr__program_packs(const tr_program *program, tr_place place);
// The gradients of the unit's own flat buffer that a piece of its backward makes, one
// after the other: `next`: 0 at first; NULL: no more. *count: f32 elements.
const tr_operand *tr__piece_gradient(const tr_program *piece, size_t *next,
                                     int64_t *count);

#endif

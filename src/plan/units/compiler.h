// What the parts of the compiler of unit programs share: sizes (of values), describe
// (what a call asks of a kernel), padding (zeros behind parameters), layouts (layout of
// values in blocks), in_place (values that share a place), places (which block a value
// lies in), compile_program (one program, instruction by instruction), temporaries
// (their layout), unit (all programs of a unit), pieces (that cuts them where ranks
// exchange).
#ifndef TR_PLAN_UNITS_COMPILER_H
#define TR_PLAN_UNITS_COMPILER_H

#include "plan/units/offsets.h"
#include "plan/units/program.h"

// What kernels of an op pack of a parameter: the same in all of the unit's programs.
typedef struct tr_packed_param {
    const tr_op *op;
    tr_value param;
    tr_operand at;
} tr_packed_param;

typedef struct tr_compiler {
    const tr_compile_request *request;
    tr_unit_program *unit;
    tr_program *whole; // programs before they are cut, by role, then by segment:
    int whole_of[TR_VARIANTS + 1]; // those of a role begin here
    tr_graph *graph;
    const tr_batch_tensors *batch;
    tr_value *alias; // [values] the value whose place it shares: most are their own
    int64_t *saved_offset; // [values] in TR_PLACE_SAVED; -1: not there
    int64_t *held_offset;  // [values] in TR_PLACE_HELD, likewise
    int64_t *wave_offset;  // [values] in TR_PLACE_WAVE and TR_PLACE_WAVE_GRAD
    tr_packed_param *packings;
    size_t packing_count, packing_capacity;
    tr_error *err;
} tr_compiler;

// A program while it is put together: its temporaries are laid out at its end.
typedef struct tr_draft {
    tr_program *program;
    tr_variant variant;
    int *temp_of;       // [values] index in `temps`, -1: none yet
    tr_interval *temps; // values, then one workspace for each instruction
    size_t temp_count;
    size_t untaken; // exchanges before this instruction are done (tr_instruction.takes)
} tr_draft;

// ---- sizes.c: of values, and offsets in the blocks that programs share

// A description with the micro-batch in place of TR_BATCH; a value's, absent for
// TR_NO_VALUE.
tr_tensor_desc tr__concrete_desc(tr_tensor_desc desc, int64_t micro_batch);
tr_tensor_desc tr__value_desc(const tr_compiler *c, tr_value value);
int64_t tr__value_bytes(const tr_compiler *c, tr_value value);
// Offset of tensor `index` among those handed in or on, in bytes; with `index` one past
// the last, the bytes of all.
int64_t tr__input_offset(const tr_compiler *c, int index);
int64_t tr__output_offset(const tr_compiler *c, int index);
// Of a cache in the unit's, in bytes; with `value` one past the graph's last, the bytes
// of all.
int64_t tr__cache_offset(const tr_compiler *c, tr_value value);

// ---- layouts.c

// Refuses tensors of absurd sizes, then fills in the unit's parameters, flat buffers
// and bytes, and the compiler's offsets. `forward_values`: those before the derivation.
tr_status tr__compiler_layout(tr_compiler *c, size_t forward_values);

// ---- in_place.c

// Fills in `alias`.
tr_status tr__compiler_in_place(tr_compiler *c);

// ---- describe.c

// The parameter that the call's kernel may pack; TR_NO_VALUE: none.
tr_value tr__packed_param(const tr_compiler *c, const tr_call *call);
// What a kernel for the call is asked to do.
tr_op_desc tr__call_desc(const tr_compiler *c, const tr_call *call);
// What the call costs by the kernel that is chosen for it: zeros where none is known.
tr_cost tr__call_cost(const tr_compiler *c, const tr_call *call);

// ---- padding.c

// Elements of zeros that the unit's kernels ask for behind a parameter, and behind its
// gradient (tr_kernel.padding).
int64_t tr__param_padding(const tr_compiler *c, size_t param);
// Tells the instruction, whose kernel is found, what lies behind its operands.
void tr__instruction_pad(const tr_compiler *c, const tr_call *call, tr_instruction *to);

// ---- finite.c

// Checks of the results of the draft's last instruction, where they are real numbers.
tr_status tr__draft_check_finite(tr_compiler *c, tr_draft *d);

// ---- places.c

// Where a value lies, as seen by the draft's next instruction; a temporary's offset is
// its index in `temps`.
tr_operand tr__value_place(const tr_compiler *c, tr_draft *d, tr_value value);

// ---- draft.c

// Room of the draft's next instruction, among the temporaries; returns its index.
int64_t tr__draft_workspace(tr_draft *d, size_t bytes);
// The draft's next instruction is complete.
void tr__draft_take(tr_draft *d);

// ---- temporaries.c

// How many of the exchanges that nobody has waited for the draft's next instruction,
// whose operands have their places, has to wait for.
int tr__draft_takes(tr_draft *d, const tr_instruction *next);
// Lays out what the draft's pieces carry and, in another block, what each works with
// alone, and turns the numbers of temporaries into offsets.
tr_status tr__draft_lay_out(tr_compiler *c, tr_draft *d);

// ---- pieces.c

// Where the piece ends that begins with instruction `first` of [first, last), and what
// ranks sum behind it: NULL: nothing.
const tr_instruction *tr__piece_end(const tr_program *whole, size_t first, size_t last,
                                    size_t *end);
// Makes the unit's programs of the whole ones. false: no memory.
bool tr__unit_cut(tr_compiler *c);

// ---- compile_program.c, program.c

// Compiles calls [count] into a program. On error the program is for tr__program_clear.
tr_status tr__program_compile(tr_compiler *c, tr_variant variant, const tr_call *calls,
                              size_t count, tr_program *program);
void tr__program_clear(tr_program *program);
// ---- blocks.c
// Fills in the program's blocks and accesses, and the blocks of its operands. false: no
// memory.
bool tr__program_blocks(tr_program *program);

#endif

// What an operand is to its step: for people, for tests, and for the proof, which asks
// whether the right bytes are in each role.
#ifndef TR_PLAN_FLOW_ROLES_H
#define TR_PLAN_FLOW_ROLES_H

#include "plan/flow/plan.h"

typedef enum tr_operand_role {
    TR_OPERAND_INPUT, // of a unit; what a step reads that has nothing else to read
    TR_OPERAND_OUTPUT,
    TR_OPERAND_INPUT_GRAD,
    TR_OPERAND_OUTPUT_GRAD,
    TR_OPERAND_SAVED,
    TR_OPERAND_HELD, // for gradients of weights that come later
    TR_OPERAND_WAVE, // wave tensors that a program reads; that are packed or merged
    TR_OPERAND_WAVE_PART,
    TR_OPERAND_WAVE_GRAD,
    TR_OPERAND_WAVE_GRAD_PART,
    TR_OPERAND_CARRIED,         // from piece to piece of a program
    TR_OPERAND_TEMP,            // working memory
    TR_OPERAND_PACKED,          // what kernels have packed of parameters: forward ops'
    TR_OPERAND_PACKED_BACKWARD, // and the backward's
    TR_OPERAND_NORMS,           // of tensors, or what ranks measure for them
    TR_OPERAND_DIRECTION,       // of elements, on which an update goes
    TR_OPERAND_PART,            // of an update: its parts; the others follow (tr_part)
    TR_OPERAND_ROLES = TR_OPERAND_PART + TR_PARTS,
    TR_OPERAND_OTHER = TR_OPERAND_ROLES, // flat buffers of units, data, staging
} tr_operand_role;

// In words: "input", "wave_grad", "staged gradients".
const char *tr__operand_role_name(tr_operand_role role);
// The role of operand `i` of the step.
tr_operand_role tr__step_role(const tr_plan *plan, const tr_plan_step *step, size_t i);
// The first operand of the step in a role; NULL: none.
const tr_step_operand *tr__step_find(const tr_plan *plan, const tr_plan_step *step,
                                     tr_operand_role role);
// The block of the step's program at the place, of the unit's flat buffer `flat`;
// `part` as tr_program_block has it. NULL: its program works in no such block.
tr_step_operand *tr__step_block(const tr_plan *plan, const tr_plan_step *step,
                                tr_place place, int flat, bool part);

#endif

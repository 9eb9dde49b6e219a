#include "plan/flow/roles.h"

#include "ops/flat/accumulate/accumulate.h"
#include "ops/flat/merge/merge.h"
#include "ops/flat/orthogonal/orthogonal.h"
#include "ops/flat/update/update.h"
#include "ops/optimizers/optimizer_measure.h"

const char *tr__operand_role_name(tr_operand_role role) {
    static const char *const names[TR_OPERAND_ROLES] = {
        "input",
        "output",
        "input_grad",
        "output_grad",
        "saved",
        "held",
        "wave",
        "wave_part",
        "wave_grad",
        "wave_grad_part",
        "carried",
        "temp",
        "packed",
        "packed_backward",
        "norms",
        "direction",
        [TR_OPERAND_PART + TR_PART_PARAM] = "staged parameters",
        [TR_OPERAND_PART + TR_PART_GRAD] = "staged gradients",
        [TR_OPERAND_PART + TR_PART_STATISTICS] = "statistics",
        [TR_OPERAND_PART + TR_PART_COPY] = "staged copy",
        [TR_OPERAND_PART + TR_PART_STATE] = "staged state 0",
        [TR_OPERAND_PART + TR_PART_STATE + 1] = "staged state 1",
        [TR_OPERAND_PART + TR_PART_STATE + 2] = "staged state 2",
        [TR_OPERAND_PART + TR_PART_STATE + 3] = "staged state 3",
    };
    return role < TR_OPERAND_ROLES && names[role] ? names[role] : "";
}

// ---- units' programs

static tr_operand_role role_of_block(const tr_program_block *block) {
    switch (block->place) {
    case TR_PLACE_INPUT:
        return TR_OPERAND_INPUT;
    case TR_PLACE_OUTPUT:
        return TR_OPERAND_OUTPUT;
    case TR_PLACE_INPUT_GRAD:
        return TR_OPERAND_INPUT_GRAD;
    case TR_PLACE_OUTPUT_GRAD:
        return TR_OPERAND_OUTPUT_GRAD;
    case TR_PLACE_SAVED:
        return TR_OPERAND_SAVED;
    case TR_PLACE_HELD:
        return TR_OPERAND_HELD;
    case TR_PLACE_WAVE:
        return block->part ? TR_OPERAND_WAVE_PART : TR_OPERAND_WAVE;
    case TR_PLACE_WAVE_GRAD:
        return block->part ? TR_OPERAND_WAVE_GRAD_PART : TR_OPERAND_WAVE_GRAD;
    case TR_PLACE_CARRIED:
        return TR_OPERAND_CARRIED;
    case TR_PLACE_TEMP:
        return TR_OPERAND_TEMP;
    case TR_PLACE_PACKED:
        return TR_OPERAND_PACKED;
    case TR_PLACE_PACKED_BACKWARD:
        return TR_OPERAND_PACKED_BACKWARD;
    default:
        return TR_OPERAND_OTHER;
    }
}

tr_step_operand *tr__step_block(const tr_plan *plan, const tr_plan_step *step,
                                tr_place place, int flat, bool part) {
    const tr_program *program = tr__payload_program(step);
    for (size_t i = 0; program && i < program->block_count; i++) {
        const tr_program_block *block = &program->blocks[i];
        if (block->place == place && block->flat == flat && block->part == part) {
            return tr__step_operand(plan, step, i);
        }
    }
    return NULL;
}

// ---- ops

static tr_operand_role part_role(int part) {
    return (tr_operand_role)(TR_OPERAND_PART + part);
}

// The second phase has the direction in place of gradients, and no states.
static tr_operand_role role_in_matrices(const tr_op_desc *desc, int i) {
    int result = i - desc->in_count;
    if (desc->op == &tr__op_orthogonal) {
        return i == 0                     ? TR_OPERAND_DIRECTION
               : result == TR_UPDATE_COPY ? part_role(TR_PART_COPY)
                                          : part_role(TR_PART_PARAM);
    }
    return i == 0        ? part_role(TR_PART_GRAD)
           : result == 0 ? TR_OPERAND_DIRECTION
                         : part_role(TR_PART_STATE + result - TR_UPDATE_STATE);
}

// Inputs come before results; those of the first phase of an update have the parameters
// in place of norms.
static tr_operand_role role_in_update(const tr_op_desc *desc, int i) {
    bool measures = desc->op == &tr__op_direction_squares;
    int result = i - desc->in_count;
    if (i == 0) {
        return part_role(TR_PART_GRAD);
    }
    if (i < desc->in_count) {
        return measures ? part_role(TR_PART_PARAM) : TR_OPERAND_NORMS;
    }
    if (result >= TR_UPDATE_STATE) {
        return part_role(TR_PART_STATE + result - TR_UPDATE_STATE);
    }
    return result == TR_UPDATE_COPY ? part_role(TR_PART_COPY)
           : measures               ? TR_OPERAND_NORMS
                                    : part_role(TR_PART_PARAM);
}

static bool is_on(const tr_plan *plan, const tr_op_launch *launch, int i,
                  int32_t buffer) {
    return plan->operands[launch->operand + (size_t)i].buffer == buffer;
}

// A merge of a rank's own parts reads what it adds to; of all ranks', what was
// gathered.
static tr_operand_role role_in_merge(const tr_plan *plan, const tr_plan_step *step,
                                     const tr_op_launch *launch, int i) {
    int result = plan->prepared[launch->op].desc.in_count;
    int32_t merged = plan->operands[launch->operand + (size_t)result].buffer;
    tr_operand_role wave = step->backward ? TR_OPERAND_WAVE_GRAD : TR_OPERAND_WAVE;
    return is_on(plan, launch, i, merged) ? wave : TR_OPERAND_INPUT;
}

static tr_operand_role role_in_launch(const tr_plan *plan, const tr_plan_step *step,
                                      const tr_op_launch *launch, int i) {
    const tr_op_desc *desc = &plan->prepared[launch->op].desc;
    if (desc->op == &tr__op_update || desc->op == &tr__op_direction_squares) {
        return role_in_update(desc, i);
    }
    if (desc->op == &tr__op_direction || desc->op == &tr__op_orthogonal) {
        return role_in_matrices(desc, i);
    }
    if (desc->op == &tr__op_merge) {
        return role_in_merge(plan, step, launch, i);
    }
    if (desc->op == &tr__op_pack && i == 0) {
        return step->backward ? TR_OPERAND_WAVE_GRAD : TR_OPERAND_WAVE;
    }
    int result = i - desc->in_count;
    return i == 0        ? (desc->in_count > 0 ? TR_OPERAND_INPUT : TR_OPERAND_OUTPUT)
           : result == 0 ? TR_OPERAND_OUTPUT
                         : TR_OPERAND_OTHER;
}

static tr_operand_role role_of_op(const tr_plan *plan, const tr_plan_step *step,
                                  size_t i) {
    const tr_payload *payload = &step->payload;
    if (payload->works && i == 0) {
        return TR_OPERAND_TEMP;
    }
    size_t operand = payload->operand + i, last = 0;
    while (last + 1 < payload->op_count &&
           plan->launches[payload->op + last + 1].operand <= operand) {
        last++;
    }
    const tr_op_launch *launch = &plan->launches[payload->op + last];
    return role_in_launch(plan, step, launch, (int)(operand - launch->operand));
}

// ---- moves

// What is sent from within what is received is no operand of its own.
static tr_operand_role role_in_exchange(const tr_plan *plan, const tr_plan_step *step,
                                        size_t i) {
    bool wave = step->payload.exchange.part == TR_PART_WAVE;
    int32_t received = tr__step_operand(plan, step, TR_EXCHANGE_RECEIVE)->buffer;
    bool within = tr__step_operand(plan, step, TR_EXCHANGE_SEND)->buffer == received;
    if (i > TR_EXCHANGE_RECEIVE || (i == TR_EXCHANGE_SEND && within)) {
        return TR_OPERAND_OTHER;
    }
    return i == TR_EXCHANGE_RECEIVE ? TR_OPERAND_OUTPUT
           : !wave                  ? TR_OPERAND_INPUT
           : step->backward         ? TR_OPERAND_WAVE_GRAD
                                    : TR_OPERAND_WAVE;
}

tr_operand_role tr__step_role(const tr_plan *plan, const tr_plan_step *step, size_t i) {
    const tr_program *program = tr__payload_program(step);
    switch (step->shape) {
    case TR_STEP_IS_LAUNCH:
        return program ? role_of_block(&program->blocks[i]) : role_of_op(plan, step, i);
    case TR_STEP_IS_COPY:
        return i == TR_COPY_FROM ? TR_OPERAND_INPUT : TR_OPERAND_OUTPUT;
    case TR_STEP_IS_EXCHANGE:
        return role_in_exchange(plan, step, i);
    case TR_STEP_IS_FILE:
        return i != TR_FILE_MEMORY               ? TR_OPERAND_OTHER
               : tr__step_reads_file(plan, step) ? TR_OPERAND_OUTPUT
                                                 : TR_OPERAND_INPUT;
    default:
        return TR_OPERAND_OTHER;
    }
}

const tr_step_operand *tr__step_find(const tr_plan *plan, const tr_plan_step *step,
                                     tr_operand_role role) {
    for (size_t i = 0; i < step->payload.operand_count; i++) {
        const tr_step_operand *operand = tr__step_operand(plan, step, i);
        if (operand->buffer >= 0 && tr__step_role(plan, step, i) == role) {
            return operand;
        }
    }
    return NULL;
}

// The programs of a unit: found by role and piece, and what is in them.
#include "plan/units/compiler.h"

#include "base/memory.h"

void tr__program_clear(tr_program *program) {
    for (size_t i = 0; i < program->count; i++) {
        tr_instruction *instruction = &program->instructions[i];
        if (instruction->kernel->release) {
            instruction->kernel->release(instruction->state);
        }
    }
    tr__free(program->instructions);
    tr__free(program->blocks);
    tr__free(program->accesses);
    *program = (tr_program){0};
}

// ---- what a program reads and writes

static bool is_at(const tr_operand *operand, tr_place place) {
    return operand->place == place;
}

int tr__unit_pieces(const tr_unit_program *unit, tr_variant role) {
    return unit->first_of[role + 1] - unit->first_of[role];
}

const tr_program *tr__unit_piece(const tr_unit_program *unit, tr_variant role,
                                 int piece) {
    return piece < tr__unit_pieces(unit, role)
               ? &unit->programs[unit->first_of[role] + piece]
               : NULL;
}

bool tr__unit_has_backward(const tr_unit_program *program) {
    return tr__unit_pieces(program, TR_VARIANT_BACKWARD) > 0 && program->derived.exists;
}

uint32_t tr__program_flats(const tr_program *program, tr_place place) {
    uint32_t flats = 0;
    for (size_t i = 0; i < program->count; i++) {
        const tr_instruction *at = &program->instructions[i];
        for (int k = 0; k < at->desc.in_count; k++) {
            flats |= is_at(&at->in[k], place) ? UINT32_C(1) << at->in[k].flat : 0;
        }
        for (int k = 0; k < at->desc.out_count; k++) {
            flats |= is_at(&at->out[k], place) ? UINT32_C(1) << at->out[k].flat : 0;
        }
    }
    return flats;
}

bool tr__program_packs(const tr_program *program, tr_place place) {
    for (size_t i = 0; i < program->count; i++) {
        if (is_at(&program->instructions[i].packed, place)) {
            return true;
        }
    }
    return false;
}

const tr_operand *tr__program_result(const tr_program *program, size_t at,
                                     const tr_tensor_desc **desc) {
    for (size_t i = 0; i < program->count; i++) {
        size_t count = (size_t)program->instructions[i].desc.out_count;
        if (at < count) {
            *desc = &program->instructions[i].desc.out[at];
            return &program->instructions[i].out[at];
        }
        at -= count;
    }
    return NULL;
}

bool tr__program_repeats(const tr_program *program, size_t at,
                         const tr_operand *result) {
    const tr_tensor_desc *desc = NULL;
    for (size_t i = 0; i < at; i++) {
        const tr_operand *other = tr__program_result(program, i, &desc);
        if (other->place == result->place && other->flat == result->flat &&
            other->offset == result->offset) {
            return true;
        }
    }
    return false;
}

const tr_operand *tr__unit_gradient(const tr_unit_program *unit, int segment,
                                    size_t *next, int64_t *count) {
    const tr_program *program = tr__unit_piece(unit, TR_VARIANT_BACKWARD, segment);
    const tr_tensor_desc *desc = NULL;
    const tr_operand *result;
    while ((result = tr__program_result(program, *next, &desc)) != NULL) {
        size_t at = (*next)++;
        if (result->place == TR_PLACE_PARAM_GRAD && result->flat == 0 &&
            !tr__program_repeats(program, at, result)) {
            *count = tr_shape_count(desc->shape);
            return result;
        }
    }
    return NULL;
}

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
    tr__free(program->received);
    *program = (tr_program){0};
}

tr_status tr__program_bind(const tr_program *program, tr_error *err) {
    tr_status status = TR_OK;
    for (size_t i = 0; i < program->count && status == TR_OK; i++) {
        const tr_instruction *at = &program->instructions[i];
        if (at->kernel->bind) {
            status = at->kernel->bind(&at->desc, at->state, err);
        }
    }
    return status;
}

tr_status tr__unit_bind(const tr_unit_program *unit, tr_error *err) {
    tr_status status = TR_OK;
    for (int i = 0; i < unit->first_of[TR_VARIANTS] && status == TR_OK; i++) {
        status = tr__program_bind(&unit->programs[i], err);
    }
    return status;
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

tr_piece_range tr__segment_pieces(const tr_unit_program *unit, tr_variant role,
                                  int segment) {
    tr_piece_range range = {0, 0};
    int pieces = tr__unit_pieces(unit, role);
    while (range.first < pieces &&
           tr__unit_piece(unit, role, range.first)->segment < segment) {
        range.first++;
    }
    range.end = range.first;
    while (range.end < pieces &&
           tr__unit_piece(unit, role, range.end)->segment == segment) {
        range.end++;
    }
    return range;
}

tr_piece_range tr__segment_at_once(const tr_unit_program *unit, tr_variant role,
                                   int segment) {
    tr_piece_range range = tr__segment_pieces(unit, role, segment);
    range.end -=
        range.end > range.first && tr__unit_piece(unit, role, range.end - 1)->weights;
    return range;
}

tr_piece_range tr__segment_weights(const tr_unit_program *unit, int segment) {
    const tr_variant role = TR_VARIANT_BACKWARD;
    tr_piece_range range = tr__segment_pieces(unit, role, segment);
    range.first = tr__segment_at_once(unit, role, segment).end;
    return range;
}

uint32_t tr__pieces_flats(const tr_unit_program *unit, tr_variant role,
                          tr_piece_range pieces, tr_place place) {
    uint32_t flats = 0;
    for (int i = pieces.first; i < pieces.end; i++) {
        flats |= tr__program_flats(tr__unit_piece(unit, role, i), place);
    }
    return flats;
}

uint32_t tr__segment_flats(const tr_unit_program *unit, tr_variant role, int segment,
                           tr_place place) {
    return tr__pieces_flats(unit, role, tr__segment_pieces(unit, role, segment), place);
}

uint32_t tr__run_flats(const tr_unit_program *unit, const tr_program *program,
                       tr_place place) {
    tr_piece_range pieces =
        program->weights
            ? tr__segment_weights(unit, program->segment)
            : tr__segment_at_once(unit, program->variant, program->segment);
    return tr__pieces_flats(unit, program->variant, pieces, place);
}

bool tr__unit_exchanges(const tr_unit_program *unit) {
    bool some = false;
    for (int i = 0; i < unit->first_of[TR_VARIANTS]; i++) {
        some = some || unit->programs[i].exchange;
    }
    return some;
}

tr_result tr__segment_result(const tr_unit_program *unit, tr_variant role, int segment,
                             size_t at) {
    tr_piece_range pieces = tr__segment_pieces(unit, role, segment);
    for (int piece = pieces.first; piece < pieces.end; piece++) {
        const tr_program *program = tr__unit_piece(unit, role, piece);
        for (size_t i = 0; i < program->count && !program->exchange; i++) {
            size_t count = (size_t)program->instructions[i].desc.out_count;
            if (at < count) {
                return (tr_result){&program->instructions[i], (int)at};
            }
            at -= count;
        }
    }
    return (tr_result){NULL, 0};
}

bool tr__segment_repeats(const tr_unit_program *unit, tr_variant role, int segment,
                         size_t at) {
    const tr_operand *result =
        tr__result_operand(tr__segment_result(unit, role, segment, at));
    for (size_t i = 0; i < at; i++) {
        const tr_operand *other =
            tr__result_operand(tr__segment_result(unit, role, segment, i));
        if (other->place == result->place && other->flat == result->flat &&
            other->offset == result->offset) {
            return true;
        }
    }
    return false;
}

// Of an instruction's results; each tensor of the program once.
static bool is_first(const tr_program *program, const tr_operand *result) {
    for (size_t i = 0; i < program->count; i++) {
        const tr_instruction *at = &program->instructions[i];
        for (int k = 0; k < at->desc.out_count; k++) {
            const tr_operand *other = &at->out[k];
            if (other->place == result->place && other->flat == result->flat &&
                other->offset == result->offset) {
                return other == result;
            }
        }
    }
    return false;
}

static bool is_own_gradient(const tr_operand *result) {
    return result->place == TR_PLACE_PARAM_GRAD && result->flat == 0;
}

const tr_operand *tr__piece_gradient(const tr_program *piece, size_t *next,
                                     int64_t *count) {
    size_t at = 0;
    for (size_t i = 0; i < piece->count && !piece->exchange; i++) {
        const tr_instruction *instruction = &piece->instructions[i];
        for (int k = 0; k < instruction->desc.out_count; k++, at++) {
            const tr_operand *result = &instruction->out[k];
            if (at >= *next && is_own_gradient(result) && is_first(piece, result)) {
                *next = at + 1;
                *count = tr_shape_count(instruction->desc.out[k].shape);
                return result;
            }
        }
    }
    return NULL;
}

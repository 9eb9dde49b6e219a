// Where an op says that ranks sum its result, the unit's programs are cut: nothing but
// checks of the result comes between the op and the piece that is the exchange, and no
// other piece is one.
#include "plan/proof/check.h"

#include <string.h>

// Between which ranks the instruction's result is to be summed; 0: there is no other.
static tr_axes summed_over(const tr_plan *plan, const tr_instruction *at) {
    uint32_t axes = 0;
    if (at->desc.op->flags & TR_OP_EXCHANGE) {
        memcpy(&axes, at->desc.attr, sizeof axes);
    }
    return tr__mesh_members(&plan->request.mesh, axes) > 1 ? axes : 0;
}

static bool is_check(const tr_instruction *at) {
    return at->out[0].place == TR_PLACE_FIRST_BAD;
}

// *last: the instruction whose result is summed behind the piece; NULL: none.
static bool find_summed(const tr_plan *plan, const tr_program *program,
                        const tr_instruction **last) {
    *last = NULL;
    for (size_t i = 0; i < program->count; i++) {
        const tr_instruction *at = &program->instructions[i];
        if (*last && !is_check(at)) {
            return false;
        }
        *last = summed_over(plan, at) ? at : *last;
    }
    return true;
}

static bool is_same(const tr_operand *a, const tr_operand *b) {
    return a->place == b->place && a->flat == b->flat && a->offset == b->offset &&
           a->value == b->value;
}

// `next`: NULL: the program is the last piece of its segment.
static bool is_cut(const tr_plan *plan, const tr_program *program,
                   const tr_program *next) {
    const tr_instruction *last;
    if (program->exchange) { // the piece before it has been looked at
        return next && !next->exchange;
    }
    if (!find_summed(plan, program, &last) || !last || !next) {
        return !last && !next;
    }
    const tr_instruction *at = &next->instructions[0];
    return next->exchange == summed_over(plan, last) && next->count == 1 &&
           is_same(&at->out[0], &last->out[0]) &&
           tr_tensor_bytes(at->desc.out[0]) == tr_tensor_bytes(last->desc.out[0]);
}

tr_status tr__check_pieces(const tr_plan *plan, tr_error *err) {
    for (int u = 0; u < plan->unit_count; u++) {
        const tr_unit_program *unit = plan->units[u].program;
        int programs = plan->units[u].owns_program ? unit->first_of[TR_VARIANTS] : 0;
        for (int i = 0; i < programs; i++) {
            const tr_program *program = &unit->programs[i];
            if (!is_cut(plan, program, program->ends ? NULL : program + 1)) {
                return tr_fail(err, TR_INTERNAL,
                               "plan: unit %s, program %d: what ranks sum is not "
                               "exchanged behind it",
                               unit->kind, i);
            }
        }
    }
    return TR_OK;
}

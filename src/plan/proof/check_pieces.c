// Where an op says that ranks sum its result, the unit's programs are cut: nothing but
// checks of the result comes between the op and the piece that is the exchange, and no
// other piece is one. Until a piece waits for the exchange, no piece touches what is
// summed, nor what lies in the same bytes.
#include "base/memory.h"
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
    if (!find_summed(plan, program, &last)) {
        return false;
    }
    if (!last || !next) { // cut before what waits for an exchange
        return !last && (!next || next->received_count > 0);
    }
    const tr_instruction *at = &next->instructions[0];
    return next->exchange == summed_over(plan, last) && next->count == 1 &&
           is_same(&at->out[0], &last->out[0]) &&
           tr_tensor_bytes(at->desc.out[0]) == tr_tensor_bytes(last->desc.out[0]);
}

// ---- what is exchanged beside a piece

// Exchanges of a unit's segment, in their order: of those begun, `taken` are done.
typedef struct flight {
    const tr_instruction **exchange;
    size_t begun, capacity, taken;
} flight;

static bool meets(const tr_operand *a, int64_t bytes, const tr_instruction *exchange) {
    const tr_operand *b = &exchange->out[0];
    return a->place == b->place && a->flat == b->flat &&
           a->offset < b->offset + tr_tensor_bytes(exchange->desc.out[0]) &&
           b->offset < a->offset + bytes;
}

static bool touches(const tr_instruction *at, const tr_instruction *exchange) {
    size_t room =
        at->kernel->workspace ? at->kernel->workspace(&at->desc, at->state) : 0;
    tr_operand work = {.place = TR_PLACE_TEMP, .offset = at->workspace};
    bool some = meets(&work, (int64_t)room, exchange);
    for (int k = 0; k < at->desc.in_count && !some; k++) {
        some = meets(&at->in[k], tr_tensor_bytes(at->desc.in[k]), exchange);
    }
    for (int k = 0; k < at->desc.out_count && !some; k++) {
        some = meets(&at->out[k], tr_tensor_bytes(at->desc.out[k]), exchange);
    }
    return some;
}

static bool touches_flying(const flight *f, const tr_program *program) {
    for (size_t i = 0; i < program->count; i++) {
        for (size_t k = f->taken; k < f->begun; k++) {
            if (touches(&program->instructions[i], f->exchange[k])) {
                return true;
            }
        }
    }
    return false;
}

// The piece waits for the oldest exchanges that nobody has waited for.
static bool takes_in_order(flight *f, const tr_program *program) {
    bool good = program->received_count <= f->begun - f->taken;
    for (size_t i = 0; i < program->received_count && good; i++) {
        const tr_received *received = &program->received[i];
        const tr_instruction *exchange = f->exchange[f->taken + i];
        good = is_same(&received->operand, &exchange->out[0]) &&
               received->bytes == tr_tensor_bytes(exchange->desc.out[0]);
    }
    f->taken += good ? program->received_count : 0;
    return good;
}

static bool is_in_turn(flight *f, const tr_program *program) {
    f->begun = program->begins ? 0 : f->begun;
    f->taken = program->begins ? 0 : f->taken;
    if (program->exchange) {
        bool good =
            !touches_flying(f, program) && tr__grow((void **)&f->exchange, &f->capacity,
                                                    f->begun + 1, sizeof *f->exchange);
        if (good) {
            f->exchange[f->begun++] = &program->instructions[0];
        }
        return good;
    }
    return takes_in_order(f, program) && !touches_flying(f, program) &&
           (!program->ends || f->taken == f->begun);
}

static tr_status check_unit(const tr_plan *plan, const tr_unit_program *unit, flight *f,
                            tr_error *err) {
    for (int i = 0; i < unit->first_of[TR_VARIANTS]; i++) {
        const tr_program *program = &unit->programs[i];
        if (!is_cut(plan, program, program->ends ? NULL : program + 1)) {
            return tr_fail(err, TR_INTERNAL,
                           "plan: unit %s, program %d: what ranks sum is not "
                           "exchanged behind it",
                           unit->kind, i);
        }
        if (!is_in_turn(f, program)) {
            return tr_fail(err, TR_INTERNAL,
                           "plan: unit %s, program %d: it uses a tensor that ranks "
                           "still exchange, or waits for one that they do not exchange",
                           unit->kind, i);
        }
    }
    return TR_OK;
}

tr_status tr__check_pieces(const tr_plan *plan, tr_error *err) {
    flight f = {0};
    tr_status status = TR_OK;
    for (int u = 0; u < plan->unit_count && status == TR_OK; u++) {
        if (plan->units[u].owns_program) {
            status = check_unit(plan, plan->units[u].program, &f, err);
        }
    }
    tr__free(f.exchange);
    return status;
}

// What of a step was the first that was not finite, in words.
#include "plan/flow/plan.h"
#include "plan/print/print.h"
#include "plan/units/finite.h"

#include <stdio.h>
#include <string.h>

// The parameter that an operand is, or is the gradient of; NULL: neither.
static const tr_param_info *param_of(const tr_unit_program *unit,
                                     const tr_operand *operand, int64_t element) {
    for (size_t p = 0; p < unit->graph->param_count; p++) {
        if (unit->params[p].flat == operand->flat &&
            unit->params[p].offset * element == operand->offset) {
            return &unit->graph->params[p];
        }
    }
    return NULL;
}

// The first parameter among what the instruction reads; NULL: none.
static const tr_param_info *param_read(const tr_unit_program *unit,
                                       const tr_instruction *at) {
    for (int k = 0; k < at->desc.in_count; k++) {
        if (at->in[k].place == TR_PLACE_PARAM) {
            return param_of(unit, &at->in[k],
                            (int64_t)tr_dtype_bytes(at->desc.in[k].dtype));
        }
    }
    return NULL;
}

static void append(char *dst, size_t bytes, const char *before, const char *name) {
    size_t length = strlen(dst);
    snprintf(dst + length, bytes - length, "%s%s", before, name);
}

static void append_param(char *dst, size_t bytes, const char *before,
                         const tr_model_unit *in, const tr_param_info *param) {
    append(dst, bytes, before, param->shared ? "" : in->prefix);
    append(dst, bytes, "", param->name);
}

static void append_tensor(const tr_unit_program *unit, const tr_model_unit *in,
                          const tr_instruction *at, const tr_operand *out, char *dst,
                          size_t bytes) {
    const tr_param_info *param = NULL;
    if (out->place == TR_PLACE_PARAM_GRAD) {
        param = param_of(unit, out, (int64_t)sizeof(float));
    }
    if (param) {
        append_param(dst, bytes, "the gradient of ", in, param);
        return;
    }
    append(dst, bytes, "the output of ", at->desc.op->name);
    param = param_read(unit, at);
    if (param) {
        append_param(dst, bytes, " with ", in, param);
    }
    append(dst, bytes, " in ", in->name);
}

// Instruction `number` of a segment, counted through its pieces but exchanges.
static const tr_instruction *instruction_at(const tr_unit_program *unit,
                                            tr_variant role, int64_t segment,
                                            int64_t number) {
    int piece = tr__segment_pieces(unit, role, (int)segment).first;
    const tr_program *program = tr__unit_piece(unit, role, piece);
    while (program->exchange || number >= (int64_t)program->count) {
        number -= program->exchange ? 0 : (int64_t)program->count;
        program = tr__unit_piece(unit, role, ++piece);
    }
    return &program->instructions[number];
}

void tr__plan_blame(const tr_plan *plan, double first, char *dst, size_t bytes) {
    int64_t units = plan->unit_count;
    snprintf(dst, bytes, "%s", "");
    if (first < 1) {
        return;
    }
    tr_step_place p = tr__place_read(first, units);
    bool back = p.visit >= units;
    int64_t u = back ? 2 * units - 1 - p.visit : p.visit;
    const tr_unit_program *unit = plan->units[u].program;
    int64_t segment = back ? unit->segments - 1 - p.segment : p.segment;
    tr_variant role = back              ? TR_VARIANT_BACKWARD
                      : p.saves_nothing ? TR_VARIANT_SAVES_NOTHING
                                        : TR_VARIANT_FORWARD;
    const tr_instruction *at = instruction_at(unit, role, segment, p.instruction);
    snprintf(dst, bytes, "first in micro-batch %lld of the step, ", (long long)p.micro);
    append_tensor(unit, &plan->request.model->units[u], at, &at->out[p.result], dst,
                  bytes);
}

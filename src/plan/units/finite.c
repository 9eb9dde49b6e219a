#include "plan/units/finite.h"

#include "backend/backend.h"
#include "base/checked.h"
#include "ops/flat/nonfinite/nonfinite.h"
#include "plan/units/compiler.h"

#include <string.h>

// ---- places as numbers

enum { SEGMENTS = 64, INSTRUCTIONS = 1 << 15, RESULTS = INSTRUCTIONS * TR_OP_OUT_MAX };

double tr__place_of_launch(const tr_step_place *place, int64_t units) {
    int64_t number = place->micro * 2 * units + place->visit;
    number = number * SEGMENTS + tr__min_i64(place->segment, SEGMENTS - 1);
    return (double)(1 + number * RESULTS * 2 + place->saves_nothing);
}

double tr__place_of_result(const tr_step_place *place) {
    int64_t instruction = tr__min_i64(place->instruction, INSTRUCTIONS - 1);
    return (double)((instruction * TR_OP_OUT_MAX + place->result) * 2);
}

tr_step_place tr__place_read(double number, int64_t units) {
    int64_t rest = (int64_t)number - 1;
    tr_step_place p = {.saves_nothing = rest % 2, .result = rest / 2 % TR_OP_OUT_MAX};
    rest = rest / 2 / TR_OP_OUT_MAX;
    p.instruction = rest % INSTRUCTIONS;
    p.segment = rest / INSTRUCTIONS % SEGMENTS;
    rest = rest / INSTRUCTIONS / SEGMENTS;
    p.visit = rest % (2 * units);
    p.micro = rest / (2 * units);
    return p;
}

// ---- checks in programs

bool tr__checks_finite(const tr_compile_request *request, tr_variant role) {
    return request->finite &&
           (role == TR_VARIANT_FORWARD || role == TR_VARIANT_SAVES_NOTHING ||
            role == TR_VARIANT_BACKWARD);
}

// Kernels of the reference know no 16 bits.
static tr_op_desc describe(const tr_compiler *c, const tr_tensor_desc *of,
                           double place) {
    tr_nonfinite_attr attr = {place};
    tr_op_desc desc = {.op = &tr__op_nonfinite,
                       .in_count = 1,
                       .out_count = 1,
                       .in = {*of},
                       .out = {{TR_F64, TR_SHAPE1(1)}},
                       .accumulate = 1,
                       .target = c->request->target};
    memcpy(desc.attr, &attr, sizeof attr);
    desc.target.level = desc.target.level < 0 ? 0 : desc.target.level;
    return desc;
}

static tr_status check_result(tr_compiler *c, tr_draft *d, size_t instruction, int k) {
    const tr_instruction *made = &d->program->instructions[instruction];
    tr_instruction *to = &d->program->instructions[d->program->count];
    tr_step_place place = {.instruction = (int64_t)instruction, .result = k};
    *to = (tr_instruction){
        .desc = describe(c, &made->desc.out[k], tr__place_of_result(&place)),
        .in = {tr__value_place(c, d, made->out[k].value)},
        .out = {{.place = TR_PLACE_FIRST_BAD, .value = TR_NO_VALUE}},
        .accumulate = 1,
    };
    to->kernel = tr__kernel_find(&to->desc);
    if (!to->kernel) {
        return tr_fail(c->err, TR_USAGE,
                       "unit %s: the %s backend has no kernel that looks for numbers "
                       "that are not finite",
                       c->unit->kind, tr__backend(to->desc.target.backend)->name);
    }
    to->workspace = tr__draft_workspace(d, 0);
    tr__draft_take(d);
    return TR_OK;
}

tr_status tr__draft_check_finite(tr_compiler *c, tr_draft *d) {
    size_t instruction = d->program->count - 1;
    const tr_op_desc *desc = &d->program->instructions[instruction].desc;
    tr_status status = TR_OK;
    // What is gathered is not there yet, and has been checked as parts.
    int results = desc->op->flags & TR_OP_GATHERS ? 0 : desc->out_count;
    for (int k = 0; k < results && status == TR_OK; k++) {
        tr_dtype type = desc->out[k].dtype;
        bool there =
            d->program->instructions[instruction].out[k].place != TR_PLACE_NONE;
        if (there && (type == TR_F16 || type == TR_F32)) {
            status = check_result(c, d, instruction, k);
        }
    }
    return status;
}

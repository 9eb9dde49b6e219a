// What was the first that was not finite: fp16's range is small, and who lowers the
// scale, or looks for a mistake, must know where.
#include "base/checked.h"
#include "exec/walk.h"
#include "ops/flat/nonfinite/nonfinite.h"

#include <stdio.h>
#include <string.h>

enum { SEGMENTS = 64, INSTRUCTIONS = 8192 };

// A place in a step of all ranks, as one number that is the smaller the earlier it is.
typedef struct place {
    int64_t micro, visit; // visit: forward of the units, then backward
    int64_t segment, instruction, result;
    bool saves_nothing;
} place;

static double code_of(const place *p, int64_t units) {
    int64_t code = p->micro * 2 * units + p->visit;
    code = code * SEGMENTS + tr__min_i64(p->segment, SEGMENTS - 1);
    code = code * INSTRUCTIONS + tr__min_i64(p->instruction, INSTRUCTIONS - 1);
    return (double)(1 + (code * TR_OP_OUT_MAX + p->result) * 2 + p->saves_nothing);
}

static place place_of(double code, int64_t units) {
    int64_t rest = (int64_t)code - 1;
    place p = {.saves_nothing = rest % 2, .result = rest / 2 % TR_OP_OUT_MAX};
    rest = rest / 2 / TR_OP_OUT_MAX;
    p.instruction = rest % INSTRUCTIONS;
    p.segment = rest / INSTRUCTIONS % SEGMENTS;
    rest = rest / INSTRUCTIONS / SEGMENTS;
    p.visit = rest % (2 * units);
    p.micro = rest / (2 * units);
    return p;
}

bool tr__watches_finite(const tr_executor *ex, const tr_launch_task *task) {
    const tr_plan_step *step = task->step;
    return ex->plan->request.compute == TR_F16 && task->sequence == TR_SEQUENCE_TRAIN &&
           (tr__step_is_forward(step) || tr__step_runs(step, TR_VARIANT_BACKWARD));
}

// The place of result 0 of an instruction of the step.
static place place_in(const tr_plan *plan, const tr_plan_step *step,
                      size_t instruction) {
    const tr_plan_request *r = &plan->request;
    int64_t units = plan->unit_count,
            segments = plan->units[step->unit].program->segments;
    bool back = tr__step_runs(step, TR_VARIANT_BACKWARD);
    return (place){.micro = tr__data_rank(r) * r->accumulation_steps + step->micro,
                   .visit = back ? 2 * units - 1 - step->unit : step->unit,
                   .segment = back ? segments - 1 - step->segment : step->segment,
                   .instruction = (int64_t)instruction,
                   .saves_nothing = tr__step_runs(step, TR_VARIANT_SAVES_NOTHING)};
}

// `x` is of the description `of`.
static void note(const tr_executor *ex, tr_device_queue *queue, double code,
                 const tr_tensor_desc *of, void *x) {
    tr_nonfinite_attr attr = {code};
    tr_op_desc desc = {.op = &tr__op_nonfinite,
                       .in_count = 1,
                       .out_count = 1,
                       .in = {*of},
                       .out = {{TR_F64, TR_SHAPE1(1)}},
                       .accumulate = 1,
                       .target = ex->plan->target};
    tr_launch launch = {.in = {x},
                        .out = {&tr__own_statistics(ex)[TR_STATISTICS_FIRST_BAD]},
                        .accumulate = 1};
    memcpy(desc.attr, &attr, sizeof attr);
    desc.target.level = desc.target.level < 0 ? 0 : desc.target.level;
    tr__launch_kernel(ex, queue,
                      &(tr_device_work){.kernel = tr__kernel_find(&desc),
                                        .desc = &desc,
                                        .launch = &launch});
}

void tr__note_finite(const tr_executor *ex, tr_device_queue *queue,
                     const tr_plan_step *step, size_t instruction,
                     const tr_op_desc *desc, const tr_launch *launch) {
    place p = place_in(ex->plan, step, instruction);
    for (int k = 0; k < desc->out_count; k++) {
        tr_dtype type = desc->out[k].dtype;
        p.result = k;
        if (launch->out[k] && (type == TR_F16 || type == TR_F32)) {
            note(ex, queue, code_of(&p, ex->plan->unit_count), &desc->out[k],
                 launch->out[k]);
        }
    }
}

// ---- in words

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

void tr__executor_blame(const tr_executor *executor, double first, char *dst,
                        size_t bytes) {
    const tr_plan *plan = executor->plan;
    int64_t units = plan->unit_count;
    snprintf(dst, bytes, "%s", "");
    if (first < 1) {
        return;
    }
    place p = place_of(first, units);
    bool back = p.visit >= units;
    int64_t u = back ? 2 * units - 1 - p.visit : p.visit;
    const tr_unit_program *unit = plan->units[u].program;
    int64_t segment = back ? unit->segments - 1 - p.segment : p.segment;
    tr_variant role = back              ? TR_VARIANT_BACKWARD
                      : p.saves_nothing ? TR_VARIANT_SAVES_NOTHING
                                        : TR_VARIANT_FORWARD;
    const tr_program *program = tr__unit_piece(unit, role, (int)segment);
    const tr_instruction *at = &program->instructions[p.instruction];
    snprintf(dst, bytes, "first in micro-batch %lld of the step, ", (long long)p.micro);
    append_tensor(unit, &plan->request.model->units[u], at, &at->out[p.result], dst,
                  bytes);
}

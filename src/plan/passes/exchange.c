// Pass: exchanges inside of a unit. Between two pieces of a program, ranks sum what the
// first has made, where it lies; or do half of that.
#include "ops/nn/largest/largest.h"
#include "plan/flow/maker.h"
#include "plan/flow/passes.h"
#include "plan/flow/work.h"

static const tr_program *exchange_of(const tr_plan_step *step) {
    const tr_program *program = tr__payload_program(step);
    return program && program->exchange ? program : NULL;
}

// The bytes that the piece names.
static tr_region summed_by(const tr_plan *plan, const tr_plan_step *step,
                           const tr_instruction *at) {
    const tr_step_operand *block =
        tr__step_operand(plan, step, (size_t)at->out[0].block);
    int64_t first = block->first + at->out[0].offset;
    return (tr_region){block->buffer, first, first + tr_tensor_bytes(at->desc.out[0])};
}

static tr_part part_of(const tr_instruction *at) {
    return at->desc.op == &tr__op_gather_largest ? TR_PART_LARGEST : TR_PART_TENSOR;
}

static void put_exchange(tr_editor *editor, const tr_plan_step *step,
                         const tr_program *program) {
    const tr_instruction *at = &program->instructions[0];
    const tr_exchange exchange = {.part = part_of(at),
                                  .type = tr__exchange_type(at->desc.out[0].dtype),
                                  .group = program->exchange};
    tr_region all = summed_by(editor->plan, step, at);
    tr_plan_step put = *step;
    put.stream = TR_STREAM_TENSOR;
    put.guard = TR_GUARD_ALWAYS; // other ranks wait for both halves
    if (!(at->desc.op->flags & TR_OP_GATHERS)) {
        tr__make_reduced(editor, put, exchange, all);
    }
    if (!(at->desc.op->flags & TR_OP_REDUCES)) {
        tr__make_gathered(editor, put, exchange, all);
    }
}

static tr_status edit(tr_plan *plan, tr_sequence_kind kind, tr_error *err) {
    tr_editor editor = tr__edit_begin(plan, kind, err);
    for (size_t i = 0; i < editor.old->count && editor.status == TR_OK; i++) {
        const tr_plan_step *step = &editor.old->steps[i];
        const tr_program *program = exchange_of(step);
        if (program) {
            put_exchange(&editor, step, program);
        } else {
            tr__edit_add(&editor, *step);
        }
    }
    return tr__edit_end(&editor);
}

tr_status tr__pass_exchange(tr_plan *plan, tr_error *err) {
    tr_status status = TR_OK;
    if (!tr__plan_exchanges_inside(plan)) {
        return TR_OK;
    }
    if (plan->request.inference) {
        return edit(plan, TR_SEQUENCE_INFERENCE, err);
    }
    status = edit(plan, TR_SEQUENCE_TRAIN, err);
    return status == TR_OK ? edit(plan, TR_SEQUENCE_EVALUATE, err) : status;
}

// Pass: exchanges inside of a unit. Between two pieces of a program, ranks sum what the
// first has made, where it lies: each gets its part of the sum, and then all parts are
// gathered. Other ranks wait for both, so an interruption leaves out neither.
#include "plan/flow/maker.h"
#include "plan/flow/passes.h"

static const tr_program *exchange_of(const tr_plan_step *step) {
    const tr_program *program = tr__payload_program(step);
    return program && program->exchange ? program : NULL;
}

static tr_comm_type type_of(tr_dtype dtype) {
    return dtype == TR_BF16  ? TR_COMM_BF16
           : dtype == TR_F16 ? TR_COMM_F16
                             : TR_COMM_F32;
}

// The bytes that the piece names.
static tr_region summed_by(const tr_plan *plan, const tr_plan_step *step,
                           const tr_instruction *at) {
    const tr_step_operand *block =
        tr__step_operand(plan, step, (size_t)at->out[0].block);
    int64_t first = block->first + at->out[0].offset;
    return (tr_region){block->buffer, first, first + tr_tensor_bytes(at->desc.out[0])};
}

static void put_exchange(tr_editor *editor, const tr_plan_step *step,
                         const tr_program *program) {
    const tr_plan *plan = editor->plan;
    const tr_instruction *at = &program->instructions[0];
    int64_t count = tr_shape_count(at->desc.out[0].shape),
            members = tr__mesh_members(&plan->request.mesh, program->exchange);
    tr_exchange exchange = {.part = TR_PART_TENSOR,
                            .kind = TR_COMM_REDUCE,
                            .type = type_of(at->desc.out[0].dtype),
                            .group = program->exchange,
                            .count = count,
                            .shard = (count + members - 1) / members};
    tr_region all = summed_by(plan, step, at);
    tr_region own = tr__own_part(plan, &exchange, all);
    tr_plan_step put = *step;
    put.stream = TR_STREAM_COMM;
    put.guard = TR_GUARD_ALWAYS;
    put.label = tr__label_of_part(TR_VERB_reduce, TR_PART_TENSOR);
    tr__make_exchange(editor, put, exchange, all, own, false);
    exchange.kind = TR_COMM_GATHER;
    exchange.in_place = true;
    put.label = tr__label_of_part(TR_VERB_gather, TR_PART_TENSOR);
    tr__make_exchange(editor, put, exchange, all, all, false);
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

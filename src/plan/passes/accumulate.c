// Pass: sums of another type than the f32 that a backward makes. Each micro-batch's
// gradient is made by itself, in a temporary, and added to them: in reproducible mode
// in fixed point of 64 bits (ops/accumulate), since integers add up to the same in any
// order; or rounded to the 16 bits that the run asks for. Where several parts of a
// backward make gradients of one flat buffer (segments, weights that come later), each
// adds its own, and zeros for those of the others.
#include "ops/flat/accumulate/accumulate.h"
#include "plan/flow/passes.h"
#include "plan/passes/steps_gradients.h"

// The flats whose gradients more than one part of the backward makes.
static uint32_t made_in_parts(const tr_unit_program *unit) {
    uint32_t once = 0, again = 0;
    const tr_program *piece;
    for (int i = 0; (piece = tr__unit_piece(unit, TR_VARIANT_BACKWARD, i)); i++) {
        uint32_t flats =
            piece->begins ? tr__run_flats(unit, piece, TR_PLACE_PARAM_GRAD) : 0;
        again |= once & flats;
        once |= flats;
    }
    return again;
}

// Every micro-batch's gradient lies where something else lay before: there must be
// zeros where its backward makes nothing.
static void add_clear(tr_editor *editor, int flat, bool whole) {
    if (whole || tr__flat_has_gaps(editor->plan, flat)) {
        tr__put_clear_gradients(editor, flat, whole);
    }
}

// Sums that stay are the flat's own. The next micro-batch makes another gradient.
static void add_accumulate(tr_editor *editor, int flat, int64_t micro) {
    const tr_plan *plan = editor->plan;
    const tr_flat *of = &plan->flats[flat];
    tr_dtype type = plan->request.sums;
    tr_accumulate_attr attr = {(int32_t)type};
    int32_t grads = tr__edit_grads(editor, flat);
    bool pass = tr__flat_grads_pass(plan, flat);
    int32_t sums = pass ? tr__edit_sums(editor, flat) : of->sums.buffer;
    int32_t made = tr__edit_stand_in(editor, grads);
    tr_op_draft op =
        tr__op_draft(plan, TR_STREAM_COMPUTE, &tr__op_accumulate, &attr, sizeof attr);
    tr__op_input(&op, tr__vector(TR_F32, of->count), (tr_location){made, 0});
    tr__op_adds(&op, 0, tr__vector(type, of->count), (tr_location){sums, 0});
    op.desc.fresh |= 1;
    op.contributes[0] = true;
    if (type == TR_I64) {
        tr__op_adds(&op, 1, tr__vector(TR_F64, TR_ACCUMULATE_COUNTS),
                    tr__in_statistics(plan, TR_STATISTICS_TOO_LARGE));
    }
    tr_plan_step step = {.label = {.verb = TR_VERB_accumulate},
                         .subject = TR_OF_FLAT,
                         .unit = flat,
                         .of_micro_batch = true,
                         .micro = micro};
    tr__make_one(editor, step, -1, &op);
    tr__edit_renew(editor, grads);
}

// Before the first of the pieces that follow each other, and behind the last.
static void add_backward(tr_editor *editor, const tr_plan_step *backward) {
    const tr_plan_unit *unit = &editor->plan->units[backward->unit];
    uint32_t flats = tr__run_flats(unit->program, tr__payload_program(backward),
                                   TR_PLACE_PARAM_GRAD);
    uint32_t parts = made_in_parts(unit->program);
    for (int k = 0; k < unit->program->flat_count && tr__step_begins(backward); k++) {
        if (flats >> k & 1) {
            add_clear(editor, unit->flats[k], parts >> k & 1);
        }
    }
    tr__edit_add(editor, *backward);
    for (int k = 0; k < unit->program->flat_count && tr__step_ends(backward); k++) {
        if (flats >> k & 1) {
            add_accumulate(editor, unit->flats[k], backward->micro);
        }
    }
}

static void edit_step(tr_editor *editor, const tr_plan_step *step) {
    if (tr__step_runs(step, TR_VARIANT_BACKWARD)) {
        add_backward(editor, step);
    } else {
        tr__edit_add(editor, *step);
    }
}

tr_status tr__pass_accumulate(tr_plan *plan, tr_error *err) {
    if (!tr__plan_accumulates(plan) || plan->request.inference) {
        return TR_OK;
    }
    tr_editor editor = tr__edit_begin(plan, TR_SEQUENCE_TRAIN, err);
    for (size_t i = 0; i < editor.old->count; i++) {
        edit_step(&editor, &editor.old->steps[i]);
    }
    return tr__edit_end(&editor);
}

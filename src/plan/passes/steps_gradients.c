#include "plan/passes/steps_gradients.h"

#include "base/checked.h"
#include "ops/flat/accumulate/accumulate.h"
#include "ops/flat/exact_sums/exact_sums.h"
#include "ops/flat/gradient_squares/gradient_squares.h"
#include "ops/flat/zero/zero.h"

// ---- zeros

static void zero_elements(tr_step_maker *m, int32_t value, int64_t first, int64_t end) {
    tr_zero_attr attr = {end - first, (int64_t)TR_F32};
    tr_op_draft op =
        tr__op_draft(m->editor->plan, m->step.stream, &tr__op_zero, &attr, sizeof attr);
    tr__op_writes(&op, 0, tr__vector(TR_F32, end - first),
                  (tr_location){value, first * (int64_t)sizeof(float)});
    if (first < end) {
        tr__make_op(m, &op);
    }
}

// What lies between the parameters, and behind them.
static void zero_gaps(tr_step_maker *m, int32_t value, int flat) {
    const tr_plan *plan = m->editor->plan;
    const tr_flat *of = &plan->flats[flat];
    int64_t end = 0; // of the parameters so far
    for (size_t i = of->first_param; i < of->end_param; i++) {
        const tr_plan_param *param = &plan->params[i];
        if (param->flat == flat) {
            zero_elements(m, value, end, param->offset);
            end = param->offset + param->count;
        }
    }
    zero_elements(m, value, end, of->count);
}

void tr__put_clear_gradients(tr_editor *editor, int flat, bool whole) {
    int32_t value = tr__edit_stand_in(editor, tr__edit_grads(editor, flat));
    tr_plan_step step = {.label = tr__label_of_part(TR_VERB_clear, TR_PART_GRAD),
                         .subject = TR_OF_FLAT,
                         .unit = flat};
    tr_step_maker m = tr__make_launch(editor, step, -1);
    if (whole) {
        zero_elements(&m, value, 0, editor->plan->flats[flat].count);
    } else {
        zero_gaps(&m, value, flat);
    }
    tr__make_end(&m);
}

// Is the backward the first of its scope to make a gradient of the flat?
static bool begins(const tr_plan *plan, int64_t *begun, int flat, int unit,
                   int64_t micro) {
    int64_t wave = micro / plan->request.wave;
    int64_t scope = 1 + tr__gradient_scope(plan, flat, unit, wave);
    bool first = begun[flat] != scope;
    begun[flat] = scope;
    return first;
}

// Gradients that pass lie where something else lay before: between the parameters'
// gradients there must be zeros, as there always are where gradients stay. (Where each
// micro-batch's are accumulated, a pass clears them for each: accumulate.c.)
void tr__put_clear_gaps(tr_editor *editor, int64_t *begun, int unit,
                        tr_piece_range pieces, int64_t micro) {
    const tr_plan *plan = editor->plan;
    const tr_plan_unit *of = &plan->units[unit];
    uint32_t touched =
        tr__pieces_flats(of->program, TR_VARIANT_BACKWARD, pieces, TR_PLACE_PARAM_GRAD);
    bool passing = !tr__plan_accumulates(plan);
    for (int f = 0; f < of->program->flat_count && passing; f++) {
        int flat = of->flats[f];
        bool first = (touched >> f & 1) && begins(plan, begun, flat, unit, micro);
        if (first && tr__flat_grads_pass(plan, flat) && tr__flat_has_gaps(plan, flat)) {
            tr__put_clear_gradients(editor, flat, false);
        }
    }
}

// ---- squares

static tr_op_draft squares(const tr_plan *plan, tr_stream stream, const tr_flat *flat,
                           tr_location at) {
    tr_op_draft op = tr__op_draft(plan, stream, &tr__op_gradient_squares, NULL, 0);
    tr__op_input(&op, tr__vector(plan->request.sums, flat->own), at);
    tr__op_writes(&op, 0, tr__vector(TR_F64, tr__ceil_div(flat->own, TR_NORM_BLOCK)),
                  (tr_location){plan->statistics.squares,
                                flat->squares * (int64_t)sizeof(double)});
    return op;
}

int32_t tr__put_squares(tr_editor *editor, tr_plan_step step, int flat,
                        tr_location at) {
    const tr_plan *plan = editor->plan;
    bool shared = step.stream == TR_STREAM_HOST;
    int32_t work = tr__edit_convert(editor, &step, TR_CONVERT_SQUARES, shared);
    tr_op_draft op = squares(plan, step.stream, &plan->flats[flat], at);
    step.label.verb = TR_VERB_gradient_squares;
    step.subject = TR_OF_FLAT;
    step.unit = flat;
    return tr__make_one(editor, step, work, &op);
}

int32_t tr__put_norm(tr_editor *editor, tr_plan_step step) {
    const tr_plan *plan = editor->plan;
    int32_t work = tr__edit_convert(editor, &step, TR_CONVERT_SQUARES, true);
    tr_step_maker m = tr__make_launch(editor, step, work);
    for (size_t f = 0; f < plan->flat_count; f++) {
        const tr_flat *flat = &plan->flats[f];
        if (!flat->offloaded && !flat->frozen) {
            tr_region own = tr__region_of_flat(&flat->grad, flat->first, flat->own,
                                               tr__sum_bytes(plan));
            tr_op_draft op = squares(plan, step.stream, flat, tr__location(own));
            tr__make_op(&m, &op);
        }
    }
    return tr__make_end(&m);
}

int32_t tr__put_square_sums(tr_editor *editor, tr_plan_step step) {
    const tr_plan *plan = editor->plan;
    const tr_statistics_layout *layout = &plan->statistics;
    tr_exact_sums_attr attr = {layout->runs, (int64_t)plan->flat_count, 1};
    tr_op_draft op =
        tr__op_draft(plan, step.stream, &tr__op_exact_sums, &attr, sizeof attr);
    tr__op_input(&op, tr__vector(TR_F64, layout->blocks),
                 (tr_location){layout->squares, 0});
    tr__op_writes(&op, 0, tr__vector(TR_I64, TR_NORM_SUMS * TR_EXACT_WORDS),
                  tr__in_statistics(plan, layout->norm));
    return tr__make_one(editor, step, -1, &op);
}

// ---- sums

int32_t tr__put_addition(tr_editor *editor, tr_plan_step step, int64_t count,
                         tr_location from, tr_location to) {
    const tr_plan *plan = editor->plan;
    tr_dtype type = plan->request.sums;
    tr_accumulate_attr attr = {(int32_t)type};
    tr_op_draft op =
        tr__op_draft(plan, step.stream, &tr__op_accumulate, &attr, sizeof attr);
    tr__op_input(&op, tr__vector(type, count), from);
    tr__op_adds(&op, 0, tr__vector(type, count), to);
    return tr__make_one(editor, step, -1, &op);
}

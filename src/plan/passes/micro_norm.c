// Pass: the squares of the gradient of a part of the batch, for the gradient noise
// scale.
//
// The first micro-batch of a rank's step writes its gradients where the others then add
// theirs. So right after a piece of its backward, the accumulator holds what the piece
// has made of that one micro-batch's gradient alone, whatever the wave and whoever
// takes turns with it, and reading it is all that a micro_norm step does.
//
// Of a tied tensor the part that is measured is the first wave (first_wave.h).
#include "base/checked.h"
#include "ops/flat/gradient_squares/gradient_squares.h"
#include "plan/flow/maker.h"
#include "plan/flow/passes.h"
#include "plan/flow/prepared.h"
#include "plan/flow/roles.h"
#include "plan/passes/first_wave.h"
#include "plan/units/offsets.h"

// Reading a gradient once more is about a hundredth of the time of a step that has as
// many operations as this for each byte read (at 30 operations in the time of a byte).
static const double cheap_flops_per_byte = 4000;

static bool share_gradient(const tr_program *a, const tr_program *b) {
    const tr_operand *x, *y;
    int64_t count;
    for (size_t i = 0; (x = tr__piece_gradient(a, &i, &count)) != NULL;) {
        for (size_t k = 0; (y = tr__piece_gradient(b, &k, &count)) != NULL;) {
            if (x->offset == y->offset) {
                return true;
            }
        }
    }
    return false;
}

// Is the unit's own flat buffer measured? Each of its parameters' gradients has to be
// made by one piece, at once.
static bool is_simple(const tr_unit_program *unit) {
    const tr_variant role = TR_VARIANT_BACKWARD;
    const tr_program *piece;
    uint32_t own = 0;
    for (int i = 0; (piece = tr__unit_piece(unit, role, i)) != NULL; i++) {
        own |= tr__program_flats(piece, TR_PLACE_PARAM_GRAD) & 1;
        for (int before = 0; before < i; before++) {
            if (share_gradient(piece, tr__unit_piece(unit, role, before))) {
                return false;
            }
        }
    }
    return own;
}

// Ranks that have the same gradients measure them once.
static bool counts(const tr_plan *plan, int flat) {
    return tr__owns(&plan->flats[flat].axes, &plan->request.mesh);
}

// Is a micro_norm step to follow this one?
static bool is_micro_norm(const tr_plan *plan, const tr_plan_step *step) {
    const tr_plan_unit *unit = &plan->units[step->unit];
    int64_t count;
    size_t next = 0;
    return tr__step_runs(step, TR_VARIANT_BACKWARD) && step->micro == 0 &&
           plan->flats[unit->flats[0]].measured && counts(plan, unit->flats[0]) &&
           tr__piece_gradient(step->payload.program, &next, &count);
}

// Why the flat buffer does not count, in words; NULL: it does, or there is none of it.
static const char *why_not(const tr_plan *plan, int f) {
    const tr_flat *flat = &plan->flats[f];
    if (flat->measured || flat->count == 0 || flat->frozen) {
        return NULL;
    }
    if (flat->split) {
        return "ranks of the tensor axis have parts of it";
    }
    if (flat->axes.summed == TR_ON_TENSOR) {
        return "ranks of the tensor axis each make a part of it";
    }
    if (!flat->tied && flat->apart) {
        return "it is kept apart from the rest of its unit";
    }
    return flat->tied ? tr__first_wave_hidden(plan, f)
                      : "several parts of its unit's backward make it";
}

// Of all stages, which decide alike.
static double bytes_measured(const tr_plan *plan) {
    double elements = 0;
    for (size_t f = 0; f < plan->flat_count; f++) {
        elements += plan->flats[f].measured ? (double)plan->flats[f].all : 0;
    }
    return elements * sizeof(float);
}

// (Without what is recomputed, which makes the reading no cheaper.)
static double flops_of_step(const tr_plan *plan) {
    double flops = 0;
    for (int u = 0; u < plan->unit_count; u++) {
        const tr_unit_program *unit = plan->units[u].program;
        flops += tr__unit_cost(unit, TR_VARIANT_FORWARD) +
                 tr__unit_cost(unit, TR_VARIANT_BACKWARD);
    }
    return flops * (double)plan->request.accumulation_steps;
}

// One micro-batch in all has nothing to be compared with.
static bool is_worth_it(const tr_plan *plan) {
    const tr_plan_request *r = &plan->request;
    double bytes = bytes_measured(plan);
    if (plan->asked == TR_MEASURE_NEVER || r->train_batch_size <= r->micro_batch ||
        bytes == 0) {
        return false;
    }
    return plan->asked == TR_MEASURE_ALWAYS ||
           flops_of_step(plan) >= cheap_flops_per_byte * bytes;
}

// Of gradients as a backward has made them, into one number of the statistics.
static tr_op_draft squares(const tr_plan *plan, tr_stream stream, int64_t count,
                           tr_location grads, tr_statistics_flag to) {
    tr_op_draft op = tr__op_draft(plan, stream, &tr__op_sum_of_squares, NULL, 0);
    tr__op_input(&op, tr__vector(TR_F32, count), grads);
    tr__op_adds(&op, 0, tr__vector(TR_F64, 1), tr__in_statistics(plan, to));
    return op;
}

// The working memory of sums of so many squares; -1: none.
static int32_t work_of(tr_editor *editor, tr_stream stream, int64_t count) {
    tr_op_draft op = squares(editor->plan, stream, count, (tr_location){-1, 0},
                             TR_STATISTICS_SQUARES);
    const tr_kernel *kernel = tr__prepared_kernel(&op.desc);
    int64_t bytes =
        kernel && kernel->workspace ? (int64_t)kernel->workspace(&op.desc, NULL) : 0;
    return bytes > 0 ? tr__edit_value(editor, TR_LEDGER_workspace, TR_SPACE_DEVICE,
                                      tr__round_up(bytes, TR_ALIGNMENT))
                     : -1;
}

static void measure_tied(tr_editor *editor, int flat, int32_t gradient) {
    const tr_flat *of = &editor->plan->flats[flat];
    tr_plan_step step = {.label = {.verb = TR_VERB_micro_norm_tied},
                         .subject = TR_OF_FLAT,
                         .unit = flat};
    tr_op_draft op = squares(editor->plan, step.stream, of->count,
                             (tr_location){gradient, 0}, TR_STATISTICS_TIED_SQUARES);
    tr__make_one(editor, step, work_of(editor, step.stream, of->count), &op);
}

static int64_t largest_gradient(const tr_program *piece) {
    int64_t most = 0, count;
    for (size_t next = 0; tr__piece_gradient(piece, &next, &count);) {
        most = tr__max_i64(most, count);
    }
    return most;
}

// What a piece has made of the unit's own flat buffer: one parameter after the other,
// where it has left them.
static void measure_own(tr_editor *editor, const tr_plan_step *backward) {
    const tr_program *piece = backward->payload.program;
    int32_t made =
        tr__step_block(editor->plan, backward, TR_PLACE_PARAM_GRAD, 0, false)->buffer;
    tr_plan_step step = {.label = {.verb = TR_VERB_micro_norm},
                         .subject = TR_OF_UNIT,
                         .unit = backward->unit,
                         .segment = backward->segment,
                         .of_micro_batch = true};
    int64_t most = largest_gradient(piece), count;
    tr_step_maker m = tr__make_launch(editor, step, work_of(editor, step.stream, most));
    const tr_operand *operand;
    for (size_t next = 0;
         (operand = tr__piece_gradient(piece, &next, &count)) != NULL;) {
        tr_op_draft op =
            squares(editor->plan, step.stream, count,
                    (tr_location){made, operand->offset}, TR_STATISTICS_SQUARES);
        tr__make_op(&m, &op);
    }
    tr__make_end(&m);
}

static void add_tied(const tr_first_wave *first, size_t index) {
    const tr_plan *plan = first->editor->plan;
    const tr_plan_unit *unit = &plan->units[first->editor->old->steps[index].unit];
    for (int k = 1; k < unit->program->flat_count; k++) {
        int flat = unit->flats[k];
        if (!plan->flats[flat].measured || !tr__first_wave_comes(first, index, k)) {
            continue;
        }
        if (tr__first_wave_is_kept(plan, flat)) {
            tr__first_wave_keep(first, flat);
        } else if (counts(plan, flat)) {
            measure_tied(first->editor, flat, tr__first_wave_gradient(first, flat));
        }
    }
}

static void measure_kept(const tr_first_wave *first) {
    const tr_plan *plan = first->editor->plan;
    for (int f = 0; f < (int)plan->flat_count; f++) {
        if (first->kept[f] < 0) {
            continue;
        }
        tr__first_wave_sum(first, f);
        if (counts(plan, f)) {
            measure_tied(first->editor, f, first->kept[f]);
        }
    }
}

static void add_steps(tr_editor *editor, const tr_first_wave *first) {
    for (size_t i = 0; i < editor->old->count; i++) {
        const tr_plan_step *step = &editor->old->steps[i];
        if (step->mark == TR_MARK_NORM) {
            measure_kept(first);
        }
        tr__edit_add(editor, *step);
        if (is_micro_norm(editor->plan, step)) {
            measure_own(editor, step);
        }
        if (tr__step_runs(step, TR_VARIANT_BACKWARD)) {
            add_tied(first, i);
        }
    }
}

static tr_status edit(tr_plan *plan, tr_error *err) {
    tr_editor editor = tr__edit_begin(plan, TR_SEQUENCE_TRAIN, err);
    tr_first_wave first;
    tr_status found = tr__first_wave_find(&editor, &first, err);
    if (found == TR_OK) {
        add_steps(&editor, &first);
    } else {
        tr__edit_refuse(&editor, found);
    }
    tr__first_wave_clear(&first);
    return tr__edit_end(&editor);
}

tr_status tr__pass_micro_norm(tr_plan *plan, tr_error *err) {
    if (plan->request.inference) {
        return TR_OK;
    }
    for (int u = 0; u < plan->unit_count; u++) {
        const tr_plan_unit *unit = &plan->units[u];
        plan->flats[unit->flats[0]].measured = is_simple(unit->program);
    }
    for (size_t f = 0; f < plan->flat_count; f++) {
        tr_flat *flat = &plan->flats[f];
        bool shown = !flat->frozen && !tr__first_wave_hidden(plan, (int)f);
        flat->measured = flat->tied ? shown : flat->measured;
        flat->no_micro_norm = why_not(plan, (int)f);
        plan->micro_norms_tied =
            plan->micro_norms_tied || (flat->tied && flat->measured);
    }
    tr__statistics_measured(plan);
    bool measures = is_worth_it(plan);
    plan->request.measure = measures ? TR_MEASURE_ALWAYS : TR_MEASURE_NEVER;
    return measures ? edit(plan, err) : TR_OK;
}

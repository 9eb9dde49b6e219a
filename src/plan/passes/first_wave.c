#include "plan/passes/first_wave.h"

#include "base/checked.h"
#include "base/memory.h"
#include "ops/flat/copy/copy.h"
#include "plan/passes/chain.h"
#include "plan/units/offsets.h"

// ---- does a step show it?

static bool is_one_wave(const tr_plan *plan) {
    return plan->request.wave >= plan->request.accumulation_steps;
}

// Which of the unit's flat buffers it is; -1: none.
static int number_of(const tr_plan_unit *unit, int flat) {
    int k = unit->program->flat_count - 1;
    while (k >= 0 && unit->flats[k] != flat) {
        k--;
    }
    return k;
}

// When a stage has made its part of the first wave, and when it begins with the next
// wave's, in the time that all stages reckon in (tr_turns).
typedef struct times {
    int64_t made, next;
} times;

// The model's last unit turns each micro-batch around at once.
static tr_pipeline_turn turn_of(const tr_plan *plan, int u, const tr_program *piece) {
    tr_turn_kind kind = u == plan->unit_count - 1 ? TR_TURN_FORWARD
                        : piece->weights          ? TR_TURN_WEIGHTS
                                                  : TR_TURN_BACKWARD;
    return (tr_pipeline_turn){kind, plan->units[u].chunk, 0};
}

static void note_unit(const tr_plan *plan, int u, int flat, times *of) {
    const tr_unit_program *unit = plan->units[u].program;
    int k = number_of(&plan->units[u], flat);
    for (int i = 0; k >= 0 && i < tr__unit_pieces(unit, TR_VARIANT_BACKWARD); i++) {
        const tr_program *piece = tr__unit_piece(unit, TR_VARIANT_BACKWARD, i);
        tr_pipeline_turn turn = turn_of(plan, u, piece);
        if (tr__program_flats(piece, TR_PLACE_PARAM_GRAD) >> k & 1) {
            // (In two passes it makes some with the loss of all micro-batches.)
            bool at_once = plan->request.passes > 1 && turn.kind == TR_TURN_FORWARD;
            int64_t end =
                at_once ? INT64_MAX
                        : tr__pipeline_turn_end(&plan->turns[TR_SEQUENCE_TRAIN], turn);
            of->made = tr__max_i64(of->made, end);
            turn.wave = 1;
            int64_t begin =
                tr__pipeline_turn_begin(&plan->turns[TR_SEQUENCE_TRAIN], turn);
            of->next = tr__min_i64(of->next, begin);
        }
    }
}

// Is the first wave's part complete on each stage before another wave adds to it?
static bool comes_in_turn(const tr_plan *plan, int flat) {
    const tr_param_axes *axes = &plan->flats[flat].axes;
    bool in_turn = true;
    for (int64_t i = 0; i < tr__stages_with(axes); i++) {
        times of = {0, INT64_MAX};
        for (int u = 0; u < plan->unit_count; u++) {
            if (tr__plan_stage_of(plan, u) == tr__stage_with(axes, i)) {
                note_unit(plan, u, flat, &of);
            }
        }
        in_turn = in_turn && of.made <= of.next;
    }
    return in_turn;
}

static bool leaves_by_use(const tr_plan *plan, int flat) {
    return tr__flat_leaves_by_use(plan, flat) && tr__flat_grads_pass(plan, flat);
}

const char *tr__first_wave_hidden(const tr_plan *plan, int flat) {
    bool by_use = leaves_by_use(plan, flat), stages = plan->chunks.stages > 1;
    if (tr__data_ranks(&plan->request) == 1 && is_one_wave(plan)) {
        return "one wave is the whole batch";
    }
    if (tr__plan_accumulates(plan)) {
        return "each use of it is added to sums that are not f32";
    }
    if (by_use && (plan->flats[flat].slice || !stages)) {
        return "what each use of its slices adds leaves by itself";
    }
    return stages && !by_use && !is_one_wave(plan) && !comes_in_turn(plan, flat)
               ? "waves overlap on a stage of the pipeline"
               : NULL;
}

bool tr__first_wave_is_kept(const tr_plan *plan, int flat) {
    return tr__chain_hops(&plan->flats[flat]) > 0 || leaves_by_use(plan, flat);
}

// ---- when

static void note(tr_first_wave *first, const tr_plan_step *step, size_t index) {
    const tr_plan_unit *unit = &first->editor->plan->units[step->unit];
    uint32_t made = tr__program_flats(step->payload.program, TR_PLACE_PARAM_GRAD);
    for (int k = 1; k < unit->program->flat_count; k++) {
        if (made >> k & 1) {
            first->use[step->unit * TR_UNIT_FLATS_MAX + k] = index + 1;
            first->last[unit->flats[k]] = index + 1;
        }
    }
}

tr_status tr__first_wave_find(tr_editor *editor, tr_first_wave *out, tr_error *err) {
    const tr_plan *plan = editor->plan;
    size_t uses = (size_t)plan->unit_count * TR_UNIT_FLATS_MAX;
    *out = (tr_first_wave){editor, tr__calloc(uses, sizeof *out->use),
                           tr__calloc(plan->flat_count, sizeof *out->last),
                           tr__calloc(plan->flat_count, sizeof *out->kept)};
    if (!out->use || !out->last || !out->kept) {
        return tr_fail(err, TR_MEMORY, "no memory to plan the noise scale");
    }
    for (size_t f = 0; f < plan->flat_count; f++) {
        out->kept[f] = -1;
    }
    for (size_t i = 0; i < editor->old->count; i++) {
        const tr_plan_step *step = &editor->old->steps[i];
        if (tr__step_runs(step, TR_VARIANT_BACKWARD) &&
            step->micro < plan->request.wave) {
            note(out, step, i);
        }
    }
    return TR_OK;
}

void tr__first_wave_clear(tr_first_wave *first) {
    tr__free(first->use);
    tr__free(first->last);
    tr__free(first->kept);
}

bool tr__first_wave_comes(const tr_first_wave *first, size_t index, int k) {
    const tr_plan *plan = first->editor->plan;
    int unit = first->editor->old->steps[index].unit, flat = plan->units[unit].flats[k];
    size_t use = first->use[unit * TR_UNIT_FLATS_MAX + k];
    return (leaves_by_use(plan, flat) ? use : first->last[flat]) == index + 1;
}

// ---- what is kept

// Gradients that stay are in the flat's own sums.
int32_t tr__first_wave_gradient(const tr_first_wave *first, int flat) {
    const tr_plan *plan = first->editor->plan;
    return tr__flat_grads_pass(plan, flat) ? tr__edit_grads(first->editor, flat)
                                           : plan->flats[flat].sums.buffer;
}

void tr__first_wave_keep(const tr_first_wave *first, int flat) {
    tr_editor *editor = first->editor;
    const tr_flat *of = &editor->plan->flats[flat];
    const tr_plan_step step = {.label = {.verb = TR_VERB_add, .what = "first wave"},
                               .subject = TR_OF_FLAT,
                               .unit = flat};
    int32_t *kept = &first->kept[flat];
    if (*kept < 0) {
        int64_t bytes = tr__round_up(of->count * (int64_t)sizeof(float), TR_ALIGNMENT);
        *kept = tr__edit_value(editor, TR_LEDGER_gradients, TR_SPACE_DEVICE, bytes);
    }
    tr_op_draft op = tr__op_draft(editor->plan, step.stream, &tr__op_copy, NULL, 0);
    tr_tensor_desc all = tr__vector(TR_F32, of->count);
    tr__op_input(&op, all, (tr_location){tr__first_wave_gradient(first, flat), 0});
    tr__op_adds(&op, 0, all, (tr_location){*kept, 0});
    op.desc.fresh |= 1;
    op.contributes[0] = true;
    tr__make_one(editor, step, -1, &op);
}

void tr__first_wave_sum(const tr_first_wave *first, int flat) {
    const tr_flat *of = &first->editor->plan->flats[flat];
    const tr_chain chain = {
        .editor = first->editor,
        .flat = of,
        .step = {.subject = TR_OF_FLAT,
                 .unit = flat,
                 .stream = TR_STREAM_COMM,
                 .guard = TR_GUARD_ALWAYS},
        .exchange = {.part = TR_PART_FIRST_WAVE, .type = TR_COMM_F32},
        .all = tr__region(first->kept[flat], of->count * (int64_t)sizeof(float))};
    for (int64_t hop = tr__chain_hops(of); hop > 0; hop--) {
        tr__put_hop(&chain, hop, true, tr__make_reduced);
    }
}

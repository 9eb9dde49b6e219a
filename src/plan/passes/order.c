// Pass: the order of work. Breadth-first accumulation (Lamy-Poirier, arXiv 2211.05953):
// the micro-batches of a wave go through a unit together, before the next unit runs.
#include "base/checked.h"
#include "base/memory.h"
#include "ops/flat/zero/zero.h"
#include "plan/flow/passes.h"
#include "plan/flow/turns.h"
#include "plan/flow/wave.h"
#include "plan/passes/steps_gradients.h"
#include "plan/passes/steps_update.h"
#include "plan/passes/steps_wave.h"
#include "plan/schedules/schedule.h"

typedef struct writer {
    tr_plan *plan;
    tr_editor editor;
    int64_t *begun; // [flats] 1 + the last scope that has made a gradient of it
    bool saves_nothing;
    int64_t first, end; // the micro-batches of the running wave
    int lowest;         // the first of this rank's units that has a backward
} writer;

// Steps that run pieces of a unit on a micro-batch, one after the other.
static void add_pieces(writer *w, tr_variant role, tr_piece_range pieces,
                       tr_plan_step step) {
    const tr_unit_program *unit = w->plan->units[step.unit].program;
    step.subject = TR_OF_UNIT;
    step.of_micro_batch = true;
    for (int i = pieces.first; i < pieces.end; i++) {
        tr__edit_launch(&w->editor, tr__unit_piece(unit, role, i), &step);
        tr__edit_add(&w->editor, step);
    }
}

static void add_segment(writer *w, tr_verb verb, tr_variant role, tr_plan_step step) {
    const tr_unit_program *unit = w->plan->units[step.unit].program;
    step.label = (tr_step_label){.verb = verb};
    add_pieces(w, role, tr__segment_at_once(unit, role, step.segment), step);
}

// The unit's states follow an update that was applied.
static void add_track(writer *w, int u, const tr_program *track) {
    tr_plan_step step = {.label = {.verb = TR_VERB_track},
                         .subject = TR_OF_UNIT,
                         .unit = u,
                         .guard = TR_GUARD_APPLIED};
    tr__edit_launch(&w->editor, track, &step);
    tr__edit_add(&w->editor, step);
}

static void add_load(writer *w, int64_t micro) {
    tr__make_load(&w->editor, micro);
}

static void add_unload(writer *w, int64_t micro) {
    tr__make_unload(&w->editor, micro);
}

// Nothing that a unit without a backward makes is kept, but from segment to segment.
static bool keeps_nothing(const writer *w, int u) {
    const tr_unit_program *program = w->plan->units[u].program;
    return w->saves_nothing || (u < w->lowest && program->segments == 1);
}

static tr_variant forward_of(const writer *w, int u) {
    return w->editor.kind == TR_SEQUENCE_INFERENCE  ? TR_VARIANT_INFERENCE
           : w->editor.kind == TR_SEQUENCE_EVALUATE ? TR_VARIANT_EVALUATE
           : keeps_nothing(w, u)                    ? TR_VARIANT_SAVES_NOTHING
                                                    : TR_VARIANT_FORWARD;
}

static void add_forward(writer *w, int u, int segment, int64_t micro) {
    if (u == tr__plan_next(w->plan, 0) && segment == 0 && !w->plan->request.inference) {
        add_load(w, micro);
    }
    add_segment(w, TR_VERB_forward, forward_of(w, u),
                (tr_plan_step){.unit = u, .segment = segment, .micro = micro});
}

// (A pass that has another order of waves clears by itself.)
static void clear_gaps(writer *w, int u, tr_piece_range pieces, int64_t micro) {
    if (w->plan->request.passes < 2) {
        tr__put_clear_gaps(&w->editor, w->begun, u, pieces, micro);
    }
}

static void add_backward(writer *w, int u, int segment, int64_t micro) {
    const tr_unit_program *unit = w->plan->units[u].program;
    clear_gaps(w, u, tr__segment_at_once(unit, TR_VARIANT_BACKWARD, segment), micro);
    add_segment(w, TR_VERB_backward, TR_VARIANT_BACKWARD,
                (tr_plan_step){.unit = u, .segment = segment, .micro = micro});
    if (u == w->lowest && segment == 0) {
        add_unload(w, micro);
    }
}

// Gradients of weights that were put off.
static void add_weights(writer *w, int u, int64_t micro) {
    tr_piece_range pieces = tr__segment_weights(w->plan->units[u].program, 0);
    clear_gaps(w, u, pieces, micro);
    add_pieces(w, TR_VARIANT_BACKWARD, pieces,
               (tr_plan_step){.label = {.verb = TR_VERB_backward, .what = "weights"},
                              .unit = u,
                              .micro = micro});
}

// Does a batch barrier lie before the segment? Elsewhere a unit is only cut, so that
// not all of its parameters need be there at once.
static bool is_barrier(const writer *w, int u, int segment) {
    const tr_unit_program *program = w->plan->units[u].program;
    return segment > 0 && segment < program->segments &&
           tr__graph_barriers(program->graph, segment, segment + 1) > 0;
}

// Every micro-batch of the wave has added to the segment's wave tensors: their parts
// become one, those of other ranks among them. In an evaluation each micro-batch is a
// wave of its own.
static void merge_wave(writer *w, int u, int segment, bool backward) {
    if (w->editor.kind == TR_SEQUENCE_TRAIN) {
        tr__put_wave_merge(&w->editor, (tr_wave_segment){u, segment, backward});
    }
}

static void forward_unit(writer *w, int u) {
    int segments = w->plan->units[u].program->segments;
    for (int s = 0; s < segments; s++) {
        for (int64_t j = w->first; j < w->end; j++) {
            add_forward(w, u, s, j);
        }
        if (is_barrier(w, u, s + 1)) {
            merge_wave(w, u, s, false);
        }
    }
}

static void backward_unit(writer *w, int u) {
    for (int s = w->plan->units[u].program->segments - 1; s >= 0; s--) {
        for (int64_t j = w->first; j < w->end; j++) {
            add_backward(w, u, s, j);
        }
        if (is_barrier(w, u, s)) {
            merge_wave(w, u, s, true);
        }
    }
}

// The last unit turns each micro-batch around at once, so that what it saves lives for
// two steps only.
static void turn(writer *w, int u) {
    if (w->plan->units[u].program->segments > 1) {
        forward_unit(w, u);
        backward_unit(w, u);
        return;
    }
    for (int64_t j = w->first; j < w->end; j++) {
        add_forward(w, u, 0, j);
        add_backward(w, u, 0, j);
    }
}

// A rank updates what it keeps the optimizer's state of, where it keeps it.
static void add_update(writer *w, tr_mark phase, size_t f) {
    const tr_flat *flat = &w->plan->flats[f];
    const tr_staged staged = tr__nothing_staged();
    bool shards = tr__plan_stage(w->plan) > 0;
    if (flat->frozen) {
        return;
    }
    bool matrices = w->plan->request.matrices && !flat->apart;
    (matrices ? tr__put_matrices : tr__put_update)(
        &w->editor,
        (tr_plan_step){.mark = phase,
                       .stream = flat->offloaded ? TR_STREAM_HOST : TR_STREAM_COMPUTE,
                       .guard = TR_GUARD_APPLIED,
                       .unit = (int32_t)f,
                       .first = shards ? flat->first : 0,
                       .count = shards ? flat->own : flat->count},
        &staged);
}

// Wave tensors that no segment waits for are merged when all waves have added to them,
// where the states of the model follow them.
static void merge_step(writer *w) {
    for (int u = tr__plan_next(w->plan, 0); u < w->plan->unit_count;
         u = tr__plan_next(w->plan, u + 1)) {
        const tr_unit_program *program = w->plan->units[u].program;
        bool whole =
            tr__unit_pieces(program, TR_VARIANT_TRACK) > 0 && tr__wave_is_step(program);
        for (int s = 0; whole && s < program->segments; s++) {
            merge_wave(w, u, s, false);
        }
    }
}

static void weights_unit(writer *w, int u) {
    for (int64_t j = w->first; j < w->end; j++) {
        add_weights(w, u, j);
    }
}

// A wave goes up through a chunk of the model.
static void add_up(writer *w, int first, int end) {
    bool turns = end == w->plan->unit_count;
    for (int u = first; u < end - turns; u++) {
        forward_unit(w, u);
    }
    if (turns) {
        turn(w, end - 1);
    }
}

// Or down again, or makes the gradients of weights that were put off there; the model's
// last unit has done so at once.
static void add_turn(writer *w, int chunk, tr_turn_kind kind) {
    const tr_plan *plan = w->plan;
    int first = plan->chunk_first[chunk], end = plan->chunk_first[chunk + 1];
    if (kind == TR_TURN_FORWARD) {
        add_up(w, first, end);
        return;
    }
    end -= end == plan->unit_count;
    for (int u = end - 1; u >= first && u >= w->lowest; u--) {
        (kind == TR_TURN_BACKWARD ? backward_unit : weights_unit)(w, u);
    }
}

static void add_waves(writer *w) {
    const tr_plan *plan = w->plan;
    int64_t g = plan->request.accumulation_steps, wave = plan->request.wave;
    const tr_turns *turns = &plan->turns[TR_SEQUENCE_TRAIN];
    for (int64_t i = 0; i < turns->count; i++) {
        const tr_pipeline_turn *at = &turns->turn[i];
        w->first = at->wave * wave;
        w->end = tr__min_i64(w->first + wave, g);
        add_turn(w, at->chunk, at->kind);
    }
}

// Of a step in two passes: all micro-batches, which a pass of its own takes apart
// (two_passes.c).
static void add_all(writer *w) {
    const tr_plan *plan = w->plan;
    int64_t stage = plan->request.mesh.at[TR_AXIS_PIPELINE], each = plan->chunks.each;
    int kinds =
        tr__weights_come_later(&plan->request) ? TR_TURN_KINDS : TR_TURN_WEIGHTS;
    w->end = plan->request.accumulation_steps;
    for (int kind = 0; kind < kinds; kind++) {
        for (int64_t i = 0; i < each; i++) {
            int64_t at = kind == TR_TURN_FORWARD ? i : each - 1 - i;
            add_turn(w, tr__stage_chunk(&plan->chunks, stage, at), (tr_turn_kind)kind);
        }
    }
}

// Sums of squares are written, never added to.
static void clear_statistics(writer *w) {
    int64_t count = w->plan->statistics.norm;
    tr_zero_attr attr = {count, (int64_t)TR_F64};
    tr_op_draft op =
        tr__op_draft(w->plan, TR_STREAM_COMPUTE, &tr__op_zero, &attr, sizeof attr);
    tr__op_writes(&op, 0, tr__vector(TR_F64, count), tr__in_statistics(w->plan, 0));
    tr__make_one(
        &w->editor,
        (tr_plan_step){.label = tr__label_of_part(TR_VERB_clear, TR_PART_STATISTICS),
                       .mark = TR_MARK_BEGIN},
        -1, &op);
}

// What the update depends on: this rank's statistics, and the decision.
static void measure_step(writer *w) {
    tr__put_norm(&w->editor,
                 (tr_plan_step){.label = {.verb = TR_VERB_norm}, .mark = TR_MARK_NORM});
    tr__put_square_sums(&w->editor,
                        (tr_plan_step){.label = {.verb = TR_VERB_square_sums}});
    tr__make_report(&w->editor);
    tr__make_decide(&w->editor);
}

static void update_step(writer *w) {
    const tr_plan *plan = w->plan;
    for (size_t f = 0; plan->request.tensor_norms && f < plan->flat_count; f++) {
        add_update(w, TR_MARK_MEASURE, f);
    }
    if (plan->request.tensor_norms) {
        tr__put_tensor_sums(&w->editor,
                            (tr_plan_step){.label = {.verb = TR_VERB_tensor_sums},
                                           .guard = TR_GUARD_APPLIED});
        tr__put_tensor_norms(&w->editor,
                             (tr_plan_step){.label = {.verb = TR_VERB_tensor_norms},
                                            .mark = TR_MARK_TOTAL,
                                            .guard = TR_GUARD_APPLIED});
    }
    for (size_t f = 0; f < plan->flat_count; f++) {
        add_update(w, TR_MARK_UPDATE, f);
    }
}

static void train_step(writer *w) {
    const tr_plan *plan = w->plan;
    w->lowest = tr__plan_lowest(plan);
    if (w->lowest < 0) {
        tr__edit_refuse(&w->editor,
                        tr_fail(w->editor.err, TR_USAGE,
                                "stage %lld of the pipeline trains nothing: use fewer "
                                "stages, or freeze less",
                                (long long)plan->request.mesh.at[TR_AXIS_PIPELINE]));
        return;
    }
    clear_statistics(w);
    (plan->request.passes > 1 ? add_all : add_waves)(w);
    merge_step(w);
    measure_step(w);
    for (int u = tr__plan_next(plan, 0); u < plan->unit_count;
         u = tr__plan_next(plan, u + 1)) {
        const tr_program *track =
            tr__unit_piece(plan->units[u].program, TR_VARIANT_TRACK, 0);
        if (track) {
            add_track(w, u, track);
        }
    }
    update_step(w);
}

// Micro-batches forward alone. The effective batch of an op over it is a micro-batch.
static void evaluate(writer *w) {
    const tr_plan *plan = w->plan;
    const tr_turns *turns = &plan->turns[TR_SEQUENCE_EVALUATE];
    int top = plan->unit_count - 1; // of this rank
    while (!tr__plan_runs(plan, top)) {
        top--;
    }
    for (int64_t i = 0; i < turns->count; i++) {
        const tr_pipeline_turn *at = &turns->turn[i];
        w->first = at->wave;
        w->end = at->wave + 1;
        for (int u = plan->chunk_first[at->chunk]; u < plan->chunk_first[at->chunk + 1];
             u++) {
            forward_unit(w, u);
        }
        if (at->chunk == plan->units[top].chunk) {
            add_unload(w, at->wave);
        }
    }
}

// One micro-batch, all segments in one program. The caller has filled the data slot.
static void infer(writer *w) {
    for (int u = tr__plan_next(w->plan, 0); u < w->plan->unit_count;
         u = tr__plan_next(w->plan, u + 1)) {
        add_forward(w, u, 0, 0);
    }
}

static tr_status write_sequence(writer *w, tr_sequence_kind kind, tr_error *err) {
    w->editor = tr__edit_begin(w->plan, kind, err);
    if (w->editor.status == TR_OK && kind == TR_SEQUENCE_TRAIN) {
        train_step(w);
    } else if (w->editor.status == TR_OK) {
        w->saves_nothing = true;
        w->lowest = 0;
        (kind == TR_SEQUENCE_EVALUATE ? evaluate : infer)(w);
    }
    return tr__edit_end(&w->editor);
}

tr_status tr__pass_order(tr_plan *plan, tr_error *err) {
    writer w = {.plan = plan};
    w.begun = tr__calloc(plan->flat_count, sizeof *w.begun);
    if (!w.begun) {
        return tr_fail(err, TR_MEMORY, "no memory to order the plan");
    }
    tr_status status = TR_OK;
    if (plan->request.inference) {
        status = write_sequence(&w, TR_SEQUENCE_INFERENCE, err);
    } else {
        status = write_sequence(&w, TR_SEQUENCE_TRAIN, err);
        status =
            status == TR_OK ? write_sequence(&w, TR_SEQUENCE_EVALUATE, err) : status;
    }
    tr__free(w.begun);
    return status;
}

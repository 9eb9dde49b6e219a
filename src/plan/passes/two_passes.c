// Pass: a step whose loss is over all micro-batches, in two passes. In one pass all
// that the units below the loss keep for their backwards is there for all micro-batches
// at once. In two, a first pass keeps what the loss needs and nothing else; the loss is
// computed with its gradient; then wave after wave runs forward again, and backward at
// once. (As Gao et al., arXiv 2101.06983, do for embeddings of texts.) So memory does
// not grow with the number of micro-batches, but for what the loss needs, and each
// forward costs its time once more. The second draws what the first has drawn, because
// kernels draw by unit and micro-batch.
//
// The pass takes apart the sequence of one wave that order.c has written. Each round of
// it loads the micro-batches anew.
#include "base/checked.h"
#include "base/memory.h"
#include "plan/flow/maker.h"
#include "plan/flow/passes.h"
#include "plan/passes/steps_gradients.h"

typedef struct writer {
    tr_plan *plan;
    tr_editor editor;
    int64_t *begun;     // [flats] see tr__put_clear_gaps
    size_t *at[2];      // [unit segments][micros] 1 + the old forward, the old backward
    int32_t *segments;  // [units] of those before it
    int head, barrier;  // the last unit, and its segment that waits for all
    int lowest;         // the first unit that has a backward; head: none below it has
    size_t first, last; // of the old steps, the first and the last that feed data
    int64_t micros;
} writer;

// ---- the old steps

static size_t *entry(const writer *w, bool backward, int u, int segment,
                     int64_t micro) {
    return &w->at[backward][(w->segments[u] + segment) * w->micros + micro];
}

static void note_steps(writer *w) {
    const tr_sequence *old = w->editor.old;
    w->first = old->count;
    for (size_t i = 0; i < old->count; i++) {
        const tr_plan_step *step = &old->steps[i];
        bool backward = tr__step_runs(step, TR_VARIANT_BACKWARD);
        if (backward || tr__step_is_forward(step)) {
            *entry(w, backward, step->unit, step->segment, step->micro) = i + 1;
        }
        if (step->shape == TR_STEP_IS_FEED) {
            w->first = w->first < i ? w->first : i;
            w->last = i;
        }
    }
}

// All pieces of a role on the step's segment: on the values of now.
static void put_pieces(writer *w, tr_variant role, tr_plan_step step) {
    const tr_unit_program *unit = w->plan->units[step.unit].program;
    tr_piece_range pieces = tr__segment_pieces(unit, role, step.segment);
    for (int i = pieces.first; i < pieces.end; i++) {
        step.id = i > pieces.first ? 0 : step.id;
        tr__edit_launch(&w->editor, tr__unit_piece(unit, role, i), &step);
        tr__edit_add(&w->editor, step);
    }
}

static void keep(writer *w, bool backward, int u, int segment, int64_t micro) {
    if (backward) {
        tr_piece_range pieces =
            tr__segment_pieces(w->plan->units[u].program, TR_VARIANT_BACKWARD, segment);
        tr__put_clear_gaps(&w->editor, w->begun, u, pieces, micro);
    }
    size_t at = *entry(w, backward, u, segment, micro);
    const tr_plan_step *old = &w->editor.old->steps[at - 1];
    put_pieces(w, old->payload.program->variant, *old);
}

static void keep_range(writer *w, size_t from, size_t to) {
    for (size_t i = from; i < to; i++) {
        tr__edit_add(&w->editor, w->editor.old->steps[i]);
    }
}

// What merges wave tensors, or their gradients.
static void keep_merges(writer *w, bool backward) {
    for (size_t i = w->first; i < w->last; i++) {
        const tr_plan_step *step = &w->editor.old->steps[i];
        if (tr__step_is_of_wave(step) && step->backward == backward) {
            tr__edit_add(&w->editor, *step);
        }
    }
}

// ---- the rounds

static void put_first_forward(writer *w, int u, int64_t micro) {
    tr_plan_step step = {.label = {.verb = TR_VERB_forward},
                         .subject = TR_OF_UNIT,
                         .of_micro_batch = true,
                         .unit = u,
                         .micro = micro};
    put_pieces(w, TR_VARIANT_SAVES_NOTHING, step);
}

// Up to the segment that waits for all micro-batches.
static void go_up(writer *w, int64_t first, int64_t end) {
    for (int u = 0; u < w->head; u++) {
        for (int64_t j = first; j < end; j++) {
            if (u == 0) {
                tr__make_load(&w->editor, j);
            }
            put_first_forward(w, u, j);
        }
    }
    for (int s = 0; s < w->barrier; s++) {
        for (int64_t j = first; j < end; j++) {
            keep(w, false, w->head, s, j);
        }
    }
    for (int64_t j = first; j < end; j++) {
        tr__make_unload(&w->editor, j);
    }
}

static void turn(writer *w, int64_t micro) {
    int segments = w->plan->units[w->head].program->segments;
    tr__make_load(&w->editor, micro);
    for (int s = w->barrier; s < segments; s++) {
        keep(w, false, w->head, s, micro);
    }
    for (int s = segments - 1; s >= w->barrier; s--) {
        keep(w, true, w->head, s, micro);
    }
    tr__make_unload(&w->editor, micro);
}

// Does a backward behind the loss read what the units below it have made?
static bool goes_again(const writer *w) {
    const tr_unit_program *unit = w->plan->units[w->head].program;
    bool again = w->lowest < w->head;
    for (int piece = 0; piece < tr__unit_pieces(unit, TR_VARIANT_BACKWARD); piece++) {
        const tr_program *back = tr__unit_piece(unit, TR_VARIANT_BACKWARD, piece);
        bool behind = back->segment < w->barrier; // the loss
        for (size_t i = 0; i < back->block_count && behind; i++) {
            again = again || back->blocks[i].place == TR_PLACE_INPUT;
        }
    }
    return again;
}

// The boundaries of the first pass are let go: steps from here on name other values.
static void go_again(writer *w, int64_t first, int64_t end) {
    tr_unit_values *values = &w->plan->unit_values[TR_SEQUENCE_TRAIN];
    for (int u = 0; u < w->head; u++) {
        for (int64_t j = first; j < end; j++) {
            values->boundary[(u + 1) * values->micros + j] = -1;
            keep(w, false, u, 0, j);
        }
    }
}

static void go_down(writer *w, int64_t first, int64_t end) {
    for (int64_t j = first; j < end; j++) {
        tr__make_load(&w->editor, j);
    }
    if (goes_again(w)) {
        go_again(w, first, end);
    }
    for (int u = w->head; u >= w->lowest; u--) {
        for (int s = u == w->head ? w->barrier - 1 : 0; s >= 0; s--) {
            for (int64_t j = first; j < end; j++) {
                keep(w, true, u, s, j);
            }
        }
    }
    for (int64_t j = first; j < end; j++) {
        tr__make_unload(&w->editor, j);
    }
}

static void write_rounds(writer *w) {
    int64_t wave = w->plan->request.wave;
    keep_range(w, 0, w->first);
    for (int64_t first = 0; first < w->micros; first += wave) {
        go_up(w, first, tr__min_i64(first + wave, w->micros));
    }
    keep_merges(w, false);
    for (int64_t j = 0; j < w->micros; j++) {
        turn(w, j);
    }
    keep_merges(w, true);
    for (int64_t first = 0; first < w->micros; first += wave) {
        go_down(w, first, tr__min_i64(first + wave, w->micros));
    }
    keep_range(w, w->last + 1, w->editor.old->count);
}

// ---- what it is of

static void find_units(writer *w) {
    const tr_plan *plan = w->plan;
    const tr_graph *graph = plan->units[w->head].program->graph;
    for (int u = 0; u < w->head; u++) {
        w->segments[u + 1] = w->segments[u] + plan->units[u].program->segments;
    }
    while (w->lowest < w->head &&
           !tr__unit_has_backward(plan->units[w->lowest].program)) {
        w->lowest++;
    }
    while (tr__graph_barriers(graph, w->barrier, w->barrier + 1) == 0) {
        w->barrier++;
    }
}

tr_status tr__pass_two_passes(tr_plan *plan, tr_error *err) {
    if (plan->request.passes < 2) {
        return TR_OK;
    }
    writer w = {.plan = plan,
                .head = plan->unit_count - 1,
                .barrier = 1,
                .micros = plan->request.accumulation_steps,
                .editor = tr__edit_begin(plan, TR_SEQUENCE_TRAIN, err)};
    size_t segments = 0;
    for (int u = 0; u < plan->unit_count; u++) {
        segments += (size_t)plan->units[u].program->segments;
    }
    size_t entries = segments * (size_t)w.micros;
    w.begun = tr__calloc(plan->flat_count + 1, sizeof *w.begun);
    w.segments = tr__calloc((size_t)plan->unit_count, sizeof *w.segments);
    w.at[0] = tr__calloc(2 * entries, sizeof *w.at[0]);
    w.at[1] = w.at[0] ? w.at[0] + entries : NULL;
    if (w.begun && w.segments && w.at[0]) {
        find_units(&w);
        note_steps(&w);
        write_rounds(&w);
    } else {
        w.editor.status = tr_fail(err, TR_MEMORY, "no memory to order the plan");
    }
    tr_status status = tr__edit_end(&w.editor);
    tr__free(w.begun);
    tr__free(w.segments);
    tr__free(w.at[0]);
    return status;
}

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
// it loads the micro-batches anew. Of a pipeline each stage has the rounds of its own
// units: in the first all waves go through a chunk before the next, in the last they go
// forward and backward as the schedule says.
#include "plan/passes/two_passes.h"

#include "base/checked.h"
#include "base/memory.h"
#include "plan/flow/maker.h"
#include "plan/flow/passes.h"
#include "plan/passes/steps_gradients.h"

// Which old step of a segment is on a micro-batch.
typedef enum old_kind { FORWARD, BACKWARD, WEIGHTS, OLD_KINDS } old_kind;

typedef struct writer {
    tr_plan *plan;
    tr_editor editor;
    int64_t *begun;     // [flats] see tr__put_clear_gaps
    size_t *at;         // [OLD_KINDS][unit segments][micros] 1 + the old step
    int32_t *segments;  // [units + 1] of those before it
    int head, barrier;  // the last unit, and its segment that waits for all
    int lowest;         // the first unit that has a backward; head: none below it has
    size_t first, last; // of the old steps, those of micro-batches
    int64_t micros;
} writer;

// ---- the old steps

static size_t *entry(const writer *w, old_kind kind, int u, int segment,
                     int64_t micro) {
    int64_t row = kind * w->segments[w->head + 1] + w->segments[u] + segment;
    return &w->at[row * w->micros + micro];
}

static void note_steps(writer *w) {
    const tr_sequence *old = w->editor.old;
    w->first = old->count;
    for (size_t i = 0; i < old->count; i++) {
        const tr_plan_step *step = &old->steps[i];
        bool backward = tr__step_runs(step, TR_VARIANT_BACKWARD);
        old_kind kind = !backward                     ? FORWARD
                        : tr__step_runs_weights(step) ? WEIGHTS
                                                      : BACKWARD;
        if (backward || tr__step_is_forward(step)) {
            *entry(w, kind, step->unit, step->segment, step->micro) = i + 1;
            w->last = i;
        }
        if (step->shape == TR_STEP_IS_FEED) {
            w->first = w->first < i ? w->first : i;
            w->last = i;
        }
    }
}

// Pieces of a role, one after the other: on the values of now.
static void put_pieces(writer *w, tr_variant role, tr_piece_range pieces,
                       tr_plan_step step) {
    const tr_unit_program *unit = w->plan->units[step.unit].program;
    for (int i = pieces.first; i < pieces.end; i++) {
        step.id = i > pieces.first ? 0 : step.id;
        tr__edit_launch(&w->editor, tr__unit_piece(unit, role, i), &step);
        tr__edit_add(&w->editor, step);
    }
}

static tr_piece_range pieces_of(const tr_unit_program *unit, old_kind kind,
                                tr_variant role, int segment) {
    return kind == WEIGHTS ? tr__segment_weights(unit, segment)
                           : tr__segment_at_once(unit, role, segment);
}

static void keep(writer *w, old_kind kind, int u, int segment, int64_t micro) {
    size_t at = *entry(w, kind, u, segment, micro);
    if (at == 0) { // all of it is of another kind
        return;
    }
    const tr_plan_step *old = &w->editor.old->steps[at - 1];
    tr_variant role = old->payload.program->variant;
    tr_piece_range pieces = pieces_of(w->plan->units[u].program, kind, role, segment);
    if (kind != FORWARD) {
        tr__put_clear_gaps(&w->editor, w->begun, u, pieces, micro);
    }
    put_pieces(w, role, pieces, *old);
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
    const tr_unit_program *unit = w->plan->units[u].program;
    put_pieces(w, TR_VARIANT_SAVES_NOTHING,
               tr__segment_pieces(unit, TR_VARIANT_SAVES_NOTHING, 0), step);
}

static void load(writer *w, int64_t first, int64_t end) {
    for (int64_t j = first; j < end; j++) {
        tr__make_load(&w->editor, j);
    }
}

static void unload(writer *w, int64_t first, int64_t end) {
    for (int64_t j = first; j < end; j++) {
        tr__make_unload(&w->editor, j);
    }
}

// Units of a chunk, and which of the stage's chunks it is: the first, the last, one
// with the lowest unit that has a backward.
typedef struct run {
    int begin, end;
    bool first, last, lowest;
} run;

static run run_of(const writer *w, int chunk) {
    const tr_plan *plan = w->plan;
    int64_t stage = tr__chunk_stage(&plan->chunks, chunk), last = plan->chunks.each - 1;
    int lowest = tr__plan_lowest(plan);
    return (run){.begin = plan->chunk_first[chunk],
                 .end = plan->chunk_first[chunk + 1],
                 .first = chunk == tr__stage_chunk(&plan->chunks, stage, 0),
                 .last = chunk == tr__stage_chunk(&plan->chunks, stage, last),
                 .lowest = lowest >= 0 && chunk == plan->units[lowest].chunk};
}

// Up to the segment that waits for all micro-batches.
static void go_up(writer *w, const run *of, int64_t first, int64_t end) {
    if (of->first) {
        load(w, first, end);
    }
    for (int u = of->begin; u < of->end && u < w->head; u++) {
        for (int64_t j = first; j < end; j++) {
            put_first_forward(w, u, j);
        }
    }
    for (int s = 0; s < w->barrier && w->head < of->end; s++) {
        for (int64_t j = first; j < end; j++) {
            keep(w, FORWARD, w->head, s, j);
        }
    }
    if (of->last) {
        unload(w, first, end);
    }
}

static void go_up_all(writer *w) {
    const tr_plan *plan = w->plan;
    int64_t stage = plan->request.mesh.at[TR_AXIS_PIPELINE], wave = plan->request.wave;
    for (int64_t i = 0; i < plan->chunks.each; i++) {
        const run of = run_of(w, tr__stage_chunk(&plan->chunks, stage, i));
        for (int64_t first = 0; first < w->micros; first += wave) {
            go_up(w, &of, first, tr__min_i64(first + wave, w->micros));
        }
    }
}

// Other stages than the last unit's read the data, and do nothing.
static void turn(writer *w, int64_t micro) {
    int segments = w->plan->units[w->head].program->segments;
    bool here = tr__plan_runs(w->plan, w->head);
    load(w, micro, micro + 1);
    for (int s = w->barrier; s < segments && here; s++) {
        keep(w, FORWARD, w->head, s, micro);
    }
    for (int s = segments - 1; s >= w->barrier && here; s--) {
        keep(w, BACKWARD, w->head, s, micro);
    }
    unload(w, micro, micro + 1);
}

int tr__loss_barrier(const tr_plan *plan) {
    const tr_graph *graph = plan->units[plan->unit_count - 1].program->graph;
    int barrier = 1;
    while (tr__graph_barriers(graph, barrier, barrier + 1) == 0) {
        barrier++;
    }
    return barrier;
}

bool tr__loss_reads_input(const tr_plan *plan) {
    const tr_unit_program *unit = plan->units[plan->unit_count - 1].program;
    int barrier = tr__loss_barrier(plan);
    bool reads = false;
    for (int piece = 0; piece < tr__unit_pieces(unit, TR_VARIANT_BACKWARD); piece++) {
        const tr_program *back = tr__unit_piece(unit, TR_VARIANT_BACKWARD, piece);
        bool behind = back->segment < barrier; // the loss
        for (size_t i = 0; i < back->block_count && behind; i++) {
            reads = reads || back->blocks[i].place == TR_PLACE_INPUT;
        }
    }
    return reads;
}

// Does a backward behind the loss read what the units below it have made?
static bool goes_again(const writer *w) {
    return w->lowest < w->head || tr__loss_reads_input(w->plan);
}

// The boundaries of the first pass are let go: steps from here on name other values.
static void renew(writer *w, const run *of, int64_t first, int64_t end) {
    tr_unit_values *values = &w->plan->unit_values[TR_SEQUENCE_TRAIN];
    bool received = of->begin > 0 && !tr__plan_runs(w->plan, of->begin - 1);
    for (int b = of->begin + !received; b <= of->end && b <= w->head; b++) {
        for (int64_t j = first; j < end; j++) {
            values->boundary[b * values->micros + j] = -1;
        }
    }
}

static void go_again(writer *w, const run *of, int64_t first, int64_t end) {
    renew(w, of, first, end);
    for (int u = of->begin; u < of->end && u < w->head; u++) {
        for (int64_t j = first; j < end; j++) {
            keep(w, FORWARD, u, 0, j);
        }
    }
}

static void go_down(writer *w, const run *of, int64_t first, int64_t end) {
    for (int u = of->end - 1; u >= of->begin && u >= w->lowest; u--) {
        for (int s = u == w->head ? w->barrier - 1 : 0; s >= 0; s--) {
            for (int64_t j = first; j < end; j++) {
                keep(w, BACKWARD, u, s, j);
            }
        }
    }
    if (of->lowest) {
        unload(w, first, end);
    }
}

static void make_weights(writer *w, const run *of, int64_t first, int64_t end) {
    for (int u = of->end - 1; u >= of->begin && u >= w->lowest; u--) {
        for (int64_t j = first; j < end && u != w->head; j++) {
            keep(w, WEIGHTS, u, 0, j);
        }
    }
}

static void take_turn(writer *w, const tr_pipeline_turn *at) {
    const run of = run_of(w, at->chunk);
    int64_t first = at->wave * w->plan->request.wave;
    int64_t end = tr__min_i64(first + w->plan->request.wave, w->micros);
    if (at->kind == TR_TURN_WEIGHTS) {
        make_weights(w, &of, first, end);
        return;
    }
    if (at->kind == TR_TURN_BACKWARD) {
        go_down(w, &of, first, end);
        return;
    }
    if (of.first) {
        load(w, first, end);
    }
    if (goes_again(w)) {
        go_again(w, &of, first, end);
    }
}

static void write_rounds(writer *w) {
    keep_range(w, 0, w->first);
    go_up_all(w);
    keep_merges(w, false);
    for (int64_t j = 0; j < w->micros; j++) {
        turn(w, j);
    }
    keep_merges(w, true);
    for (int64_t i = 0; i < w->plan->turns[TR_SEQUENCE_TRAIN].count; i++) {
        take_turn(w, &w->plan->turns[TR_SEQUENCE_TRAIN].turn[i]);
    }
    keep_range(w, w->last + 1, w->editor.old->count);
}

// ---- what it is of

static void find_units(writer *w) {
    const tr_plan *plan = w->plan;
    for (int u = 0; u <= w->head; u++) {
        w->segments[u + 1] = w->segments[u] + plan->units[u].program->segments;
    }
    while (w->lowest < w->head &&
           !tr__unit_has_backward(plan->units[w->lowest].program)) {
        w->lowest++;
    }
    w->barrier = tr__loss_barrier(plan);
}

tr_status tr__pass_two_passes(tr_plan *plan, tr_error *err) {
    if (plan->request.passes < 2) {
        return TR_OK;
    }
    writer w = {.plan = plan,
                .head = plan->unit_count - 1,
                .micros = plan->request.accumulation_steps,
                .editor = tr__edit_begin(plan, TR_SEQUENCE_TRAIN, err)};
    size_t segments = 0, units = (size_t)plan->unit_count;
    for (size_t u = 0; u < units; u++) {
        segments += (size_t)plan->units[u].program->segments;
    }
    w.begun = tr__calloc(plan->flat_count + 1, sizeof *w.begun);
    w.segments = tr__calloc(units + 1, sizeof *w.segments);
    w.at = tr__calloc(OLD_KINDS * segments * (size_t)w.micros, sizeof *w.at);
    if (w.begun && w.segments && w.at) {
        find_units(&w);
        note_steps(&w);
        write_rounds(&w);
    } else {
        w.editor.status = tr_fail(err, TR_MEMORY, "no memory to order the plan");
    }
    tr_status status = tr__edit_end(&w.editor);
    tr__free(w.begun);
    tr__free(w.segments);
    tr__free(w.at);
    return status;
}

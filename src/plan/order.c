// Pass: the order of work. Breadth-first accumulation (Lamy-Poirier, arXiv 2211.05953):
// the micro-batches of a wave go through a unit together, before the next unit runs.
#include "base/checked.h"
#include "base/memory.h"
#include "plan/passes.h"
#include "plan/values.h"
#include "plan/wave.h"

typedef struct writer {
    tr_plan *plan;
    tr_sequence *sequence;
    tr_sequence_kind kind;
    tr_values *values;
    int64_t *begun; // [flats] 1 + the last scope that has made a gradient of it
    bool saves_nothing;
    int64_t first, end; // the micro-batches of the running wave
    int lowest;         // the first of this rank's units that has a backward
    tr_error *err;
    tr_status status;
} writer;

static void add(writer *w, tr_plan_step step) {
    if (w->status == TR_OK) {
        w->status = tr__values_step(w->values, &step);
    }
    if (w->status == TR_OK) {
        w->status = tr__sequence_add(w->sequence, step, w->err);
    }
}

// A step that runs a program of its unit.
static void add_program(writer *w, tr_plan_step step) {
    const tr_program *program = tr__step_program(w->plan, &step, w->kind);
    if (w->status == TR_OK) {
        w->status = tr__unit_launch(w->plan, w->kind, program, &step, w->err);
    }
    add(w, step);
}

// Nothing that a unit without a backward makes is kept, but from segment to segment.
static bool keeps_nothing(const writer *w, int u) {
    const tr_unit_program *program = w->plan->units[u].program;
    return w->saves_nothing || (u < w->lowest && program->segments == 1);
}

static void add_forward(writer *w, int u, int segment, int64_t micro) {
    if (u == w->plan->runs.first && segment == 0 && !w->plan->request.inference) {
        add(w, (tr_plan_step){
                   .kind = TR_STEP_load, .stream = TR_STREAM_DATA, .micro = micro});
    }
    add_program(w, (tr_plan_step){.kind = TR_STEP_forward,
                                  .unit = u,
                                  .segment = segment,
                                  .micro = micro,
                                  .saves_nothing = keeps_nothing(w, u)});
}

// Is the step the first of its scope to make a gradient of the flat?
static bool begins(writer *w, int flat, int u, int64_t micro) {
    int64_t wave = micro / w->plan->request.wave;
    int64_t scope = 1 + tr__gradient_scope(w->plan, flat, u, wave);
    bool first = w->begun[flat] != scope;
    w->begun[flat] = scope;
    return first;
}

// Gradients that pass lie where something else lay before: between the parameters'
// gradients there must be zeros, as there always are where gradients stay.
static void clear_gaps(writer *w, int u, int segment, int64_t micro) {
    const tr_plan_unit *unit = &w->plan->units[u];
    uint32_t touched =
        tr__program_flats(&unit->program->backward[segment], TR_PLACE_PARAM_GRAD);
    for (int f = 0; f < unit->program->flat_count; f++) {
        int flat = unit->flats[f];
        bool first = (touched >> f & 1) && begins(w, flat, u, micro);
        if (first && tr__flat_grads_pass(w->plan, flat) &&
            tr__flat_has_gaps(w->plan, flat)) {
            add(w, (tr_plan_step){
                       .kind = TR_STEP_clear, .part = TR_PART_GRAD, .unit = flat});
        }
    }
}

static void add_backward(writer *w, int u, int segment, int64_t micro) {
    clear_gaps(w, u, segment, micro);
    add_program(w, (tr_plan_step){.kind = TR_STEP_backward,
                                  .unit = u,
                                  .segment = segment,
                                  .micro = micro});
    if (u == w->lowest && segment == 0) {
        add(w, (tr_plan_step){
                   .kind = TR_STEP_unload, .stream = TR_STREAM_DATA, .micro = micro});
    }
}

// Does a batch barrier lie before the segment? Elsewhere a unit is only cut, so that
// not all of its parameters need be there at once.
static bool is_barrier(const writer *w, int u, int segment) {
    const tr_unit_program *program = w->plan->units[u].program;
    return segment > 0 && segment < program->segments &&
           tr__graph_barriers(program->graph, segment, segment + 1) > 0;
}

static bool merges(const tr_plan *plan, const tr_plan_step *step) {
    tr_wave_tensor tensor;
    size_t next = 0;
    bool some = false;
    while (tr__wave_next(plan, step, &next, &tensor)) {
        some = some || tr__wave_is_merged(plan, &tensor);
    }
    return some;
}

// Every micro-batch of the wave has added to the segment's wave tensors: their parts
// become one, those of other ranks among them. In an evaluation each micro-batch is a
// wave of its own.
static void merge_wave(writer *w, int u, int segment, bool backward) {
    tr_plan_step step = {.unit = u, .segment = segment, .backward = backward};
    if (w->kind != TR_SEQUENCE_TRAIN) {
        return;
    }
    if (tr__wave_range(w->plan, &step).bytes > 0) {
        tr_plan_step gather = step;
        gather.kind = TR_STEP_gather;
        gather.stream = TR_STREAM_COMM;
        gather.guard = TR_GUARD_ALWAYS;
        gather.part = TR_PART_WAVE;
        gather.group = TR_ON_DATA;
        step.kind = TR_STEP_pack;
        if (tr__wave_parts(w->plan, TR_SEQUENCE_TRAIN) > 1) {
            add(w, step);
        }
        add(w, gather);
    }
    step.kind = TR_STEP_merge;
    if (merges(w->plan, &step)) {
        add(w, step);
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
static void add_update(writer *w, tr_plan_step_kind kind, size_t f) {
    const tr_flat *flat = &w->plan->flats[f];
    bool shards = tr__plan_stage(w->plan) > 0;
    if (flat->frozen) {
        return;
    }
    add(w,
        (tr_plan_step){.kind = kind,
                       .stream = flat->offloaded ? TR_STREAM_HOST : TR_STREAM_COMPUTE,
                       .guard = TR_GUARD_APPLIED,
                       .unit = (int32_t)f,
                       .first = shards ? flat->first : 0,
                       .count = shards ? flat->own : flat->count,
                       .slot = -1});
}

// Wave tensors that no segment waits for are merged when all waves have added to them,
// where the states of the model follow them.
static void merge_step(writer *w) {
    for (int u = w->plan->runs.first; u < w->plan->runs.end; u++) {
        const tr_unit_program *program = w->plan->units[u].program;
        bool whole = program->track.count > 0 && tr__wave_is_step(program);
        for (int s = 0; whole && s < program->segments; s++) {
            merge_wave(w, u, s, false);
        }
    }
}

// Every wave goes up through this rank's units, and down again.
static void add_waves(writer *w) {
    const tr_plan *plan = w->plan;
    bool turns = plan->runs.end == plan->unit_count;
    int end = plan->runs.end - turns; // of units that are not turned at once
    int64_t g = plan->request.accumulation_steps, wave = plan->request.wave;
    for (int64_t first = 0; first < g; first += wave) {
        w->first = first;
        w->end = tr__min_i64(first + wave, g);
        for (int u = plan->runs.first; u < end; u++) {
            forward_unit(w, u);
        }
        if (turns) {
            turn(w, end);
        }
        for (int u = end - 1; u >= w->lowest; u--) {
            backward_unit(w, u);
        }
    }
}

static void train_step(writer *w) {
    tr_plan *plan = w->plan;
    w->lowest = plan->runs.first;
    while (w->lowest < plan->runs.end - 1 &&
           !tr__unit_has_backward(plan->units[w->lowest].program)) {
        w->lowest++; // the last unit has the loss
    }
    add(w, (tr_plan_step){.kind = TR_STEP_clear, .part = TR_PART_STATISTICS});
    add_waves(w);
    merge_step(w);
    add(w, (tr_plan_step){.kind = TR_STEP_norm});
    add(w, (tr_plan_step){.kind = TR_STEP_report, .stream = TR_STREAM_DATA});
    add(w, (tr_plan_step){.kind = TR_STEP_decide,
                          .stream = TR_STREAM_DATA,
                          .guard = TR_GUARD_ALWAYS});
    for (int u = plan->runs.first; u < plan->runs.end; u++) {
        if (plan->units[u].program->track.count > 0) {
            add_program(w, (tr_plan_step){.kind = TR_STEP_track,
                                          .guard = TR_GUARD_APPLIED,
                                          .unit = u});
        }
    }
    for (size_t f = 0; plan->request.tensor_norms && f < plan->flat_count; f++) {
        add_update(w, TR_STEP_direction_norms, f);
    }
    if (plan->request.tensor_norms) {
        add(w, (tr_plan_step){.kind = TR_STEP_tensor_norms, .guard = TR_GUARD_APPLIED});
    }
    for (size_t f = 0; f < plan->flat_count; f++) {
        add_update(w, TR_STEP_update, f);
    }
}

// One micro-batch, forward only. For logits the caller has filled the data slot. The
// effective batch of an op over it is this micro-batch.
static void forward_only(writer *w, bool logits) {
    w->saves_nothing = true;
    w->first = 0;
    w->end = 1;
    for (int u = w->plan->runs.first; u < w->plan->runs.end; u++) {
        if (logits) { // all segments in one program
            add_forward(w, u, 0, 0);
        } else {
            forward_unit(w, u);
        }
    }
    if (!logits) {
        add(w, (tr_plan_step){.kind = TR_STEP_unload, .stream = TR_STREAM_DATA});
    }
}

static void begin(writer *w, tr_sequence_kind kind) {
    w->kind = kind;
    w->sequence = &w->plan->sequences[kind];
    tr__values_end(w->values);
    w->values = NULL;
    if (w->status == TR_OK) {
        w->status = tr__values_begin(w->plan, kind, &w->values, w->err);
    }
}

tr_status tr__pass_order(tr_plan *plan, tr_error *err) {
    writer w = {.plan = plan, .err = err};
    w.begun = tr__calloc(plan->flat_count, sizeof *w.begun);
    if (!w.begun) {
        return tr_fail(err, TR_MEMORY, "no memory to order the plan");
    }
    if (plan->request.inference) {
        begin(&w, TR_SEQUENCE_INFERENCE);
        forward_only(&w, true);
    } else {
        begin(&w, TR_SEQUENCE_TRAIN);
        train_step(&w);
        begin(&w, TR_SEQUENCE_EVALUATE);
        w.lowest = 0;
        forward_only(&w, false);
    }
    tr__values_end(w.values);
    tr__free(w.begun);
    return w.status;
}

// Pass: what stages of a pipeline hand on to each other. The unit before a stage's
// first one runs elsewhere, so its outputs are received, and the gradient of them is
// sent back; behind the stage's last unit it is the other way round.
//
// Exchanges go one after the other, so two stages have to agree on the order of their
// messages, and what a stage waits for holds up what is behind it: the next message, or
// a sum of its tensor ranks. So each receives as late as that order allows. The stage
// before sends a wave's outputs and then receives the gradient of an earlier wave
// (turns.h). Therefore a stage receives the inputs of its first waves before their
// forwards, and those of a later one behind the backward whose gradient it sends next.
#include "base/checked.h"
#include "plan/flow/maker.h"
#include "plan/flow/passes.h"
#include "plan/flow/turns.h"

typedef struct writer {
    tr_editor editor;
    int64_t micros, wave; // of the sequence; of a wave, micro-batches
    int64_t under_way;    // waves that are forward and not yet backward, at most
    bool follows, leads;  // another stage is before this one; is behind it
} writer;

// What lies before (or behind) the stage of a micro-batch: outputs or their gradient.
typedef struct boundary {
    bool behind, gradient;
} boundary;

static const boundary inputs = {.behind = false, .gradient = false};

static int unit_at(const tr_plan *plan, boundary at) {
    return at.behind ? plan->runs.end - 1 : plan->runs.first;
}

static tr_region region_of(const writer *w, boundary at, int64_t micro) {
    const tr_plan *plan = w->editor.plan;
    const tr_unit_values *values = &plan->unit_values[w->editor.kind];
    int unit = unit_at(plan, at);
    const tr_unit_program *program = plan->units[unit].program;
    const int32_t *of = at.gradient ? values->gradient : values->boundary;
    int64_t bytes =
        at.behind     ? at.gradient ? program->output_grad_bytes : program->output_bytes
        : at.gradient ? program->input_grad_bytes
                      : program->input_bytes;
    return tr__region(of[(unit + at.behind) * values->micros + micro], bytes);
}

static const char *name_of(boundary at) {
    return at.behind     ? at.gradient ? "gradients of outputs" : "outputs"
           : at.gradient ? "gradients of inputs"
                         : "inputs";
}

// Outputs go to the next stage, gradients to the one before.
static void put_message(writer *w, boundary at, int64_t micro) {
    const tr_plan *plan = w->editor.plan;
    int32_t stage = (int32_t)plan->request.mesh.at[TR_AXIS_PIPELINE];
    int32_t before = at.behind ? stage : stage - 1;
    tr_region region = region_of(w, at, micro);
    int64_t bytes = region.end - region.first;
    bool sends = at.behind != at.gradient;
    tr_plan_step step = {
        .label = {.verb = sends ? TR_VERB_send : TR_VERB_receive, .what = name_of(at)},
        .subject = TR_OF_UNIT,
        .of_micro_batch = true,
        .backward = at.gradient,
        .unit = unit_at(plan, at),
        .micro = micro,
        .stream = TR_STREAM_COMM,
        .guard = TR_GUARD_ALWAYS};
    tr_exchange exchange = {.part = TR_PART_BOUNDARY,
                            .kind = TR_COMM_GATHER,
                            .type = TR_COMM_BYTE,
                            .group = TR_ON_PIPELINE,
                            .in_place = !sends,
                            .from = before + at.gradient,
                            .to = before + !at.gradient,
                            .count = bytes,
                            .shard = bytes};
    tr_region received = sends ? (tr_region){region.value, 0, 0} : region;
    tr__make_exchange(&w->editor, step, exchange, region, received, false);
}

static void receive_wave(writer *w, boundary at, int64_t first) {
    for (int64_t j = first; j < first + w->wave && j < w->micros; j++) {
        put_message(w, at, j);
    }
}

static bool begins_wave(const writer *w, const tr_plan_step *step) {
    return tr__step_begins(step) && step->micro % w->wave == 0;
}

static void put_before(writer *w, const tr_plan_step *step) {
    const tr_plan *plan = w->editor.plan;
    bool forward = tr__step_is_forward(step) && step->unit == plan->runs.first &&
                   step->segment == 0;
    bool backward = tr__step_runs(step, TR_VARIANT_BACKWARD) &&
                    step->unit == plan->runs.end - 1 &&
                    step->segment == plan->units[step->unit].program->segments - 1;
    if (w->follows && forward && begins_wave(w, step) &&
        step->micro < w->under_way * w->wave) {
        receive_wave(w, inputs, step->micro);
    }
    if (w->leads && backward && begins_wave(w, step)) {
        receive_wave(w, (boundary){.behind = true, .gradient = true}, step->micro);
    }
}

static void put_behind(writer *w, const tr_plan_step *step) {
    const tr_plan *plan = w->editor.plan;
    bool forward = tr__step_is_forward(step) && step->unit == plan->runs.end - 1 &&
                   step->segment == plan->units[step->unit].program->segments - 1;
    bool backward = tr__step_runs(step, TR_VARIANT_BACKWARD) &&
                    step->unit == plan->runs.first && step->segment == 0;
    if (w->leads && forward && tr__step_ends(step)) {
        put_message(w, (boundary){.behind = true, .gradient = false}, step->micro);
    }
    if (w->follows && backward && tr__step_ends(step)) {
        if (step->micro % w->wave == 0) {
            receive_wave(w, inputs, step->micro + w->under_way * w->wave);
        }
        put_message(w, (boundary){.behind = false, .gradient = true}, step->micro);
    }
}

static tr_status edit(tr_plan *plan, tr_sequence_kind kind, tr_error *err) {
    const tr_mesh *mesh = &plan->request.mesh;
    bool train = kind == TR_SEQUENCE_TRAIN;
    int64_t stage = mesh->at[TR_AXIS_PIPELINE];
    writer w = {.editor = tr__edit_begin(plan, kind, err),
                .micros = train ? plan->request.accumulation_steps : 1,
                .wave = train ? plan->request.wave : 1,
                .follows = stage > 0,
                .leads = stage + 1 < mesh->size[TR_AXIS_PIPELINE]};
    w.under_way = tr__turns_under_way(mesh, tr__ceil_div(w.micros, w.wave));
    for (size_t i = 0; i < w.editor.old->count && w.editor.status == TR_OK; i++) {
        const tr_plan_step *step = &w.editor.old->steps[i];
        put_before(&w, step);
        tr__edit_add(&w.editor, *step);
        put_behind(&w, step);
    }
    return tr__edit_end(&w.editor);
}

tr_status tr__pass_pipeline(tr_plan *plan, tr_error *err) {
    tr_status status = TR_OK;
    if (plan->request.mesh.size[TR_AXIS_PIPELINE] > 1) {
        status = edit(plan, TR_SEQUENCE_TRAIN, err);
        status = status == TR_OK ? edit(plan, TR_SEQUENCE_EVALUATE, err) : status;
    }
    return status;
}

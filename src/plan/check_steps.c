// Follows the steps and keeps what each buffer holds and how far each micro-batch is in
// each unit.
#include "base/memory.h"
#include "plan/check_walk.h"

static tr_progress *progress_of(const tr_check_walk *w, int32_t unit, int64_t micro) {
    return &w->progress[(int64_t)unit * w->micros + micro];
}

// ---- order
// --------------------------------------------------------------------------------

// Has the step's unit the program that the step asks for?
static bool is_compiled(const tr_check_walk *w) {
    const tr_unit_program *unit = tr__check_unit(w);
    bool training = w->kind == TR_SEQUENCE_TRAIN;
    switch (w->step->kind) {
    case TR_STEP_forward:
        return !training || !w->step->lean || unit->lean;
    case TR_STEP_recompute:
        return training && unit->recompute.instructions;
    case TR_STEP_backward:
        return training;
    case TR_STEP_track:
        return training && unit->track.count > 0;
    default:
        return true;
    }
}

static tr_status check_range(const tr_check_walk *w) {
    const tr_plan_step *step = w->step;
    int64_t units =
        tr__step_is_of_flat(step) ? (int64_t)w->plan->flat_count : w->plan->unit_count;
    bool inside = step->unit >= 0 && step->unit < units && step->micro >= 0 &&
                  step->micro < w->micros && step->segment >= 0;
    if (inside && (tr__step_is_of_unit(step) || step->kind == TR_STEP_track)) {
        inside = step->segment < tr__check_unit(w)->segments && is_compiled(w);
    }
    return inside ? TR_OK : tr__check_wrong(w, "is of what the model has not");
}

// A compute step needs its micro-batch's data to be in its slot of the ring.
static tr_status check_data(const tr_check_walk *w) {
    bool there = w->kind == TR_SEQUENCE_ANSWER ||
                 (w->step->micro < w->loaded && w->step->micro >= w->unloaded);
    return there ? TR_OK : tr__check_wrong(w, "runs while its data is not there");
}

static bool contributes(const tr_program *program, uint64_t operand) {
    for (size_t i = 0; i < program->count; i++) {
        const tr_instruction *at = &program->instructions[i];
        for (int k = 0; k < at->desc.out_count; k++) {
            if ((at->first >> k & 1) && tr__operand_bit(&at->out[k]) == operand) {
                return true;
            }
        }
    }
    return false;
}

// Does the step write wave tensors where it is the first of its wave to run its
// segment, or has a part of its own? `done`: the segments before it.
static tr_status check_first(const tr_check_walk *w, int done, bool backward,
                             bool *begins) {
    bool is_step = tr__wave_is_step(tr__check_unit(w));
    int64_t first = tr__check_wave_tensors(w);
    int64_t end = is_step ? w->micros : first + w->plan->request.wave;
    bool fresh = true;
    if (tr__check_unit(w)->wave_bytes == 0 || (is_step && backward)) {
        return TR_OK;
    }
    for (int64_t j = first; j < end && j < w->micros; j++) {
        const tr_progress *other = progress_of(w, w->step->unit, j);
        fresh = fresh && (backward ? other->backward : other->forward) <= done;
    }
    *begins = fresh && done == 0;
    uint64_t wave = tr__slot_bit(backward ? TR_SLOT_WAVE_GRAD : TR_SLOT_WAVE);
    bool writes = fresh || tr__wave_parts(w->plan, w->kind) > 1;
    bool some = contributes(tr__step_program(w->plan, w->step, w->kind), wave);
    return (some && writes) == !!(w->step->writes & wave)
               ? TR_OK
               : tr__check_wrong(w, "is wrong about being the first of the wave");
}

// Where a batch barrier lies right before the step, every micro-batch of the wave has
// done the segment before; and as often as one lay before it, there was a combine.
static tr_status check_barrier(const tr_check_walk *w, int done, bool backward) {
    const tr_unit_program *unit = tr__check_unit(w);
    int segment = w->step->segment;
    if (done == 0 || w->kind == TR_SEQUENCE_ANSWER) {
        return TR_OK;
    }
    int before = backward ? tr__graph_barriers(unit->graph, segment + 1, unit->segments)
                          : tr__graph_barriers(unit->graph, 1, segment + 1);
    int border = backward ? segment + 1 : segment;
    bool barrier = tr__graph_barriers(unit->graph, border, border + 1) > 0;
    int64_t first = tr__check_wave(w), end = first + w->plan->request.wave;
    for (int64_t j = first; barrier && j < end && j < w->micros; j++) {
        const tr_progress *other = progress_of(w, w->step->unit, j);
        if ((backward ? other->backward : other->forward) < done) {
            return tr__check_wrong(w, "runs before micro-batch %lld is there",
                                   (long long)j);
        }
    }
    return w->combined[w->step->unit] == before
               ? TR_OK
               : tr__check_wrong(w, "runs before the segment before it is combined");
}

static tr_status run_forward(tr_check_walk *w) {
    const tr_plan_step *step = w->step;
    bool answer = w->kind == TR_SEQUENCE_ANSWER;
    int segments = answer ? 1 : tr__check_unit(w)->segments;
    tr_progress *p = progress_of(w, step->unit, step->micro);
    bool first = step->segment == 0, last = step->segment == segments - 1;
    tr_content input = {.kind = TR_HOLDS_BOUNDARY,
                        .unit = step->unit,
                        .micro = step->micro,
                        .whole = true};
    tr_content output = {.kind = TR_HOLDS_BOUNDARY,
                         .unit = step->unit + 1,
                         .micro = step->micro,
                         .whole = true};
    tr_content saved = {.kind = TR_HOLDS_SAVED,
                        .unit = step->unit,
                        .micro = step->micro,
                        .whole = true};
    tr_status status = TR_OK;
    bool begins = false;
    if (p->forward != step->segment || p->backward > 0) {
        return tr__check_wrong(w, "is out of its order, or there twice");
    }
    if ((status = check_barrier(w, step->segment, false)) != TR_OK ||
        (status = check_first(w, step->segment, false, &begins)) != TR_OK ||
        (status = tr__check_expect(w, TR_SLOT_INPUT, input)) != TR_OK ||
        (status = tr__check_fill(w, TR_SLOT_OUTPUT, output, first, last)) != TR_OK ||
        (status = tr__check_fill_wave(w, TR_SLOT_WAVE, TR_HOLDS_WAVE, begins)) !=
            TR_OK) {
        return status;
    }
    p->forward++;
    if (first) {
        w->combined[step->unit] = 0;
    }
    // A lean forward keeps nothing, whatever it names, and whatever the others do.
    if (step->lean && w->kind == TR_SEQUENCE_TRAIN) {
        tr__check_leave(w, TR_SLOT_SAVED, (tr_content){.kind = TR_HOLDS_NOTHING});
        return TR_OK;
    }
    return tr__check_fill(w, TR_SLOT_SAVED, saved, first, last);
}

static tr_status run_recompute(tr_check_walk *w) {
    const tr_plan_step *step = w->step;
    tr_progress *p = progress_of(w, step->unit, step->micro);
    tr_content input = {.kind = TR_HOLDS_BOUNDARY,
                        .unit = step->unit,
                        .micro = step->micro,
                        .whole = true};
    tr_content wave = {.kind = TR_HOLDS_WAVE,
                       .unit = step->unit,
                       .micro = tr__check_wave_tensors(w),
                       .whole = true};
    if (p->forward != tr__check_unit(w)->segments || p->backward > 0 || p->recomputed) {
        return tr__check_wrong(w, "is out of its order, or there twice");
    }
    p->recomputed = true;
    tr__check_leave(w, TR_SLOT_SAVED,
                    (tr_content){.kind = TR_HOLDS_SAVED,
                                 .unit = step->unit,
                                 .micro = step->micro,
                                 .whole = true});
    tr_status status = tr__check_expect(w, TR_SLOT_INPUT, input);
    return status == TR_OK ? tr__check_expect(w, TR_SLOT_WAVE, wave) : status;
}

// The parameter whose gradient is exactly this operand, -1: none.
static int64_t param_at(const tr_check_walk *w, const tr_operand *operand,
                        int64_t bytes) {
    int flat = w->plan->units[w->step->unit].flats[operand->flat];
    const tr_flat *of = &w->plan->flats[flat];
    for (size_t i = of->first_param; i < of->end_param; i++) {
        const tr_plan_param *param = &w->plan->params[i];
        int64_t size = (int64_t)sizeof(float);
        if (param->flat == flat && param->offset * size == operand->offset &&
            param->count * size == bytes) {
            return (int64_t)i;
        }
    }
    return -1;
}

// A gradient is written once, whoever comes first, and added to by all others.
static tr_status write_gradients(const tr_check_walk *w, const tr_program *program) {
    for (size_t i = 0; i < program->count; i++) {
        const tr_instruction *at = &program->instructions[i];
        for (int k = 0; k < at->desc.out_count; k++) {
            const tr_operand *out = &at->out[k];
            if (out->place != TR_PLACE_PARAM_GRAD) {
                continue;
            }
            int64_t param = param_at(w, out, tr_tensor_bytes(at->desc.out[k]));
            bool adds = tr__step_adds(w->step, at, k);
            if (param < 0) {
                return tr__check_wrong(w, "writes a gradient of no parameter");
            }
            if (adds != w->written[param]) {
                return tr__check_wrong(w, "%s the gradient of %s",
                                       adds ? "adds to nothing in" : "overwrites",
                                       w->plan->params[param].name);
            }
            w->written[param] = true;
        }
    }
    return TR_OK;
}

static tr_status run_backward(tr_check_walk *w, const tr_program *program) {
    const tr_plan_step *step = w->step;
    const tr_unit_program *unit = tr__check_unit(w);
    tr_progress *p = progress_of(w, step->unit, step->micro);
    int done = unit->segments - 1 - step->segment;
    bool first = done == 0, last = step->segment == 0;
    tr_content input = {.kind = TR_HOLDS_BOUNDARY,
                        .unit = step->unit,
                        .micro = step->micro,
                        .whole = true};
    tr_content output = {.kind = TR_HOLDS_BOUNDARY,
                         .unit = step->unit + 1,
                         .micro = step->micro,
                         .whole = true};
    tr_content saved = {.kind = TR_HOLDS_SAVED,
                        .unit = step->unit,
                        .micro = step->micro,
                        .whole = true};
    tr_content wave = {.kind = TR_HOLDS_WAVE,
                       .unit = step->unit,
                       .micro = tr__check_wave_tensors(w),
                       .whole = true};
    tr_content from = {.kind = TR_HOLDS_GRADIENT,
                       .unit = step->unit + 1,
                       .micro = step->micro,
                       .whole = true};
    tr_content to = {.kind = TR_HOLDS_GRADIENT,
                     .unit = step->unit,
                     .micro = step->micro,
                     .whole = true};
    tr_status status = TR_OK;
    bool begins = false;
    if (p->forward != unit->segments || p->backward != done || w->normed) {
        return tr__check_wrong(w, "is out of its order, or there twice");
    }
    w->combined[step->unit] = first ? 0 : w->combined[step->unit];
    if ((status = check_barrier(w, done, true)) != TR_OK ||
        (status = check_first(w, done, true, &begins)) != TR_OK ||
        (status = tr__check_expect(w, TR_SLOT_INPUT, input)) != TR_OK ||
        (status = tr__check_expect(w, TR_SLOT_OUTPUT, output)) != TR_OK ||
        (status = tr__check_expect(w, TR_SLOT_SAVED, saved)) != TR_OK ||
        (status = tr__check_expect(w, TR_SLOT_WAVE, wave)) != TR_OK ||
        (status = tr__check_fill_wave(w, TR_SLOT_WAVE_GRAD, TR_HOLDS_WAVE_GRADIENT,
                                      begins)) != TR_OK) {
        return status;
    }
    bool begun_in_place = unit->derived.in_place && !first;
    if (!begun_in_place) {
        status = tr__check_expect(w, TR_SLOT_OUTPUT_GRAD, from);
    }
    if (status == TR_OK) {
        status = tr__check_fill(w, TR_SLOT_INPUT_GRAD, to, first, last);
    }
    p->backward++;
    return status == TR_OK ? write_gradients(w, program) : status;
}

// Ranks merge through a buffer of the step.
static tr_status check_merge(const tr_check_walk *w) {
    int32_t buffer = w->step->buffer[TR_SLOT_TEMP];
    int64_t bytes =
        w->kind == TR_SEQUENCE_TRAIN ? tr__combine_bytes(w->plan, w->step) : 0;
    bool good = bytes == 0 || (buffer >= 0 && w->plan->buffers[buffer].bytes >= bytes);
    return good ? TR_OK : tr__check_wrong(w, "has no room to merge in");
}

// Tensors of the whole step are merged once, segment by segment, when the last
// micro-batch has added to them.
static tr_status combine_step(tr_check_walk *w) {
    tr_content wave = {
        .kind = TR_HOLDS_WAVE, .unit = w->step->unit, .micro = 0, .whole = true};
    for (int64_t j = 0; j < w->micros; j++) {
        if (progress_of(w, w->step->unit, j)->backward < tr__check_unit(w)->segments) {
            return tr__check_wrong(w, "runs before micro-batch %lld is there",
                                   (long long)j);
        }
    }
    if (w->normed || w->step->backward ||
        w->combined[w->step->unit]++ != w->step->segment) {
        return tr__check_wrong(w, "is out of its order, or there twice");
    }
    tr_status status = tr__check_expect(w, TR_SLOT_WAVE, wave);
    return status == TR_OK ? check_merge(w) : status;
}

static tr_status run_combine(tr_check_walk *w) {
    if (tr__wave_is_step(tr__check_unit(w))) {
        return combine_step(w);
    }
    tr_content wave = {.kind = TR_HOLDS_WAVE,
                       .unit = w->step->unit,
                       .micro = tr__check_wave(w),
                       .whole = true};
    tr_content grad = {.kind = TR_HOLDS_WAVE_GRADIENT,
                       .unit = w->step->unit,
                       .micro = tr__check_wave(w),
                       .whole = true};
    const tr_progress *first = progress_of(w, w->step->unit, 0);
    if (w->step->backward != (first->backward > 0)) {
        return tr__check_wrong(w, "is of the other direction");
    }
    const tr_unit_program *unit = tr__check_unit(w);
    int most = tr__graph_barriers(unit->graph, 1, unit->segments);
    if (++w->combined[w->step->unit] > most) {
        return tr__check_wrong(w, "is there twice");
    }
    tr_status status = tr__check_expect(w, TR_SLOT_WAVE, wave);
    status = status == TR_OK ? tr__check_expect(w, TR_SLOT_WAVE_GRAD, grad) : status;
    return status == TR_OK ? check_merge(w) : status;
}

static tr_status run_ring(tr_check_walk *w) {
    bool load = w->step->kind == TR_STEP_load;
    int64_t *next = load ? &w->loaded : &w->unloaded;
    int64_t slots = w->plan->slots[w->kind == TR_SEQUENCE_TRAIN ? 0 : 1];
    if (w->step->micro != *next || (!load && w->unloaded == w->loaded)) {
        return tr__check_wrong(w, "is out of its order, or there twice");
    }
    for (int u = 0; !load && u < w->plan->unit_count; u++) {
        const tr_progress *p = progress_of(w, u, w->step->micro);
        int segments = w->plan->units[u].program->segments;
        if (p->forward < segments ||
            (w->kind == TR_SEQUENCE_TRAIN && p->backward < segments)) {
            return tr__check_wrong(w, "gives back data that unit %d has yet to read",
                                   u);
        }
    }
    (*next)++;
    return w->loaded - w->unloaded <= slots
               ? TR_OK
               : tr__check_wrong(w, "overfills the ring of data");
}

static tr_status run_norm(tr_check_walk *w) {
    if (w->normed || w->unloaded != w->micros) {
        return tr__check_wrong(w, "is there twice, or before the last gradient");
    }
    tr_status status = tr__check_late_updates(w);
    w->normed = true;
    if (status == TR_OK) {
        status = tr__check_scratch(w);
    }
    if (status == TR_OK) {
        status = tr__check_gauged(w);
    }
    return status == TR_OK ? tr__check_gradients(w) : status;
}

static tr_status run_clear(tr_check_walk *w) {
    if (w->step->part == TR_PART_GRAD) {
        return tr__check_clear_gaps(w);
    }
    tr_status status = w->cleared ? tr__check_wrong(w, "is there twice") : TR_OK;
    w->cleared = true;
    return status;
}

static tr_status run_update(tr_check_walk *w) {
    size_t index = (size_t)(w->step - w->plan->sequences[w->kind].steps);
    bool agreed = w->normed && (w->recorded || w->plan->request.ranks == 1);
    bool late = !w->normed && w->step->guard == TR_GUARD_DEFERRED;
    if (!late && (!agreed || index < w->applied)) {
        return tr__check_wrong(w, "comes before the norm");
    }
    tr_status status = tr__check_norms(w);
    return status == TR_OK ? tr__check_update(w) : status;
}

// What the unit's states are brought up to date from has been merged.
static bool is_merged(const tr_check_walk *w) {
    const tr_unit_program *unit = tr__check_unit(w);
    if (tr__wave_is_step(unit)) {
        return w->combined[w->step->unit] == unit->segments;
    }
    for (size_t i = 0; i < unit->track.count; i++) {
        const tr_instruction *at = &unit->track.instructions[i];
        for (int k = 0; k < at->desc.in_count; k++) {
            int next = at->in[k].place == TR_PLACE_WAVE
                           ? unit->graph->values[at->in[k].value].segment + 1
                           : 0;
            if (next > 0 && (next >= unit->segments ||
                             tr__graph_barriers(unit->graph, next, next + 1) == 0)) {
                return false;
            }
        }
    }
    return true;
}

static tr_status run_track(tr_check_walk *w) {
    size_t index = (size_t)(w->step - w->plan->sequences[w->kind].steps);
    bool agreed = w->normed && (w->recorded || w->plan->request.ranks == 1);
    tr_content wave = {.kind = TR_HOLDS_WAVE,
                       .unit = w->step->unit,
                       .micro = tr__check_wave_tensors(w),
                       .whole = true};
    if (!agreed || w->tracked[w->step->unit] || index < w->applied) {
        return tr__check_wrong(w, "is there twice, or before the norm");
    }
    if (!is_merged(w)) {
        return tr__check_wrong(w, "reads wave tensors that are not merged");
    }
    w->tracked[w->step->unit] = true;
    return tr__check_expect(w, TR_SLOT_WAVE, wave);
}

static bool is_opening(const tr_plan_step *step) {
    return step->kind == TR_STEP_clear && step->part == TR_PART_RECORD;
}

static tr_status run_step(tr_check_walk *w) {
    tr_status status = check_range(w);
    const tr_program *program =
        status == TR_OK ? tr__step_program(w->plan, w->step, w->kind) : NULL;
    bool training = w->kind == TR_SEQUENCE_TRAIN;
    if (status == TR_OK) {
        status = tr__check_slots(w, program);
    }
    if (status == TR_OK && program && w->step->kind != TR_STEP_track) {
        status = check_data(w);
    }
    if (status == TR_OK) {
        status = tr__check_idle(w);
    }
    if (status == TR_OK && program) {
        status = tr__check_binding(w, program);
    }
    if (status == TR_OK && training && !w->cleared && !is_opening(w->step)) {
        status = tr__check_wrong(w, "comes before the sums are cleared");
    }
    if (status != TR_OK) {
        return status;
    }
    switch (w->step->kind) {
    case TR_STEP_load:
    case TR_STEP_unload:
        return run_ring(w);
    case TR_STEP_forward:
        return run_forward(w);
    case TR_STEP_combine:
        return run_combine(w);
    case TR_STEP_recompute:
        return run_recompute(w);
    case TR_STEP_backward:
        return run_backward(w, program);
    case TR_STEP_clear:
        return run_clear(w);
    case TR_STEP_gather:
        return tr__check_gather(w);
    case TR_STEP_reduce:
        return tr__check_reduce(w);
    case TR_STEP_gauge:
        return tr__check_gauge(w);
    case TR_STEP_gauge_tied:
        return tr__check_gauge_tied(w);
    case TR_STEP_fold:
        return tr__check_fold(w);
    case TR_STEP_fetch:
        return tr__step_is_of_boundary(w->step) ? tr__check_boundary(w)
                                                : tr__check_fetch(w);
    case TR_STEP_evict:
        return tr__step_is_of_boundary(w->step) ? tr__check_boundary(w)
                                                : tr__check_evict(w);
    case TR_STEP_read:
        return tr__check_read(w);
    case TR_STEP_write:
        return tr__check_write(w);
    case TR_STEP_square:
        return tr__check_square(w);
    case TR_STEP_norm:
        return run_norm(w);
    case TR_STEP_measure:
        return tr__check_measure(w);
    case TR_STEP_total:
        return tr__check_total(w);
    case TR_STEP_update:
        return run_update(w);
    case TR_STEP_track:
        return run_track(w);
    default:
        return tr__check_wrong(w, "is of no known kind");
    }
}

// ---- all of it
// ----------------------------------------------------------------------------

// A fence brings every flat buffer that stays, and that is updated elsewhere.
static tr_status check_fence(const tr_check_walk *w) {
    const tr_plan_request *r = &w->plan->request;
    int stage = tr__plan_stage(w->plan);
    bool stays = r->param_home == TR_SPACE_DEVICE;
    for (size_t f = 0; stays && f < w->plan->flat_count; f++) {
        bool gathered = w->flats[f].gathered_param || stage == 0 || stage == 3;
        bool fetched = w->flats[f].fetched || !w->plan->flats[f].leaves;
        if (!gathered || !fetched) {
            return tr_fail(w->err, TR_INTERNAL, "plan: the fence leaves out %s",
                           w->plan->flats[f].name);
        }
    }
    return TR_OK;
}

static tr_status check_end(const tr_check_walk *w) {
    bool training = w->kind == TR_SEQUENCE_TRAIN;
    if (w->kind == TR_SEQUENCE_FENCE) {
        return check_fence(w);
    }
    for (int u = 0; u < w->plan->unit_count; u++) {
        int segments =
            w->kind == TR_SEQUENCE_ANSWER ? 1 : w->plan->units[u].program->segments;
        for (int64_t j = 0; j < w->micros; j++) {
            const tr_progress *p = progress_of(w, u, j);
            if (p->forward != segments || (training && p->backward != segments)) {
                return tr_fail(w->err, TR_INTERNAL,
                               "plan: %s leaves unit %d, micro-batch %lld undone",
                               tr__sequence_name(w->kind), u, (long long)j);
            }
        }
    }
    bool whole = w->unloaded == w->loaded && (!training || w->normed);
    for (size_t f = 0; f < w->plan->flat_count; f++) {
        whole = whole && (!training || tr__check_is_updated(w, (int)f));
    }
    for (int u = 0; u < w->plan->unit_count; u++) {
        bool tracks = w->plan->units[u].program->track.count > 0;
        whole = whole && (!training || !tracks || w->tracked[u]);
    }
    return whole ? TR_OK
                 : tr_fail(w->err, TR_INTERNAL,
                           "plan: %s ends before everything is updated or given back",
                           tr__sequence_name(w->kind));
}

static tr_status run_all(tr_check_walk *w) {
    const tr_sequence *sequence = &w->plan->sequences[w->kind];
    tr_status status = TR_OK;
    w->applied = tr__sequence_applied(sequence);
    for (size_t i = 0; i < w->applied; i++) {
        w->defers = w->defers || sequence->steps[i].guard == TR_GUARD_DEFERRED;
    }
    for (size_t i = 0; i < sequence->count && status == TR_OK; i++) {
        w->step = &sequence->steps[i];
        status = run_step(w);
    }
    return status == TR_OK ? check_end(w) : status;
}

static tr_status check_sequence(const tr_plan *plan, tr_sequence_kind kind,
                                tr_error *err) {
    tr_check_walk w = {
        .plan = plan, .kind = kind, .err = err, .micros = 1, .measures = -1};
    size_t units = (size_t)plan->unit_count;
    if (kind == TR_SEQUENCE_TRAIN) {
        w.micros = plan->request.accumulation_steps;
    }
    w.contents = tr__calloc(plan->buffer_count, sizeof *w.contents);
    w.progress = tr__calloc(units * (size_t)w.micros, sizeof *w.progress);
    w.combined = tr__calloc(units, sizeof *w.combined);
    w.written = tr__calloc(plan->param_count, sizeof *w.written);
    w.summed = tr__calloc(plan->param_count, sizeof *w.summed);
    w.gauged = tr__calloc(plan->param_count, sizeof *w.gauged);
    w.updated = tr__calloc(plan->flat_count, sizeof *w.updated);
    w.measured = tr__calloc(plan->flat_count, sizeof *w.measured);
    w.tracked = tr__calloc(units, sizeof *w.tracked);
    w.flats = tr__calloc(plan->flat_count, sizeof *w.flats);
    bool good = w.contents && w.progress && w.combined && w.written && w.summed &&
                w.updated && w.measured && w.gauged && w.tracked && w.flats;
    for (int s = 0; s < TR_BESIDE; s++) {
        w.busy[s] = tr__calloc(plan->buffer_count, sizeof **w.busy);
        good = good && w.busy[s];
    }
    for (size_t f = 0; good && f < plan->flat_count; f++) {
        w.flats[f].grad = w.flats[f].gaps = w.flats[f].sum = -1;
    }
    tr_status status =
        good ? run_all(&w) : tr_fail(err, TR_MEMORY, "no memory to check the plan");
    tr__free(w.contents);
    tr__free(w.progress);
    tr__free(w.combined);
    tr__free(w.written);
    tr__free(w.summed);
    tr__free(w.gauged);
    tr__free(w.updated);
    tr__free(w.measured);
    tr__free(w.tracked);
    tr__free(w.flats);
    for (int s = 0; s < TR_BESIDE; s++) {
        tr__free(w.busy[s]);
    }
    return status;
}

tr_status tr__check_steps(const tr_plan *plan, tr_error *err) {
    tr_status status = TR_OK;
    for (int kind = 0; kind < TR_SEQUENCES && status == TR_OK; kind++) {
        bool answers = kind == TR_SEQUENCE_ANSWER;
        if (answers == plan->request.inference) {
            status = check_sequence(plan, (tr_sequence_kind)kind, err);
        }
    }
    return status;
}

// Rules of the steps that work on one micro-batch in one unit.
#include "plan/proof/proof.h"

static const tr_unit_program *unit_of(const tr_proof *p) {
    return p->plan->units[p->step->unit].program;
}

static bool is_training(const tr_proof *p) {
    return p->kind == TR_SEQUENCE_TRAIN;
}

static int64_t micros_of(const tr_proof *p) {
    return is_training(p) ? p->plan->request.accumulation_steps : 1;
}

static int segments_of(const tr_proof *p) {
    return p->kind == TR_SEQUENCE_INFERENCE ? 1 : unit_of(p)->segments;
}

// How many micro-batches have been through the segment of this unit.
static int64_t *done_of(tr_proof *p, int64_t *done, int segment) {
    return &done[p->tables.segments[p->step->unit] + segment];
}

static bool is_of_model(tr_proof *p) {
    const tr_plan_step *step = p->step;
    bool inside = tr__plan_runs(p->plan, step->unit) && step->segment >= 0 &&
                  step->segment < segments_of(p) && step->micro >= 0 &&
                  step->micro < micros_of(p);
    if (!inside) {
        tr__proof_wrong(p, "is of what the model has not");
    }
    return inside;
}

// ---- data

static tr_bytes data_slot(const tr_proof *p) {
    int ring = is_training(p) ? 0 : 1;
    int64_t at = p->step->micro % p->plan->slots[ring] * p->plan->slot_bytes;
    return (tr_bytes){p->plan->data_ring[ring], at, at + p->plan->slot_bytes};
}

static tr_meaning data_of(const tr_proof *p) {
    return (tr_meaning){.kind = TR_MEANS_DATA, .index = p->step->micro};
}

// The reading thread fills the slots in their order.
void tr__rule_load(tr_proof *p) {
    const tr_meaning nothing = {0}, data = data_of(p);
    if (p->step->micro != p->walked.loaded++) {
        tr__proof_wrong(p, "is not of the next micro-batch to be read");
        return;
    }
    tr__bytes_change(p, data_slot(p), &nothing, &data);
}

void tr__rule_unload(tr_proof *p) {
    const tr_meaning nothing = {0}, data = data_of(p);
    if (p->step->micro != p->walked.unloaded++) {
        tr__proof_wrong(p, "is not of the micro-batch that was read first");
        return;
    }
    tr__bytes_change(p, data_slot(p), &data, &nothing);
}

// ---- what programs touch

static tr_meaning of_micro(const tr_proof *p, tr_meaning_kind kind, int32_t unit,
                           int32_t segments) {
    return (tr_meaning){
        .kind = kind, .of = unit, .index = p->step->micro, .terms = segments};
}

static int segments_of_unit(const tr_proof *p, int32_t unit) {
    return p->kind == TR_SEQUENCE_INFERENCE ? 1
                                            : p->plan->units[unit].program->segments;
}

// The unit's inputs, complete: all segments of the unit before have added to it.
static tr_meaning input_of(const tr_proof *p, int32_t unit) {
    return of_micro(p, TR_MEANS_INPUT, unit, segments_of_unit(p, unit - 1));
}

static tr_meaning input_gradient_of(const tr_proof *p, int32_t unit) {
    return of_micro(p, TR_MEANS_INPUT_GRADIENT, unit, segments_of_unit(p, unit));
}

static tr_bytes block(tr_proof *p, tr_slot slot, int64_t bytes) {
    return tr__slot_bytes(p, slot, bytes, TR_SPACE_DEVICE);
}

// A block that the segments of a unit fill one after the other; `done` before this one.
static void fill(tr_proof *p, tr_bytes bytes, tr_meaning means, int done) {
    tr_meaning before = means;
    before.terms = done;
    means.terms = done + 1;
    if (done == 0) {
        tr__bytes_write(p, bytes, &means);
    } else {
        tr__bytes_change(p, bytes, &before, &means);
    }
}

static bool adds_to(const tr_proof *p, const tr_touch *touch, uint64_t operand) {
    return touch->adds || (touch->adds_later && !(p->step->writes & operand));
}

static void read_params(tr_proof *p, const tr_touch *touch) {
    int32_t buffer = p->plan->bindings[p->step->binding].param[touch->flat];
    int32_t flat = p->plan->units[p->step->unit].flats[touch->flat];
    tr_kept here = tr__kept_params(p, flat);
    tr_meaning want = here.means;
    want.base = buffer == here.buffer ? here.base : 0; // or all of it is brought
    bool frozen = p->plan->flats[flat].frozen;
    if (buffer == here.buffer && p->others[flat] != p->version && !p->stopped &&
        !frozen) {
        tr__proof_wrong(p, "reads parameters of %s that other ranks have updated",
                        p->plan->flats[flat].name);
    }
    tr__bytes_read(
        p, (tr_bytes){buffer, want.base + touch->first, want.base + touch->end}, &want);
}

static void touch_loss(tr_proof *p, const tr_touch *touch) {
    int64_t first = p->plan->statistics.sums + p->step->micro * TR_SUMS;
    tr_bytes bytes = is_training(p) ? tr__statistics_bytes(p, first, TR_SUMS)
                                    : (tr_bytes){p->plan->sums, 0, 0};
    tr_meaning found, want = {.kind = TR_MEANS_ZEROS}, sum;
    bytes =
        (tr_bytes){bytes.buffer, bytes.first + touch->first, bytes.first + touch->end};
    tr__bytes_look(p, bytes, &found);
    want = found.kind == TR_MEANS_LOSS && found.index == p->step->micro ? found : want;
    sum = (tr_meaning){.kind = TR_MEANS_LOSS, .index = p->step->micro};
    sum.terms = want.terms + 1;
    sum.sum = want.sum + tr__contribution(p->step->unit, p->step->segment, 0);
    tr__bytes_change(p, bytes, &want, &sum);
}

static void touch_states(tr_proof *p, const tr_touch *touch) {
    tr_meaning states = {
        .kind = TR_MEANS_MODEL_STATES, .of = p->step->unit, .version = p->version};
    tr_meaning tracked = states;
    tr_bytes bytes = {p->plan->units[p->step->unit].states, touch->first, touch->end};
    tracked.version++;
    if (touch->result && p->step->kind == TR_STEP_track) {
        tr__bytes_change(p, bytes, &states, &tracked);
    } else {
        tr__bytes_read(p, bytes, &states);
    }
}

// What is written there is of later positions than what is read.
static void touch_cache(tr_proof *p, const tr_touch *touch) {
    const tr_meaning cache = {.kind = TR_MEANS_CACHE, .of = p->step->unit};
    tr_bytes bytes = {p->plan->units[p->step->unit].cache, touch->first, touch->end};
    if (touch->result) {
        tr__bytes_change(p, bytes, &cache, &cache);
    } else {
        tr__bytes_read(p, bytes, &cache);
    }
}

// The step that does not read what others have packed packs it again, which is the
// same.
static void touch_packed(tr_proof *p, const tr_touch *touch) {
    bool backward = touch->place == TR_PLACE_PACKED_BACKWARD;
    tr_slot slot = tr__place_slot(touch->place);
    const tr_meaning packed = {.kind = TR_MEANS_PACKED,
                               .of = p->step->unit,
                               .index = backward,
                               .version = p->version};
    tr_bytes bytes = block(p, slot, unit_of(p)->packed_bytes[backward]);
    bytes = (tr_bytes){bytes.buffer, touch->first, touch->end};
    if (bytes.buffer >= 0 && adds_to(p, touch, tr__slot_bit(slot))) {
        tr__bytes_read(p, bytes, &packed);
    } else if (bytes.buffer >= 0) {
        tr__bytes_write(p, bytes, &packed);
    }
}

static void touch(tr_proof *p, const tr_touch *touch) {
    const tr_meaning logits = {.kind = TR_MEANS_LOGITS};
    switch (touch->place) {
    case TR_PLACE_PARAM:
        read_params(p, touch);
        break;
    case TR_PLACE_WAVE:
        tr__wave_touch(p, touch, adds_to(p, touch, tr__slot_bit(TR_SLOT_WAVE)));
        break;
    case TR_PLACE_WAVE_GRAD:
        tr__wave_touch(p, touch, adds_to(p, touch, tr__slot_bit(TR_SLOT_WAVE_GRAD)));
        break;
    case TR_PLACE_SUMS:
        touch_loss(p, touch);
        break;
    case TR_PLACE_STATE:
        touch_states(p, touch);
        break;
    case TR_PLACE_CACHE:
        touch_cache(p, touch);
        break;
    case TR_PLACE_PACKED:
    case TR_PLACE_PACKED_BACKWARD:
        touch_packed(p, touch);
        break;
    case TR_PLACE_LOGITS:
        tr__bytes_write(p, (tr_bytes){p->plan->logits, touch->first, touch->end},
                        &logits);
        break;
    default: // data and gradients of parameters: below
        break;
    }
}

static const tr_touches *touches_of(const tr_proof *p) {
    return tr__tables_touches(&p->tables, p->step->unit,
                              tr__step_program(p->plan, p->step, p->kind));
}

// All but blocks and gradients of parameters. Its micro-batch is at work meanwhile.
static void run_program(tr_proof *p) {
    const tr_program *program = tr__step_program(p->plan, p->step, p->kind);
    const tr_touches *touches = touches_of(p);
    const tr_meaning data = data_of(p);
    if (p->step->binding < 0 || p->step->binding >= (int64_t)p->plan->binding_count) {
        tr__proof_wrong(p, "has no binding");
        return;
    }
    if (touches->places >> TR_PLACE_DATA & 1) {
        tr__bytes_read(p, data_slot(p), &data);
    } else if (p->step->kind != TR_STEP_track) {
        tr__bytes_expect(p, data_slot(p), &data);
    }
    for (int results = 0; results < 2; results++) { // what it reads comes first
        for (size_t i = 0; i < touches->count && p->status == TR_OK; i++) {
            if (touches->items[i].result == results) {
                touch(p, &touches->items[i]);
            }
        }
    }
    tr__slot_work(p, program->temp_bytes);
}

// ---- forward and recomputation

static bool has_program(tr_proof *p) {
    const tr_unit_program *unit = unit_of(p);
    bool there = true;
    switch (p->step->kind) {
    case TR_STEP_forward:
        there = !is_training(p) || !p->step->saves_nothing || unit->saves_nothing;
        break;
    case TR_STEP_recompute:
        there = is_training(p) && unit->recompute.instructions;
        break;
    case TR_STEP_track:
        there = is_training(p) && unit->track.count > 0;
        break;
    default:
        there = is_training(p) && tr__unit_has_backward(unit);
        break;
    }
    if (!there) {
        tr__proof_wrong(p, "has no program");
    }
    return there;
}

// The segments run one after the other, each on one micro-batch after the other: so
// floats are always added in one order.
static void check_turn(tr_proof *p, int64_t *done, int segment, int before) {
    int64_t *here = done_of(p, done, segment);
    if (*here != p->step->micro) {
        tr__proof_wrong(p, "comes when %lld micro-batches have been there",
                        (long long)*here);
    } else if (before >= 0 && *done_of(p, done, before) <= p->step->micro) {
        tr__proof_wrong(p, "comes before the segment that it follows");
    }
    (*here)++;
}

void tr__rule_forward(tr_proof *p) {
    if (!is_of_model(p) || !has_program(p)) {
        return;
    }
    const tr_plan_step *step = p->step;
    const tr_unit_program *unit = unit_of(p);
    tr_meaning input = step->unit > 0 ? input_of(p, step->unit) : (tr_meaning){0};
    tr_meaning saved = of_micro(p, TR_MEANS_SAVED, step->unit, 0), nothing = {0};
    check_turn(p, p->walked.forward, step->segment, step->segment - 1);
    tr__bytes_read(p, block(p, TR_SLOT_INPUT, unit->input_bytes), &input);
    tr__wave_name(p, TR_SLOT_WAVE);
    run_program(p);
    fill(p, block(p, TR_SLOT_OUTPUT, unit->output_bytes),
         of_micro(p, TR_MEANS_INPUT, step->unit + 1, 0), step->segment);
    if (step->saves_nothing && is_training(p)) { // keeps nothing, whatever it names
        tr_bytes bytes = block(p, TR_SLOT_SAVED, 0);
        tr__bytes_write(p, bytes, &nothing);
    } else if (unit->saved_bytes > 0) {
        bool kept = step->buffer[TR_SLOT_SAVED] >= 0 || is_training(p) ||
                    touches_of(p)->places >> TR_PLACE_SAVED & 1;
        fill(p, block(p, TR_SLOT_SAVED, kept ? unit->saved_bytes : 0), saved,
             step->segment);
    }
}

static tr_meaning saved_by(const tr_proof *p) {
    return of_micro(p, TR_MEANS_SAVED, p->step->unit, segments_of(p));
}

void tr__rule_recompute(tr_proof *p) {
    if (!is_of_model(p) || !has_program(p)) {
        return;
    }
    const tr_unit_program *unit = unit_of(p);
    tr_meaning input = p->step->unit > 0 ? input_of(p, p->step->unit) : (tr_meaning){0};
    tr_meaning saved = saved_by(p);
    if (p->walked.recomputed[p->step->unit]++ != p->step->micro ||
        *done_of(p, p->walked.forward, segments_of(p) - 1) <= p->step->micro) {
        tr__proof_wrong(p, "is out of its turn");
    }
    tr__bytes_read(p, block(p, TR_SLOT_INPUT, unit->input_bytes), &input);
    tr__wave_name(p, TR_SLOT_WAVE);
    run_program(p);
    tr__bytes_write(p, block(p, TR_SLOT_SAVED, unit->saved_bytes), &saved);
}

// ---- backward

// A gradient of a parameter: written by the first to make it, added to by the others.
static void make_gradient(tr_proof *p, const tr_touch *touch, int32_t param) {
    int32_t buffer = p->plan->bindings[p->step->binding].grad[touch->flat];
    int32_t flat = p->plan->units[p->step->unit].flats[touch->flat];
    tr_kept here = tr__kept_sums(p, flat);
    bool stays = buffer == here.buffer && !tr__plan_accumulates(p->plan);
    bool adds = adds_to(p, touch, tr__grad_bit(touch->flat));
    tr_meaning found,
        sum = {.kind = tr__plan_accumulates(p->plan) ? TR_MEANS_GRADIENT : TR_MEANS_SUM,
               .of = param,
               .version = p->version,
               .index = p->step->micro,
               .base = stays ? here.base : 0};
    tr_bytes bytes = {buffer, sum.base + touch->first, sum.base + touch->end};
    if (param >= 0 && p->plan->flats[flat].frozen) {
        tr__proof_wrong(p, "makes a gradient of %s, which is frozen",
                        p->plan->params[param].name);
        return;
    }
    if (param < 0 || buffer < 0 || (p->plan->buffers[buffer].sequence < 0 && !stays)) {
        tr__proof_wrong(p, "makes a gradient of no parameter, or in the wrong place");
        return;
    }
    tr__bytes_look(p, bytes, &found);
    bool begun =
        found.kind == sum.kind && found.of == param && found.version == p->version;
    if (begun != adds) {
        tr__proof_wrong(p,
                        adds ? "adds to the gradient of %s before anything is there"
                             : "overwrites the sum of the gradient of %s",
                        p->plan->params[param].name);
        return;
    }
    sum.terms = begun ? found.terms + 1 : 1;
    sum.sum = (begun ? found.sum : 0) +
              tr__contribution(p->step->unit, p->step->segment, p->step->micro);
    if (begun) {
        tr__bytes_change(p, bytes, &found, &sum);
    } else {
        tr__bytes_write(p, bytes, &sum);
    }
}

// The gradients of all parameters that the touch covers, of which `maker` makes the
// first. Returns the maker after them.
static size_t make_stacked(tr_proof *p, const tr_touch *touch, size_t maker) {
    tr_touch part = *touch;
    while (part.first < touch->end && p->status == TR_OK) {
        int32_t param = p->tables.makers[maker++].param;
        part.end = param < 0 ? touch->end : tr__param_end(&p->plan->params[param]);
        make_gradient(p, &part, param);
        part.first = part.end;
    }
    return maker;
}

static void make_gradients(tr_proof *p) {
    const tr_touches *touches = touches_of(p);
    const tr_proof_tables *t = &p->tables;
    size_t maker = t->of_segment[t->segments[p->step->unit] + p->step->segment];
    for (size_t i = 0; i < touches->count && p->status == TR_OK; i++) {
        const tr_touch *touch = &touches->items[i];
        if (touch->place == TR_PLACE_PARAM_GRAD && touch->result) {
            maker = make_stacked(p, touch, maker);
        }
    }
}

// The gradient of what the unit hands on becomes that of what it is given, in the same
// memory or in another.
static void pass_gradient(tr_proof *p, int done) {
    const tr_unit_program *unit = unit_of(p);
    const tr_plan_step *step = p->step;
    int32_t before = step->buffer[TR_SLOT_INPUT_GRAD];
    int32_t after = step->buffer[TR_SLOT_OUTPUT_GRAD];
    tr_meaning mine = of_micro(p, TR_MEANS_INPUT_GRADIENT, step->unit, 0);
    tr_meaning next = {0}, nothing = {0};
    tr_bytes out = block(p, TR_SLOT_OUTPUT_GRAD, unit->output_grad_bytes);
    tr_bytes in = block(p, TR_SLOT_INPUT_GRAD, unit->input_grad_bytes);
    if (unit->output_grad_bytes > 0) {
        next = input_gradient_of(p, step->unit + 1);
    }
    if (before >= 0 && (before == after) != unit->derived.in_place) {
        tr__proof_wrong(p, "hands a gradient on in the wrong buffer");
    } else if (unit->derived.in_place) {
        if (done == 0) {
            tr__bytes_read(p, out, &next);
        }
        fill(p, in, mine, done);
    } else {
        bool last = step->segment == 0;
        tr__bytes_change(p, out, &next, last ? &nothing : &next);
        fill(p, in, mine, done);
    }
}

void tr__rule_backward(tr_proof *p) {
    if (!is_of_model(p) || !has_program(p)) {
        return;
    }
    const tr_plan_step *step = p->step;
    const tr_unit_program *unit = unit_of(p);
    int last = unit->segments - 1, done = last - step->segment;
    tr_meaning input = step->unit > 0 ? input_of(p, step->unit) : (tr_meaning){0};
    tr_meaning saved = saved_by(p);
    uint32_t places = touches_of(p)->places;
    check_turn(p, p->walked.backward, step->segment,
               step->segment < last ? step->segment + 1 : -1);
    if (*done_of(p, p->walked.forward, last) <= step->micro) {
        tr__proof_wrong(p, "comes before its forward");
    }
    bool reads_input = step->buffer[TR_SLOT_INPUT] >= 0 || places >> TR_PLACE_INPUT & 1;
    bool reads_output =
        step->buffer[TR_SLOT_OUTPUT] >= 0 || places >> TR_PLACE_OUTPUT & 1;
    tr__bytes_read(p, block(p, TR_SLOT_INPUT, reads_input ? unit->input_bytes : 0),
                   &input);
    if (reads_output) {
        tr_meaning output = input_of(p, step->unit + 1);
        tr__bytes_read(p, block(p, TR_SLOT_OUTPUT, unit->output_bytes), &output);
    }
    tr__bytes_read(p, block(p, TR_SLOT_SAVED, unit->saved_bytes), &saved);
    tr__wave_name(p, TR_SLOT_WAVE);
    tr__wave_name(p, TR_SLOT_WAVE_GRAD);
    run_program(p);
    make_gradients(p);
    pass_gradient(p, done);
}

// ---- states of the model

void tr__rule_track(tr_proof *p) {
    if (is_of_model(p) && has_program(p)) {
        tr__wave_name(p, TR_SLOT_WAVE);
        run_program(p);
    }
}

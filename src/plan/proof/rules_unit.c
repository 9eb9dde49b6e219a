// Rules of the steps that work on one micro-batch in one unit.
#include "plan/proof/proof.h"

static const tr_unit_program *unit_of(const tr_proof *p) {
    return p->plan->units[p->step->unit].program;
}

static const tr_program *program_of(const tr_proof *p) {
    return p->step->payload.program;
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

// What the forwards of this sequence are, where they keep what is asked for.
static tr_variant forwards_of(const tr_proof *p) {
    return p->kind == TR_SEQUENCE_INFERENCE  ? TR_VARIANT_INFERENCE
           : p->kind == TR_SEQUENCE_EVALUATE ? TR_VARIANT_EVALUATE
                                             : TR_VARIANT_FORWARD;
}

static uint32_t at(tr_place place) {
    return UINT32_C(1) << place;
}

// How many of the unit's pieces [first, end) of a role work in one of the places
// (bits).
static int32_t count_in(const tr_proof *p, int32_t unit, tr_variant role, int first,
                        int end, uint32_t places) {
    const tr_unit_program *of = p->plan->units[unit].program;
    int32_t count = 0;
    for (int s = first; s < end; s++) {
        const tr_touches *touches =
            tr__tables_touches(&p->tables, unit, tr__unit_piece(of, role, s));
        count += (touches->places & places) != 0;
    }
    return count;
}

static int segments_of_unit(const tr_proof *p, int32_t unit) {
    return p->kind == TR_SEQUENCE_INFERENCE ? 1
                                            : p->plan->units[unit].program->segments;
}

// The unit's inputs, complete: all segments of the unit before that add to it have done
// so.
static tr_meaning input_of(const tr_proof *p, int32_t unit) {
    int32_t before = unit - 1;
    return of_micro(p, TR_MEANS_INPUT, unit,
                    count_in(p, before, forwards_of(p), 0, segments_of_unit(p, before),
                             at(TR_PLACE_OUTPUT)));
}

// Where a unit's backward makes the gradient of its input: a unit that hands a gradient
// on in the same memory makes it where it has found that of its output.
static uint32_t gradient_places(const tr_unit_program *unit) {
    return at(TR_PLACE_INPUT_GRAD) |
           (unit->derived.in_place ? at(TR_PLACE_OUTPUT_GRAD) : 0);
}

static tr_meaning input_gradient_of(const tr_proof *p, int32_t unit) {
    const tr_unit_program *program = p->plan->units[unit].program;
    return of_micro(p, TR_MEANS_INPUT_GRADIENT, unit,
                    count_in(p, unit, TR_VARIANT_BACKWARD, 0, program->segments,
                             gradient_places(program)));
}

// The block that the step's program has at a place, of so many bytes. None, where it
// does not work there.
static tr_bytes block(tr_proof *p, tr_place place, int64_t bytes) {
    static const tr_operand_role roles[TR_PLACE_COUNT] = {
        [TR_PLACE_INPUT] = TR_OPERAND_INPUT,
        [TR_PLACE_OUTPUT] = TR_OPERAND_OUTPUT,
        [TR_PLACE_INPUT_GRAD] = TR_OPERAND_INPUT_GRAD,
        [TR_PLACE_OUTPUT_GRAD] = TR_OPERAND_OUTPUT_GRAD,
        [TR_PLACE_SAVED] = TR_OPERAND_SAVED,
        [TR_PLACE_PACKED] = TR_OPERAND_PACKED,
        [TR_PLACE_PACKED_BACKWARD] = TR_OPERAND_PACKED_BACKWARD,
    };
    bool there = tr__step_block(p->plan, p->step, place, 0, false);
    return there ? tr__role_bytes(p, roles[place], bytes, TR_SPACE_DEVICE)
                 : (tr_bytes){-1, 0, 0};
}

// Where the program has the unit's flat buffer.
static int32_t flat_buffer(const tr_proof *p, const tr_touch *touch) {
    return tr__step_operand(p->plan, p->step, (size_t)touch->block)->buffer;
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

static bool adds_to(const tr_proof *p, const tr_touch *touch) {
    const tr_step_operand *block =
        tr__step_operand(p->plan, p->step, (size_t)touch->block);
    return touch->adds || (touch->adds_later && block->mode != TR_ACCESS_WRITE);
}

static void read_params(tr_proof *p, const tr_touch *touch) {
    int32_t buffer = flat_buffer(p, touch);
    int32_t flat = p->plan->units[p->step->unit].flats[touch->flat];
    tr_kept here = tr__kept_params(p, flat);
    tr_meaning want = here.means;
    want.base = buffer == here.buffer ? here.base : 0; // or all of it is brought
    bool frozen = p->plan->flats[flat].frozen;
    if (buffer != here.buffer && p->plan->buffers[buffer].sequence < 0) {
        tr__proof_wrong(p, "reads parameters of %s that nobody has brought",
                        p->plan->flats[flat].name);
    }
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
    if (touch->result && program_of(p)->variant == TR_VARIANT_TRACK) {
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
    const tr_meaning packed = {.kind = TR_MEANS_PACKED,
                               .of = p->step->unit,
                               .index = backward,
                               .version = p->version};
    tr_bytes bytes = block(p, touch->place, unit_of(p)->packed_bytes[backward]);
    bytes = (tr_bytes){bytes.buffer, touch->first, touch->end};
    if (bytes.buffer >= 0 && adds_to(p, touch)) {
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
    case TR_PLACE_WAVE_GRAD:
        tr__wave_touch(p, touch, adds_to(p, touch));
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
    return tr__tables_touches(&p->tables, p->step->unit, program_of(p));
}

// Where the step's micro-batch has its share of what lives always. -1: it lies
// anywhere.
static tr_bytes share_of(const tr_proof *p, tr_place place) {
    const tr_plan *plan = p->plan;
    const tr_plan_unit *unit = &plan->units[p->step->unit];
    int64_t sums = plan->statistics.sums + p->step->micro * TR_SUMS;
    switch (place) {
    case TR_PLACE_DATA:
        return data_slot(p);
    case TR_PLACE_SUMS:
        return is_training(p) ? tr__statistics_bytes(p, sums, TR_SUMS)
                              : (tr_bytes){plan->sums, 0, 0};
    case TR_PLACE_LOGITS:
        return (tr_bytes){plan->logits, 0, 0};
    case TR_PLACE_STATE:
        return (tr_bytes){unit->states, 0, 0};
    case TR_PLACE_CACHE:
        return (tr_bytes){unit->cache, 0, 0};
    default:
        return (tr_bytes){-1, 0, 0};
    }
}

// Every block begins where the micro-batch has its share of it.
static void check_blocks(tr_proof *p, const tr_program *program) {
    bool apart = p->plan->request.reproducible && is_training(p);
    for (size_t i = 0; i < program->block_count; i++) {
        const tr_program_block *block = &program->blocks[i];
        const tr_step_operand *at = tr__step_operand(p->plan, p->step, i);
        tr_bytes share = share_of(p, block->place);
        int64_t part =
            block->part && apart ? p->step->micro * unit_of(p)->wave_bytes : 0;
        bool kept = share.buffer >= 0;
        if (at->first != (kept ? share.first : part) ||
            (kept && at->buffer != share.buffer)) {
            tr__proof_wrong(p, "has its block %zu in the wrong place", i);
        }
    }
}

// All but blocks and gradients of parameters. Its micro-batch is at work meanwhile.
static void run_program(tr_proof *p) {
    const tr_program *program = program_of(p);
    const tr_touches *touches = touches_of(p);
    const tr_meaning data = data_of(p);
    check_blocks(p, program);
    if (touches->places >> TR_PLACE_DATA & 1) {
        tr__bytes_read(p, data_slot(p), &data);
    } else if (program->variant != TR_VARIANT_TRACK) {
        tr__bytes_expect(p, data_slot(p), &data);
    }
    for (int results = 0; results < 2; results++) { // what it reads comes first
        for (size_t i = 0; i < touches->count && p->status == TR_OK; i++) {
            if (touches->items[i].result == results) {
                touch(p, &touches->items[i]);
            }
        }
    }
    tr__role_work(p, program->temp_bytes);
}

// ---- forward and recomputation

// Is it the unit's program of the step's segment, and of this sequence?
static bool runs_own(const tr_proof *p) {
    const tr_unit_program *unit = unit_of(p);
    const tr_program *program = program_of(p);
    tr_variant role = program->variant;
    bool whole = role == TR_VARIANT_RECOMPUTE || role == TR_VARIANT_TRACK;
    bool forward = role == TR_VARIANT_FORWARD || role == TR_VARIANT_EVALUATE ||
                   role == TR_VARIANT_INFERENCE;
    bool back = role != TR_VARIANT_BACKWARD || tr__unit_has_backward(unit);
    return program == tr__unit_piece(unit, role, whole ? 0 : p->step->segment) &&
           back && (forward ? role == forwards_of(p) : is_training(p));
}

static bool has_program(tr_proof *p) {
    bool own =
        runs_own(p) && p->step->payload.operand_count == program_of(p)->block_count;
    if (!own) {
        tr__proof_wrong(p, "runs another program than its own");
    }
    return own && p->status == TR_OK;
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

// How many of the unit's pieces [first, end) of a role save something.
static int32_t count_saving(const tr_proof *p, int32_t unit, tr_variant role, int first,
                            int end) {
    const tr_unit_program *of = p->plan->units[unit].program;
    int32_t count = 0;
    for (int s = first; s < end; s++) {
        const tr_touches *touches =
            tr__tables_touches(&p->tables, unit, tr__unit_piece(of, role, s));
        count += touches->results >> TR_PLACE_SAVED & 1;
    }
    return count;
}

static tr_meaning saved_by(const tr_proof *p) {
    int32_t unit = p->step->unit;
    return of_micro(p, TR_MEANS_SAVED, unit,
                    count_saving(p, unit, TR_VARIANT_FORWARD, 0,
                                 p->plan->units[unit].program->segments));
}

// A segment adds to what the unit saves, or reads what those before it have saved.
static void save(tr_proof *p) {
    const tr_plan_step *step = p->step;
    tr_variant role = forwards_of(p);
    tr_bytes saved = block(p, TR_PLACE_SAVED, unit_of(p)->saved_bytes);
    int32_t done = count_saving(p, step->unit, role, 0, step->segment);
    tr_meaning before = of_micro(p, TR_MEANS_SAVED, step->unit, done);
    if (count_saving(p, step->unit, role, step->segment, step->segment + 1) > 0) {
        fill(p, saved, before, done);
    } else {
        tr__bytes_read(p, saved, &before);
    }
}

void tr__rule_forward(tr_proof *p) {
    if (!is_of_model(p) || !has_program(p)) {
        return;
    }
    const tr_plan_step *step = p->step;
    const tr_unit_program *unit = unit_of(p);
    tr_meaning input = step->unit > 0 ? input_of(p, step->unit) : (tr_meaning){0};
    tr_variant forwards = forwards_of(p);
    check_turn(p, p->walked.forward, step->segment, step->segment - 1);
    tr__bytes_read(p, block(p, TR_PLACE_INPUT, unit->input_bytes), &input);
    tr__wave_name(p, false);
    run_program(p);
    fill(p, block(p, TR_PLACE_OUTPUT, unit->output_bytes),
         of_micro(p, TR_MEANS_INPUT, step->unit + 1, 0),
         count_in(p, step->unit, forwards, 0, step->segment, at(TR_PLACE_OUTPUT)));
    save(p);
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
    tr__bytes_read(p, block(p, TR_PLACE_INPUT, unit->input_bytes), &input);
    tr__wave_name(p, false);
    run_program(p);
    tr__bytes_write(p, block(p, TR_PLACE_SAVED, unit->saved_bytes), &saved);
}

// ---- backward

// A gradient of a parameter: written by the first to make it, added to by the others.
static void make_gradient(tr_proof *p, const tr_touch *touch, int32_t param) {
    int32_t buffer = flat_buffer(p, touch);
    int32_t flat = p->plan->units[p->step->unit].flats[touch->flat];
    tr_kept here = tr__kept_sums(p, flat);
    bool stays = buffer == here.buffer && !tr__plan_accumulates(p->plan);
    bool adds = adds_to(p, touch);
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
static void pass_gradient(tr_proof *p) {
    const tr_unit_program *unit = unit_of(p);
    const tr_plan_step *step = p->step;
    tr_variant backward = TR_VARIANT_BACKWARD;
    const tr_meaning nothing = {0};
    tr_meaning mine = of_micro(p, TR_MEANS_INPUT_GRADIENT, step->unit, 0), next = {0};
    tr_bytes out = block(p, TR_PLACE_OUTPUT_GRAD, unit->output_grad_bytes);
    tr_bytes in = block(p, TR_PLACE_INPUT_GRAD, unit->input_grad_bytes);
    int done = count_in(p, step->unit, backward, step->segment + 1, unit->segments,
                        gradient_places(unit));
    bool last = count_in(p, step->unit, backward, 0, step->segment,
                         at(TR_PLACE_OUTPUT_GRAD)) == 0;
    bool both = in.buffer >= 0 && out.buffer >= 0;
    if (unit->output_grad_bytes > 0) {
        next = input_gradient_of(p, step->unit + 1);
    }
    if (both && (in.buffer == out.buffer) != unit->derived.in_place) {
        tr__proof_wrong(p, "hands a gradient on in the wrong buffer");
    } else if (!unit->derived.in_place) {
        tr__bytes_change(p, out, &next, last ? &nothing : &next);
    } else if (done == 0) {
        tr__bytes_read(p, out, &next);
    }
    fill(p, unit->derived.in_place && in.buffer < 0 ? out : in, mine, done);
}

void tr__rule_backward(tr_proof *p) {
    if (!is_of_model(p) || !has_program(p)) {
        return;
    }
    const tr_plan_step *step = p->step;
    const tr_unit_program *unit = unit_of(p);
    int last = unit->segments - 1;
    tr_meaning input = step->unit > 0 ? input_of(p, step->unit) : (tr_meaning){0};
    tr_meaning saved = saved_by(p);
    check_turn(p, p->walked.backward, step->segment,
               step->segment < last ? step->segment + 1 : -1);
    if (*done_of(p, p->walked.forward, last) <= step->micro) {
        tr__proof_wrong(p, "comes before its forward");
    }
    tr__bytes_read(p, block(p, TR_PLACE_INPUT, unit->input_bytes), &input);
    tr_bytes outputs = block(p, TR_PLACE_OUTPUT, unit->output_bytes);
    if (outputs.buffer >= 0) {
        tr_meaning output = input_of(p, step->unit + 1);
        tr__bytes_read(p, outputs, &output);
    }
    tr_bytes kept = block(p, TR_PLACE_SAVED, unit->saved_bytes);
    if (unit->segments > 1) { // which hand each other gradients in it
        tr__bytes_change(p, kept, &saved, &saved);
    } else {
        tr__bytes_read(p, kept, &saved);
    }
    tr__wave_name(p, false);
    tr__wave_name(p, true);
    run_program(p);
    make_gradients(p);
    pass_gradient(p);
}

// ---- states of the model

void tr__rule_track(tr_proof *p) {
    if (is_of_model(p) && has_program(p)) {
        tr__wave_name(p, false);
        run_program(p);
    }
}

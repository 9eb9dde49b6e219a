// What programs of units touch: for each of them the same, whatever the step that runs
// them is.
#include "plan/proof/unit.h"

tr_bytes tr__data_slot(const tr_proof *p) {
    int ring = tr__proof_trains(p) ? 0 : 1;
    int64_t at = p->step->micro % p->plan->slots[ring] * p->plan->slot_bytes;
    return (tr_bytes){p->plan->data_ring[ring], at, at + p->plan->slot_bytes};
}

tr_meaning tr__data_meaning(const tr_proof *p) {
    return (tr_meaning){.kind = TR_MEANS_DATA, .index = p->step->micro};
}

static int segments_of_unit(const tr_proof *p, int32_t unit) {
    return p->kind == TR_SEQUENCE_INFERENCE ? 1
                                            : p->plan->units[unit].program->segments;
}

// The unit's inputs, complete: all segments of the unit before that add to it have done
// so.
tr_meaning tr__input_meaning(const tr_proof *p, int32_t unit) {
    int32_t before = unit - 1;
    return tr__micro_meaning(p, TR_MEANS_INPUT, unit,
                             tr__segments_in(p, before, tr__proof_forwards(p), 0,
                                             segments_of_unit(p, before),
                                             tr__place_bit(TR_PLACE_OUTPUT)));
}

// Where a unit's backward makes the gradient of its input: a unit that hands a gradient
// on in the same memory makes it where it has found that of its output.
uint32_t tr__gradient_places(const tr_unit_program *unit) {
    return tr__place_bit(TR_PLACE_INPUT_GRAD) |
           (unit->derived.in_place ? tr__place_bit(TR_PLACE_OUTPUT_GRAD) : 0);
}

tr_meaning tr__input_gradient_meaning(const tr_proof *p, int32_t unit) {
    if (unit == p->plan->unit_count) { // the caller's, which comes whole
        return tr__micro_meaning(p, TR_MEANS_INPUT_GRADIENT, unit, 1);
    }
    const tr_unit_program *program = p->plan->units[unit].program;
    return tr__micro_meaning(p, TR_MEANS_INPUT_GRADIENT, unit,
                             tr__segments_in(p, unit, TR_VARIANT_BACKWARD, 0,
                                             program->segments,
                                             tr__gradient_places(program)));
}

// The block that the step's program has at a place, of so many bytes. None, where it
// does not work there.
tr_bytes tr__unit_block(tr_proof *p, tr_place place, int64_t bytes) {
    static const tr_operand_role roles[TR_PLACE_COUNT] = {
        [TR_PLACE_INPUT] = TR_OPERAND_INPUT,
        [TR_PLACE_OUTPUT] = TR_OPERAND_OUTPUT,
        [TR_PLACE_INPUT_GRAD] = TR_OPERAND_INPUT_GRAD,
        [TR_PLACE_OUTPUT_GRAD] = TR_OPERAND_OUTPUT_GRAD,
        [TR_PLACE_SAVED] = TR_OPERAND_SAVED,
        [TR_PLACE_HELD] = TR_OPERAND_HELD,
        [TR_PLACE_CARRIED] = TR_OPERAND_CARRIED,
        [TR_PLACE_PACKED] = TR_OPERAND_PACKED,
        [TR_PLACE_PACKED_BACKWARD] = TR_OPERAND_PACKED_BACKWARD,
    };
    bool there = tr__step_block(p->plan, p->step, place, 0, false);
    return there ? tr__role_bytes(p, roles[place], bytes, TR_SPACE_DEVICE)
                 : (tr_bytes){-1, 0, 0};
}

// Where the program has the unit's flat buffer.
int32_t tr__touch_buffer(const tr_proof *p, const tr_touch *touch) {
    return tr__step_operand(p->plan, p->step, (size_t)touch->block)->buffer;
}

bool tr__touch_adds(const tr_proof *p, const tr_touch *touch) {
    const tr_step_operand *block =
        tr__step_operand(p->plan, p->step, (size_t)touch->block);
    return touch->adds || (touch->adds_later && block->mode != TR_ACCESS_WRITE);
}

static void read_params(tr_proof *p, const tr_touch *touch) {
    int32_t buffer = tr__touch_buffer(p, touch);
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

tr_bytes tr__evaluated_sums(const tr_proof *p, int64_t micro) {
    const int64_t bytes = TR_SUMS * (int64_t)sizeof(double);
    return (tr_bytes){p->plan->sums, micro * bytes, (micro + 1) * bytes};
}

// Where the step's micro-batch has the sums of its losses.
static tr_bytes sums_of(const tr_proof *p) {
    int64_t first = p->plan->statistics.sums + p->step->micro * TR_SUMS;
    return tr__proof_trains(p) ? tr__statistics_bytes(p, first, TR_SUMS)
                               : tr__evaluated_sums(p, p->step->micro);
}

static void touch_loss(tr_proof *p, const tr_touch *touch) {
    tr_bytes bytes = sums_of(p);
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
    if (touch->result && tr__proof_program(p)->variant == TR_VARIANT_TRACK) {
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
    tr_bytes bytes =
        tr__unit_block(p, touch->place, tr__proof_unit(p)->packed_bytes[backward]);
    bytes = (tr_bytes){bytes.buffer, touch->first, touch->end};
    if (bytes.buffer >= 0 && tr__touch_adds(p, touch)) {
        tr__bytes_read(p, bytes, &packed);
    } else if (bytes.buffer >= 0) {
        tr__bytes_write(p, bytes, &packed);
    }
}

// A tensor, as the piece of the unit leaves it.
static tr_meaning carried_meaning(const tr_proof *p, const tr_program *piece,
                                  tr_value value) {
    const tr_unit_program *unit = tr__proof_unit(p);
    tr_piece_range pieces = tr__segment_pieces(unit, piece->variant, piece->segment);
    return (tr_meaning){.kind = TR_MEANS_CARRIED,
                        .of = p->step->unit,
                        .index = p->step->micro,
                        .terms = unit->first_of[piece->variant] + pieces.first,
                        .version = value};
}

// Exactly what it reads and leaves: ranks may be exchanging the rest meanwhile. That an
// exchange is over follows from the clock.
static void touch_carried(tr_proof *p, const tr_touch *touch) {
    const tr_program *program = tr__proof_program(p);
    tr_meaning carried = carried_meaning(p, program, touch->value);
    tr_bytes bytes = tr__unit_block(p, TR_PLACE_CARRIED, program->carried_bytes);
    bytes = (tr_bytes){bytes.buffer, touch->first, touch->end};
    if (!touch->result) {
        tr__bytes_read(p, bytes, &carried);
    } else if (touch->adds) {
        tr__bytes_change(p, bytes, &carried, &carried);
    } else {
        tr__bytes_write(p, bytes, &carried);
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
        tr__wave_touch(p, touch, tr__touch_adds(p, touch));
        break;
    case TR_PLACE_CARRIED:
        touch_carried(p, touch);
        break;
    case TR_PLACE_SUMS:
        touch_loss(p, touch);
        break;
    case TR_PLACE_FIRST_BAD:
        tr__statistics_note(p, TR_STATISTICS_FIRST_BAD);
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
    return tr__tables_touches(&p->tables, p->step->unit, tr__proof_program(p));
}

// Where the step's micro-batch has its share of what lives always. -1: it lies
// anywhere.
static tr_bytes share_of(const tr_proof *p, tr_place place) {
    const tr_plan *plan = p->plan;
    const tr_plan_unit *unit = &plan->units[p->step->unit];
    switch (place) {
    case TR_PLACE_DATA:
        return tr__data_slot(p);
    case TR_PLACE_SUMS:
        return sums_of(p);
    case TR_PLACE_FIRST_BAD:
        return tr__statistics_bytes(p, TR_STATISTICS_FIRST_BAD, 1);
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
    bool apart = p->plan->request.reproducible && tr__proof_trains(p);
    for (size_t i = 0; i < program->block_count; i++) {
        const tr_program_block *block = &program->blocks[i];
        const tr_step_operand *at = tr__step_operand(p->plan, p->step, i);
        tr_bytes share = share_of(p, block->place);
        int64_t part =
            block->part && apart ? p->step->micro * tr__proof_unit(p)->wave_bytes : 0;
        bool kept = share.buffer >= 0;
        if (at->first != (kept ? share.first : part) ||
            (kept && at->buffer != share.buffer)) {
            tr__proof_wrong(p, "has its block %zu in the wrong place", i);
        }
    }
}

// All but blocks and gradients of parameters. Its micro-batch is at work meanwhile.
void tr__unit_run(tr_proof *p) {
    const tr_program *program = tr__proof_program(p);
    const tr_touches *touches = touches_of(p);
    const tr_meaning data = tr__data_meaning(p);
    check_blocks(p, program);
    if (touches->places >> TR_PLACE_DATA & 1) {
        tr__bytes_read(p, tr__data_slot(p), &data);
    } else if (program->variant != TR_VARIANT_TRACK && !program->weights) {
        tr__bytes_expect(p, tr__data_slot(p), &data);
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

// Is it the unit's program of the step's segment, and of this sequence?
static bool runs_own(const tr_proof *p) {
    const tr_unit_program *unit = tr__proof_unit(p);
    const tr_program *program = tr__proof_program(p);
    tr_variant role = program->variant;
    bool whole = role == TR_VARIANT_RECOMPUTE || role == TR_VARIANT_TRACK;
    bool forward = role == TR_VARIANT_FORWARD || role == TR_VARIANT_EVALUATE ||
                   role == TR_VARIANT_INFERENCE;
    bool back = role != TR_VARIANT_BACKWARD || tr__unit_has_backward(unit);
    return program == tr__unit_piece(unit, role, program->piece) &&
           !program->exchange && program->segment == (whole ? 0 : p->step->segment) &&
           back && (forward ? role == tr__proof_forwards(p) : tr__proof_trains(p));
}

bool tr__unit_has_program(tr_proof *p) {
    bool own = runs_own(p) &&
               p->step->payload.operand_count == tr__proof_program(p)->block_count;
    if (!own) {
        tr__proof_wrong(p, "runs another program than its own");
        return false;
    }
    tr__piece_turn(p);
    return own && p->status == TR_OK;
}

// The segments run one after the other, each on one micro-batch after the other: so
// floats are always added in one order.
void tr__unit_turn(tr_proof *p, int64_t *done, int segment, int before) {
    const tr_program *program = tr__proof_program(p);
    int64_t *here = tr__proof_done(p, done, segment);
    if (!tr__piece_is_next(p, *here)) {
        tr__proof_wrong(p, "comes when %lld micro-batches have been there",
                        (long long)*here);
    } else if (before >= 0 && *tr__proof_done(p, done, before) <= p->step->micro) {
        tr__proof_wrong(p, "comes before the segment that it follows");
    }
    *here += program->ends;
}

tr_meaning tr__saved_meaning(const tr_proof *p) {
    int32_t unit = p->step->unit;
    return tr__micro_meaning(
        p, TR_MEANS_SAVED, unit,
        tr__segments_leaving(p, unit, TR_VARIANT_FORWARD, 0,
                             p->plan->units[unit].program->segments,
                             tr__place_bit(TR_PLACE_SAVED)));
}

// The rule of backwards: gradients of parameters, and of what passes between units.
#include "plan/proof/unit.h"

// A gradient of a parameter: written by the first to make it, added to by the others.
static void make_gradient(tr_proof *p, const tr_touch *touch, int32_t param) {
    int32_t buffer = tr__touch_buffer(p, touch);
    int32_t flat = p->plan->units[p->step->unit].flats[touch->flat];
    tr_kept here = tr__kept_sums(p, flat);
    bool stays = buffer == here.buffer && !tr__plan_accumulates(p->plan);
    bool adds = tr__touch_adds(p, touch);
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

// Behind a gradient there are zeros, and its kernel leaves zeros there.
static void leave_zeros(tr_proof *p, const tr_touch *touch) {
    const tr_meaning zeros = {.kind = TR_MEANS_ZEROS};
    int32_t buffer = tr__touch_buffer(p, touch);
    tr_kept here = tr__kept_sums(p, p->plan->units[p->step->unit].flats[touch->flat]);
    int64_t base =
        buffer == here.buffer && !tr__plan_accumulates(p->plan) ? here.base : 0;
    tr__bytes_change(p, (tr_bytes){buffer, base + touch->first, base + touch->end},
                     &zeros, &zeros);
}

static void make_gradients(tr_proof *p) {
    const tr_touches *touches =
        tr__tables_touches(&p->tables, p->step->unit, tr__proof_program(p));
    const tr_proof_tables *t = &p->tables;
    size_t maker = t->of_segment[t->segments[p->step->unit] + p->step->segment];
    while (maker < t->maker_count &&
           t->makers[maker].piece < tr__proof_program(p)->piece) {
        maker++; // of the segment's pieces before
    }
    for (size_t i = 0; i < touches->count && p->status == TR_OK; i++) {
        const tr_touch *touch = &touches->items[i];
        if (touch->place == TR_PLACE_PARAM_GRAD && touch->padding) {
            leave_zeros(p, touch);
        } else if (touch->place == TR_PLACE_PARAM_GRAD && touch->result) {
            maker = make_stacked(p, touch, maker);
        }
    }
}

// The gradient of what the unit hands on becomes that of what it is given, in the same
// memory or in another.
static void pass_gradient(tr_proof *p) {
    const tr_unit_program *unit = tr__proof_unit(p);
    const tr_plan_step *step = p->step;
    const tr_meaning nothing = {0};
    tr_meaning mine = tr__micro_meaning(p, TR_MEANS_INPUT_GRADIENT, step->unit, 0),
               next = {0};
    tr_bytes out = tr__unit_block(p, TR_PLACE_OUTPUT_GRAD, unit->output_grad_bytes);
    tr_bytes in = tr__unit_block(p, TR_PLACE_INPUT_GRAD, unit->input_grad_bytes);
    tr_filling made =
        tr__unit_filling(p, TR_VARIANT_BACKWARD, tr__gradient_places(unit), false);
    tr_filling read = tr__unit_filling(p, TR_VARIANT_BACKWARD,
                                       tr__place_bit(TR_PLACE_OUTPUT_GRAD), false);
    bool both = in.buffer >= 0 && out.buffer >= 0;
    if (unit->output_grad_bytes > 0) {
        next = tr__input_gradient_meaning(p, step->unit + 1);
    }
    if (both && (in.buffer == out.buffer) != unit->derived.in_place) {
        tr__proof_wrong(p, "hands a gradient on in the wrong buffer");
    } else if (!unit->derived.in_place) {
        tr__bytes_change(p, out, &next, read.last ? &nothing : &next);
    } else if (made.segments == 0 && made.pieces == 0) {
        tr__bytes_read(p, out, &next);
    }
    tr__unit_fill(p, unit->derived.in_place && in.buffer < 0 ? out : in, mine, &made);
}

// What a backward keeps for the gradients of weights that come later.
static void hold_for_weights(tr_proof *p) {
    tr_filling at =
        tr__unit_filling(p, TR_VARIANT_BACKWARD, tr__place_bit(TR_PLACE_HELD), true);
    tr_bytes held = tr__unit_block(p, TR_PLACE_HELD, tr__proof_unit(p)->held_bytes);
    tr_meaning all = tr__micro_meaning(p, TR_MEANS_HELD, p->step->unit, 0);
    if (at.counts) {
        tr__unit_fill(p, held, all, &at);
    } else {
        tr_meaning before = tr__unit_filled(all, &at);
        tr__bytes_read(p, held, &before);
    }
}

static void read_forward(tr_proof *p) {
    const tr_unit_program *unit = tr__proof_unit(p);
    int32_t at = p->step->unit;
    tr_meaning input = at > 0 ? tr__input_meaning(p, at) : (tr_meaning){0};
    tr_meaning saved = tr__saved_meaning(p);
    tr__bytes_read(p, tr__unit_block(p, TR_PLACE_INPUT, unit->input_bytes), &input);
    tr_bytes outputs = tr__unit_block(p, TR_PLACE_OUTPUT, unit->output_bytes);
    if (outputs.buffer >= 0) {
        tr_meaning output = tr__input_meaning(p, at + 1);
        tr__bytes_read(p, outputs, &output);
    }
    tr_bytes kept = tr__unit_block(p, TR_PLACE_SAVED, unit->saved_bytes);
    if (unit->segments > 1) { // which hand each other gradients in it
        tr__bytes_change(p, kept, &saved, &saved);
    } else {
        tr__bytes_read(p, kept, &saved);
    }
}

// Gradients of weights that come later: behind the unit's backward of the micro-batch,
// in the order of micro-batches.
static void make_weights(tr_proof *p) {
    const tr_plan_step *step = p->step;
    const tr_unit_program *unit = tr__proof_unit(p);
    const tr_meaning nothing = {0};
    tr_meaning held =
        tr__micro_meaning(p, TR_MEANS_HELD, step->unit,
                          tr__segments_leaving(p, step->unit, TR_VARIANT_BACKWARD, 0, 1,
                                               tr__place_bit(TR_PLACE_HELD)));
    int64_t *done = &p->walked.weights[step->unit];
    if (*done != step->micro ||
        *tr__proof_done(p, p->walked.backward, 0) <= step->micro) {
        tr__proof_wrong(p, "is out of its turn");
    }
    (*done)++;
    tr_bytes out = tr__unit_block(p, TR_PLACE_OUTPUT_GRAD, unit->output_grad_bytes);
    if (out.buffer >= 0) {
        tr_meaning next = tr__input_gradient_meaning(p, step->unit + 1);
        tr__bytes_change(p, out, &next, &nothing);
    }
    tr__bytes_change(p, tr__unit_block(p, TR_PLACE_HELD, unit->held_bytes), &held,
                     &nothing);
    read_forward(p);
    tr__unit_run(p);
    make_gradients(p);
}

static void go_back(tr_proof *p) {
    const tr_plan_step *step = p->step;
    int last = tr__proof_unit(p)->segments - 1;
    tr__unit_turn(p, p->walked.backward, step->segment,
                  step->segment < last ? step->segment + 1 : -1);
    if (*tr__proof_done(p, p->walked.forward, last) <= step->micro) {
        tr__proof_wrong(p, "comes before its forward");
    }
    read_forward(p);
    tr__wave_name(p, false);
    tr__wave_name(p, true);
    tr__unit_run(p);
    make_gradients(p);
    pass_gradient(p);
    hold_for_weights(p);
}

void tr__rule_backward(tr_proof *p) {
    if (!tr__unit_is_of_model(p) || !tr__unit_has_program(p)) {
        return;
    }
    if (tr__proof_program(p)->weights) {
        make_weights(p);
    } else {
        go_back(p);
    }
}

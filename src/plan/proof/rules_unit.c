// Rules of the steps that work on one micro-batch in one unit, but for the backward.
#include "plan/proof/unit.h"

// ---- data

// A caller who computes the loss brings a micro-batch's data when he has had the
// outputs of those before, and the walk waits for him.
static bool is_brought(const tr_proof *p) {
    bool asks = p->plan->hands_out && tr__plan_runs(p->plan, p->plan->unit_count - 1) &&
                !p->stopped;
    return !asks || p->walked.handed == p->step->micro;
}

// The reading thread fills the slots in their order, round after round.
void tr__rule_load(tr_proof *p) {
    const tr_meaning nothing = {0}, data = tr__data_meaning(p);
    if (!is_brought(p)) {
        tr__proof_wrong(p, "waits for data of a caller who waits for outputs");
        return;
    }
    if (p->step->micro != p->walked.loaded++ % tr__proof_micros(p)) {
        tr__proof_wrong(p, "is not of the next micro-batch to be read");
        return;
    }
    tr__bytes_change(p, tr__data_slot(p), &nothing, &data);
}

void tr__rule_unload(tr_proof *p) {
    const tr_meaning nothing = {0}, data = tr__data_meaning(p);
    if (p->step->micro != p->walked.unloaded++ % tr__proof_micros(p)) {
        tr__proof_wrong(p, "is not of the micro-batch that was read first");
        return;
    }
    tr__bytes_change(p, tr__data_slot(p), &data, &nothing);
}

// ---- forward and recomputation

// A piece adds to what the unit saves, or reads what those before it have saved.
static void save(tr_proof *p) {
    tr_bytes saved = tr__unit_block(p, TR_PLACE_SAVED, tr__proof_unit(p)->saved_bytes);
    tr_filling at =
        tr__unit_filling(p, tr__proof_forwards(p), tr__place_bit(TR_PLACE_SAVED), true);
    tr_meaning all = tr__micro_meaning(p, TR_MEANS_SAVED, p->step->unit, 0);
    if (at.counts) {
        tr__unit_fill(p, saved, all, &at);
    } else {
        tr_meaning before = tr__unit_filled(all, &at);
        tr__bytes_read(p, saved, &before);
    }
}

// A forward runs twice only where a loss over all micro-batches lies between: the
// first run has handed on what that needs, and kept nothing; the second, once the loss
// knows all micro-batches, makes for the backward of its own what the first has
// dropped. A stage without the loss has handed all on by then.
static bool is_second(const tr_proof *p) {
    const tr_plan *plan = p->plan;
    int32_t loss = p->tables.segments[plan->unit_count] - 1,
            own = p->tables.segments[p->step->unit];
    int64_t done = tr__plan_runs(plan, plan->unit_count - 1) ? p->walked.backward[loss]
                                                             : p->walked.forward[own];
    return tr__proof_trains(p) && plan->request.passes > 1 &&
           p->step->unit + 1 < plan->unit_count && done == tr__proof_micros(p);
}

static void take_turn(tr_proof *p) {
    const tr_plan_step *step = p->step;
    bool below = step->unit + 1 < p->plan->unit_count;
    bool twice = tr__proof_trains(p) && p->plan->request.passes > 1;
    if (is_second(p)) {
        int64_t *again = &p->walked.again[step->unit];
        if (!tr__piece_is_next(p, *again)) {
            tr__proof_wrong(p, "comes again when %lld micro-batches have come again",
                            (long long)*again);
        }
        *again += tr__proof_program(p)->ends;
        return;
    }
    if (twice && below && !tr__step_runs(step, TR_VARIANT_SAVES_NOTHING)) {
        tr__proof_wrong(p, "keeps what it is to make again behind the loss");
    }
    tr__unit_turn(p, p->walked.forward, step->segment, step->segment - 1);
}

void tr__rule_forward(tr_proof *p) {
    if (!tr__unit_is_of_model(p) || !tr__unit_has_program(p)) {
        return;
    }
    const tr_plan_step *step = p->step;
    const tr_unit_program *unit = tr__proof_unit(p);
    tr_meaning input =
        step->unit > 0 ? tr__input_meaning(p, step->unit) : (tr_meaning){0};
    tr_filling outputs = tr__unit_filling(p, tr__proof_forwards(p),
                                          tr__place_bit(TR_PLACE_OUTPUT), false);
    take_turn(p);
    tr__bytes_read(p, tr__unit_block(p, TR_PLACE_INPUT, unit->input_bytes), &input);
    tr__wave_name(p, false);
    tr__unit_run(p);
    tr__unit_fill(p, tr__unit_block(p, TR_PLACE_OUTPUT, unit->output_bytes),
                  tr__micro_meaning(p, TR_MEANS_INPUT, step->unit + 1, 0), &outputs);
    save(p);
}

void tr__rule_recompute(tr_proof *p) {
    if (!tr__unit_is_of_model(p) || !tr__unit_has_program(p)) {
        return;
    }
    const tr_unit_program *unit = tr__proof_unit(p);
    tr_meaning input =
        p->step->unit > 0 ? tr__input_meaning(p, p->step->unit) : (tr_meaning){0};
    tr_filling at =
        tr__unit_filling(p, TR_VARIANT_RECOMPUTE, tr__place_bit(TR_PLACE_SAVED), true);
    if (!tr__piece_is_next(p, p->walked.recomputed[p->step->unit]) ||
        *tr__proof_done(p, p->walked.forward, tr__proof_segments(p) - 1) <=
            p->step->micro) {
        tr__proof_wrong(p, "is out of its turn");
    }
    p->walked.recomputed[p->step->unit] += tr__proof_program(p)->ends;
    tr__bytes_read(p, tr__unit_block(p, TR_PLACE_INPUT, unit->input_bytes), &input);
    tr__wave_name(p, false);
    tr__unit_run(p);
    tr_bytes saved = tr__unit_block(p, TR_PLACE_SAVED, unit->saved_bytes);
    tr_meaning means = tr__micro_meaning(p, TR_MEANS_SAVED, p->step->unit, 0);
    if (at.counts) {
        tr__unit_fill(p, saved, means, &at);
    } else {
        means = tr__unit_filled(means, &at);
        tr__bytes_read(p, saved, &means);
    }
}

// ---- states of the model

void tr__rule_track(tr_proof *p) {
    if (tr__unit_is_of_model(p) && tr__unit_has_program(p)) {
        tr__wave_name(p, false);
        tr__unit_run(p);
    }
}

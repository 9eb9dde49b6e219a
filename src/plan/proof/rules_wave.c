// Rules of wave tensors: what the micro-batches of a wave add up, all in one part, or
// each in a part of its own; and how the parts of all micro-batches and ranks become
// one.
#include "base/checked.h"
#include "plan/flow/wave.h"
#include "plan/proof/unit.h"

static bool is_apart(const tr_proof *p) { // each micro-batch has a part of its own
    return p->plan->request.reproducible && tr__proof_trains(p);
}

static int64_t parts_of(const tr_proof *p) {
    return is_apart(p) ? p->plan->request.accumulation_steps : 1;
}

// In which role the step has the unit's wave tensors, or their gradients: what it reads
// of them, or the part that it adds to.
static tr_operand_role role_of(const tr_proof *p, bool gradient) {
    tr_operand_role reads = gradient ? TR_OPERAND_WAVE_GRAD : TR_OPERAND_WAVE;
    tr_operand_role adds = gradient ? TR_OPERAND_WAVE_GRAD_PART : TR_OPERAND_WAVE_PART;
    return tr__step_find(p->plan, p->step, reads) ? reads : adds;
}

// The unit's wave tensors, or their gradients, in all parts.
static tr_bytes find_parts(tr_proof *p, bool gradient) {
    return tr__role_bytes(p, role_of(p, gradient),
                          tr__proof_unit(p)->wave_bytes * parts_of(p), TR_SPACE_DEVICE);
}

static tr_bytes in_part(const tr_proof *p, tr_bytes parts, int64_t part,
                        const tr_touch *touch) {
    int64_t at = part * tr__proof_unit(p)->wave_bytes;
    return (tr_bytes){parts.buffer, at + touch->first, at + touch->end};
}

// Are parts of other ranks merged with the tensor; is anything?
static bool is_exchanged(const tr_proof *p, const tr_touch *touch) {
    return tr__proof_trains(p) && tr__data_ranks(&p->plan->request) > 1 &&
           !tr__wave_is_own(tr__proof_unit(p), touch->first);
}

static bool is_merged(const tr_proof *p, const tr_touch *touch) {
    return parts_of(p) > 1 || is_exchanged(p, touch);
}

// The sum over all micro-batches of the wave that one of them is of. It is the wave of
// the plan only where a segment waits for it.
static tr_meaning sum_over(const tr_proof *p, int64_t micro, bool gradient) {
    const tr_plan_request *r = &p->plan->request;
    const tr_unit_program *unit = tr__proof_unit(p);
    bool waits = tr__graph_barriers(unit->graph, 1, unit->segments) > 0;
    int64_t all = tr__proof_micros(p);
    bool waves = waits && r->passes < 2;
    // (In an evaluation each micro-batch is a wave of its own.)
    int64_t wave = !tr__proof_trains(p) ? 1 : waves ? r->wave : all;
    int64_t first = micro / wave * wave;
    return (tr_meaning){.kind = gradient ? TR_MEANS_WAVE_GRADIENT : TR_MEANS_WAVE,
                        .of = p->step->unit,
                        .index = first,
                        .terms = (int32_t)tr__min_i64(wave, all - first)};
}

// What a part of it is.
static tr_meaning part_of(const tr_proof *p, tr_meaning sum, int64_t part) {
    if (is_apart(p)) {
        sum.index = part;
        sum.terms = 1;
    }
    return sum;
}

static tr_meaning merged(tr_meaning sum) {
    sum.kind = sum.kind == TR_MEANS_WAVE ? TR_MEANS_MERGED_WAVE
                                         : TR_MEANS_MERGED_WAVE_GRADIENT;
    return sum;
}

// ---- one micro-batch

static void add_to_part(tr_proof *p, const tr_touch *touch, tr_bytes bytes, bool adds) {
    bool gradient = touch->place == TR_PLACE_WAVE_GRAD;
    int64_t micro = p->step->micro;
    tr_meaning sum = sum_over(p, micro, gradient), before;
    int32_t done = (int32_t)(micro - sum.index);
    sum.index = is_apart(p) ? micro : sum.index;
    before = sum;
    before.terms = done;
    sum.terms = adds ? done + 1 : 1;
    if (adds) {
        tr__bytes_change(p, bytes, &before, &sum);
    } else {
        tr__bytes_write(p, bytes, &sum);
    }
}

void tr__wave_touch(tr_proof *p, const tr_touch *touch, bool adds) {
    bool gradient = touch->place == TR_PLACE_WAVE_GRAD;
    tr_bytes parts = find_parts(p, gradient);
    if (touch->result) {
        int64_t part = is_apart(p) ? p->step->micro : 0;
        add_to_part(p, touch, in_part(p, parts, part, touch), adds);
        return;
    }
    tr_meaning want = sum_over(p, p->step->micro, gradient);
    want = is_merged(p, touch) ? merged(want) : want;
    tr__bytes_read(p, in_part(p, parts, 0, touch), &want);
}

static void check_wave(tr_proof *p, tr_operand_role role, int32_t *known) {
    int32_t buffer = tr__role_buffer(p, role);
    if (buffer >= 0 && *known >= 0 && buffer != *known) {
        tr__proof_wrong(p, "names buffer %d for wave tensors that lie in buffer %d",
                        (int)buffer, (int)*known);
    }
    *known = buffer >= 0 ? buffer : *known;
}

// A unit's wave tensors lie in one buffer, though not every segment touches them. In an
// evaluation each micro-batch has its own.
void tr__wave_name(tr_proof *p, bool gradient) {
    int32_t *known = &p->walked.wave[gradient][p->step->unit];
    const tr_program *program = tr__payload_program(p->step);
    if (!tr__proof_trains(p) && program->begins && p->step->segment == 0) {
        *known = -1;
    }
    check_wave(p, gradient ? TR_OPERAND_WAVE_GRAD : TR_OPERAND_WAVE, known);
    check_wave(p, gradient ? TR_OPERAND_WAVE_GRAD_PART : TR_OPERAND_WAVE_PART, known);
}

// ---- what a segment has added to

static bool is_of_segment(tr_proof *p) {
    const tr_plan_step *step = p->step;
    bool inside = tr__proof_trains(p) && tr__plan_runs(p->plan, step->unit) &&
                  step->segment >= 0 && step->segment < tr__proof_unit(p)->segments;
    if (!inside) {
        tr__proof_wrong(p, "is of what the model has not");
    }
    return inside;
}

// The next wave tensor that the segment has added to; `next`: 0 at first, NULL: no
// more.
static const tr_touch *next_tensor(const tr_proof *p, size_t *next) {
    const tr_plan_step *step = p->step;
    tr_variant role = step->backward ? TR_VARIANT_BACKWARD : TR_VARIANT_FORWARD;
    const tr_unit_program *unit = tr__proof_unit(p);
    tr_place place = step->backward ? TR_PLACE_WAVE_GRAD : TR_PLACE_WAVE;
    tr_piece_range pieces = tr__segment_pieces(unit, role, step->segment);
    size_t at = 0; // through the touches of all pieces
    for (int piece = pieces.first; piece < pieces.end; piece++) {
        const tr_touches *touches = tr__tables_touches(
            &p->tables, step->unit, tr__unit_piece(unit, role, piece));
        for (size_t i = 0; i < touches->count; i++, at++) {
            const tr_touch *touch = &touches->items[i];
            if (at >= *next && touch->place == place && touch->result) {
                *next = at + 1;
                return touch;
            }
        }
    }
    return NULL;
}

// The sum over the wave at work: that of the last micro-batch that came there.
static tr_meaning sum_at_work(const tr_proof *p) {
    const tr_plan_step *step = p->step;
    const int64_t *done = step->backward ? p->walked.backward : p->walked.forward;
    int64_t micros = done[p->tables.segments[step->unit] + step->segment];
    return sum_over(p, tr__max_i64(micros - 1, 0), step->backward);
}

// ---- parts of all ranks

static tr_meaning parts_mean(const tr_proof *p, tr_meaning_kind kind) {
    return (tr_meaning){.kind = kind,
                        .of = p->step->unit,
                        .index = p->step->segment,
                        .terms = p->step->backward};
}

static tr_wave_segment segment_of(const tr_proof *p) {
    return (tr_wave_segment){p->step->unit, p->step->segment, p->step->backward};
}

static tr_bytes find_gathered(tr_proof *p, tr_operand_role role) {
    return tr__role_bytes(p, role, tr__wave_gathered(p->plan, segment_of(p)),
                          TR_SPACE_DEVICE);
}

static tr_bytes own_of(const tr_proof *p, tr_bytes gathered) {
    int64_t own = tr__wave_sent(p->plan, segment_of(p)),
            first = own * tr__data_rank(&p->plan->request);
    return (tr_bytes){gathered.buffer, first, first + own};
}

// This rank's parts of what is exchanged, each complete.
static void read_exchanged(tr_proof *p) {
    tr_bytes parts = find_parts(p, p->step->backward);
    tr_meaning sum = sum_at_work(p);
    const tr_touch *touch;
    bool some = false;
    for (size_t next = 0; (touch = next_tensor(p, &next)) != NULL;) {
        for (int64_t part = 0; part < parts_of(p) && is_exchanged(p, touch); part++) {
            tr_meaning want = part_of(p, sum, part);
            tr__bytes_read(p, in_part(p, parts, part, touch), &want);
            some = true;
        }
    }
    if (!some) {
        tr__proof_wrong(p, "is of tensors that ranks do not exchange");
    }
}

void tr__rule_pack(tr_proof *p) {
    if (!is_of_segment(p)) {
        return;
    }
    const tr_meaning own = parts_mean(p, TR_MEANS_WAVE_PARTS);
    tr__wave_name(p, p->step->backward);
    read_exchanged(p);
    tr__bytes_write(p, own_of(p, find_gathered(p, TR_OPERAND_OUTPUT)), &own);
}

// Several parts have been packed; one is sent from where it lies.
void tr__rule_gather_wave(tr_proof *p) {
    if (!is_of_segment(p)) {
        return;
    }
    const tr_meaning own = parts_mean(p, TR_MEANS_WAVE_PARTS);
    const tr_meaning all = parts_mean(p, TR_MEANS_ALL_WAVE_PARTS);
    tr_bytes gathered = find_gathered(p, TR_OPERAND_OUTPUT);
    if (parts_of(p) > 1) {
        tr__bytes_read(p, own_of(p, gathered), &own);
    } else {
        tr__wave_name(p, p->step->backward);
        read_exchanged(p);
    }
    tr__exchange_work(p, TR_ON_DATA);
    tr__bytes_write(p, gathered, &all);
}

// ---- merging

// The parts of other ranks have been gathered; the rank's own are merged from where
// they lie. The first becomes the tensor.
static void merge_tensor(tr_proof *p, tr_bytes parts, const tr_touch *touch) {
    tr_meaning sum = sum_at_work(p), whole = merged(sum), first = part_of(p, sum, 0);
    for (int64_t part = 1; part < parts_of(p) && !is_exchanged(p, touch); part++) {
        tr_meaning want = part_of(p, sum, part);
        tr__bytes_read(p, in_part(p, parts, part, touch), &want);
    }
    tr__bytes_change(p, in_part(p, parts, 0, touch), &first, &whole);
}

void tr__rule_merge(tr_proof *p) {
    if (!is_of_segment(p)) {
        return;
    }
    const tr_meaning all = parts_mean(p, TR_MEANS_ALL_WAVE_PARTS);
    tr_bytes gathered = find_gathered(p, TR_OPERAND_INPUT);
    tr_bytes parts = find_parts(p, p->step->backward);
    const tr_touch *touch;
    bool some = false;
    tr__wave_name(p, p->step->backward);
    tr__bytes_read(p, gathered, &all);
    for (size_t next = 0; (touch = next_tensor(p, &next)) != NULL;) {
        if (is_merged(p, touch)) {
            merge_tensor(p, parts, touch);
            some = true;
        }
    }
    tr__bytes_forget(p, gathered);
    if (!some) {
        tr__proof_wrong(p, "has nothing to merge");
    }
}

#include "plan/proof/tables.h"

#include "base/memory.h"
#include "plan/proof/meaning.h"

#include <string.h>

typedef struct builder {
    const tr_plan *plan;
    tr_proof_tables *out;
    tr_touches *touches; // of the program at work
    bool failed;
} builder;

// ---- what programs touch

// Blocks that are handed on whole, and what lies inside of one program.
static bool is_block(tr_place place) {
    return place == TR_PLACE_NONE || place == TR_PLACE_INPUT ||
           place == TR_PLACE_OUTPUT || place == TR_PLACE_INPUT_GRAD ||
           place == TR_PLACE_OUTPUT_GRAD || place == TR_PLACE_SAVED ||
           place == TR_PLACE_TEMP;
}

static bool is_same(const tr_touch *a, const tr_touch *b) {
    return a->place == b->place && a->flat == b->flat && a->first == b->first &&
           a->end == b->end && a->value == b->value;
}

// What the program has made itself it need not find; what it makes twice is one result.
static bool is_known(const tr_touches *touches, const tr_touch *touch) {
    for (size_t i = 0; i < touches->count; i++) {
        const tr_touch *other = &touches->items[i];
        if (is_same(other, touch) && (other->result || !touch->result)) {
            return true;
        }
    }
    return false;
}

static void note(builder *b, const tr_operand *operand, int64_t bytes, tr_touch touch) {
    tr_touches *to = b->touches;
    to->places |= 1u << operand->place;
    to->results |= touch.result ? 1u << operand->place : 0;
    touch.place = operand->place;
    touch.flat = operand->flat;
    touch.block = operand->block;
    touch.value = operand->place == TR_PLACE_CARRIED ? operand->value : TR_NO_VALUE;
    touch.first = operand->offset;
    touch.end = operand->offset + bytes;
    if (is_block(operand->place) || is_known(to, &touch) || b->failed) {
        return;
    }
    b->failed =
        !tr__grow((void **)&to->items, &to->capacity, to->count + 1, sizeof *to->items);
    if (!b->failed) {
        to->items[to->count++] = touch;
    }
}

static void note_padding(builder *b, const tr_operand *result, int64_t bytes) {
    tr_operand behind = *result;
    behind.offset += bytes;
    if (result->padding > 0) {
        note(b, &behind, result->padding, (tr_touch){.result = true, .padding = true});
    }
}

static void note_instruction(builder *b, const tr_instruction *at) {
    for (int k = 0; k < at->desc.in_count; k++) {
        if (!(at->desc.op->shape_only >> k & 1)) {
            note(b, &at->in[k], tr_tensor_bytes(at->desc.in[k]) + at->in[k].padding,
                 (tr_touch){0});
        }
    }
    for (int k = 0; k < at->desc.out_count; k++) {
        note(b, &at->out[k], tr_tensor_bytes(at->desc.out[k]),
             (tr_touch){.result = true,
                        .adds = at->accumulate >> k & 1,
                        .adds_later = at->first >> k & 1});
        note_padding(b, &at->out[k], tr_tensor_bytes(at->desc.out[k]));
    }
    note(b, &at->packed, at->packed_bytes,
         (tr_touch){.result = true, .adds_later = true});
}

// What ranks have summed of a block is a result of the piece that waits for it; among
// what pieces carry it is there to be read.
static void note_received(builder *b, const tr_program *program) {
    for (size_t i = 0; i < program->received_count; i++) {
        const tr_received *received = &program->received[i];
        bool carried = received->operand.place == TR_PLACE_CARRIED;
        note(b, &received->operand, received->bytes, (tr_touch){.result = !carried});
    }
}

static void add_program(builder *b, const tr_program *program) {
    tr_proof_tables *out = b->out;
    if (b->failed || !tr__grow((void **)&out->touches, &out->touches_capacity,
                               out->touches_count + 1, sizeof *out->touches)) {
        b->failed = true;
        return;
    }
    b->touches = &out->touches[out->touches_count++];
    *b->touches = (tr_touches){.program = program};
    note_received(b, program);
    for (size_t i = 0; i < program->count && !b->failed; i++) {
        note_instruction(b, &program->instructions[i]);
    }
}

static void add_programs(builder *b, const tr_unit_program *unit) {
    for (int i = 0; i < unit->first_of[TR_VARIANTS]; i++) {
        add_program(b, &unit->programs[i]);
    }
}

// The last unit before this one that has the same programs.
static int32_t find_twin(const tr_plan *plan, int u) {
    int before = u - 1;
    while (before >= 0 && plan->units[before].program != plan->units[u].program) {
        before--;
    }
    return before;
}

static void find_touches(builder *b) {
    tr_proof_tables *out = b->out;
    for (int u = 0; u < b->plan->unit_count && !b->failed; u++) {
        int32_t twin = find_twin(b->plan, u);
        const tr_unit_program *unit = b->plan->units[u].program;
        out->segments[u + 1] = out->segments[u] + unit->segments;
        out->unit_touches[u] =
            twin < 0 ? (int32_t)out->touches_count : out->unit_touches[twin];
        if (twin < 0) {
            add_programs(b, unit);
        }
    }
}

const tr_touches *tr__tables_touches(const tr_proof_tables *tables, int32_t unit,
                                     const tr_program *program) {
    const tr_touches *touches = &tables->touches[tables->unit_touches[unit]];
    while (touches->program != program) {
        touches++;
    }
    return touches;
}

// ---- who makes which gradient

// The parameter of the flat buffer whose gradient begins at byte `first` and ends by
// byte `end`; -1: none.
static int32_t find_param(const tr_plan *plan, int flat, int64_t first, int64_t end) {
    const tr_flat *of = &plan->flats[flat];
    for (size_t i = of->first_param; i < of->end_param; i++) {
        const tr_plan_param *param = &plan->params[i];
        if (param->flat == flat && first == param->offset * (int64_t)sizeof(float) &&
            end >= tr__param_end(param)) {
            return (int32_t)i;
        }
    }
    return -1;
}

static void add_maker(builder *b, tr_maker maker) {
    tr_proof_tables *out = b->out;
    b->failed = !tr__grow((void **)&out->makers, &out->maker_capacity,
                          out->maker_count + 1, sizeof *out->makers);
    if (!b->failed) {
        out->makers[out->maker_count++] = maker;
    }
}

// One maker for each parameter that the touch covers: several where they are stacked.
// Where they do not fill it, one of no parameter, which is an error.
static void add_makers_of(builder *b, int unit, const tr_program *program,
                          const tr_touch *touch) {
    int flat = b->plan->units[unit].flats[touch->flat];
    tr_maker maker = {.unit = unit,
                      .segment = program->segment,
                      .piece = program->piece,
                      .adds = touch->adds,
                      .adds_later = touch->adds_later};
    for (int64_t at = touch->first;
         at < touch->end && !b->failed && maker.param >= 0;) {
        maker.param = find_param(b->plan, flat, at, touch->end);
        add_maker(b, maker);
        at = maker.param < 0 ? at : tr__param_end(&b->plan->params[maker.param]);
    }
}

static void add_makers(builder *b, int unit, int segment) {
    const tr_unit_program *of = b->plan->units[unit].program;
    tr_piece_range pieces = tr__segment_pieces(of, TR_VARIANT_BACKWARD, segment);
    for (int piece = pieces.first; piece < pieces.end; piece++) {
        const tr_program *program = tr__unit_piece(of, TR_VARIANT_BACKWARD, piece);
        const tr_touches *touches = tr__tables_touches(b->out, unit, program);
        for (size_t i = 0; i < touches->count && !b->failed; i++) {
            const tr_touch *touch = &touches->items[i];
            if (touch->place == TR_PLACE_PARAM_GRAD && touch->result &&
                !touch->padding) {
                add_makers_of(b, unit, program, touch);
            }
        }
    }
}

static void add_loss(builder *b, int unit, int segment, tr_variant role,
                     tr_losses *to) {
    const tr_unit_program *of = b->plan->units[unit].program;
    tr_piece_range pieces = tr__segment_pieces(of, role, segment);
    for (int piece = pieces.first; piece < pieces.end; piece++) {
        const tr_touches *touches =
            tr__tables_touches(b->out, unit, tr__unit_piece(of, role, piece));
        if (touches->places >> TR_PLACE_SUMS & 1) {
            to->sum += tr__contribution(unit, segment, 0);
            to->terms++;
        }
    }
}

// The caller of a model without a loss adds one for each micro-batch.
static void add_loss_outside(builder *b) {
    if (b->plan->hands_out && tr__plan_runs(b->plan, b->plan->unit_count - 1)) {
        b->out->loss.sum += tr__contribution(b->plan->unit_count, 0, 0);
        b->out->loss.terms++;
    }
}

static void find_makers(builder *b) {
    tr_proof_tables *out = b->out;
    add_loss_outside(b);
    for (int u = 0; u < b->plan->unit_count; u++) {
        const tr_unit_program *unit = b->plan->units[u].program;
        for (int s = 0; s < unit->segments && !b->failed; s++) {
            out->of_segment[out->segments[u] + s] = out->maker_count;
            if (tr__unit_pieces(unit, TR_VARIANT_BACKWARD) > 0 &&
                tr__plan_runs(b->plan, u)) {
                add_makers(b, u, s);
                add_loss(b, u, s, TR_VARIANT_FORWARD, &out->loss);
                add_loss(b, u, s, TR_VARIANT_BACKWARD, &out->loss);
                add_loss(b, u, s, TR_VARIANT_EVALUATE, &out->evaluated);
            }
            out->of_segment[out->segments[u] + s + 1] = out->maker_count;
        }
    }
}

// A counting sort of the makers by parameter.
static void sort_makers(builder *b) {
    tr_proof_tables *out = b->out;
    size_t params = b->plan->param_count;
    out->made_by = tr__calloc(out->maker_count + 1, sizeof *out->made_by);
    b->failed = b->failed || !out->made_by;
    for (size_t i = 0; i < out->maker_count && !b->failed; i++) {
        out->of_param[out->makers[i].param < 0 ? 0 : out->makers[i].param + 1]++;
    }
    size_t next = 0;
    for (size_t i = 1; i <= params && !b->failed; i++) {
        size_t count = out->of_param[i];
        out->of_param[i] = next;
        next += count;
    }
    for (size_t i = 0; i < out->maker_count && !b->failed; i++) {
        int32_t param = out->makers[i].param;
        if (param >= 0) {
            out->made_by[out->of_param[param + 1]++] = (int32_t)i;
        }
    }
    out->of_param[0] = 0;
}

tr_status tr__tables_make(const tr_plan *plan, tr_proof_tables *out, tr_error *err) {
    builder b = {.plan = plan, .out = out};
    size_t units = (size_t)plan->unit_count, segments = 0;
    for (size_t u = 0; u < units; u++) {
        segments += (size_t)plan->units[u].program->segments;
    }
    out->unit_touches = tr__calloc(units, sizeof *out->unit_touches);
    out->segments = tr__calloc(units + 1, sizeof *out->segments);
    out->of_segment = tr__calloc(segments + 1, sizeof *out->of_segment);
    out->of_param = tr__calloc(plan->param_count + 1, sizeof *out->of_param);
    b.failed =
        !out->unit_touches || !out->segments || !out->of_segment || !out->of_param;
    if (!b.failed) {
        find_touches(&b);
        find_makers(&b);
        sort_makers(&b);
    }
    return b.failed ? tr_fail(err, TR_MEMORY, "no memory to prove the plan") : TR_OK;
}

void tr__tables_clear(tr_proof_tables *tables) {
    for (size_t i = 0; i < tables->touches_count; i++) {
        tr__free(tables->touches[i].items);
    }
    tr__free(tables->touches);
    tr__free(tables->unit_touches);
    tr__free(tables->segments);
    tr__free(tables->makers);
    tr__free(tables->of_segment);
    tr__free(tables->of_param);
    tr__free(tables->made_by);
    *tables = (tr_proof_tables){0};
}

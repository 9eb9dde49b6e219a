#include "plan/flow/wave.h"

#include "base/checked.h"

enum { WORD = 8 }; // tensors of f64 lie at multiples of it

static const tr_op *op_at(const tr_program *program, size_t at, int *output) {
    size_t i = 0;
    while (at >= (size_t)program->instructions[i].desc.out_count) {
        at -= (size_t)program->instructions[i++].desc.out_count;
    }
    *output = (int)at;
    return program->instructions[i].desc.op;
}

// The op whose output the wave tensor at `offset` is, among those of a segment; NULL:
// none of them.
static const tr_op *wave_op(const tr_program *program, int64_t offset, int *output) {
    const tr_tensor_desc *desc = NULL;
    const tr_operand *result;
    for (size_t at = 0; (result = tr__program_result(program, at, &desc)); at++) {
        if (result->place == TR_PLACE_WAVE && result->offset == offset) {
            return op_at(program, at, output);
        }
    }
    return NULL;
}

// The op whose output the wave tensor is, and which of them; NULL: none.
static const tr_op *maker_of(const tr_unit_program *unit, int64_t offset, int *output) {
    const tr_op *op = NULL;
    for (int i = 0; i < tr__unit_pieces(unit, TR_VARIANT_FORWARD) && !op; i++) {
        op = wave_op(tr__unit_piece(unit, TR_VARIANT_FORWARD, i), offset, output);
    }
    return op;
}

static bool is_own(const tr_op *op, int output) {
    return op && (op->rank_outputs >> output & 1);
}

// A gradient lies as its tensor does, and is of the same ranks.
bool tr__wave_is_own(const tr_unit_program *unit, int64_t offset) {
    int output = 0;
    const tr_op *op = maker_of(unit, offset, &output);
    return is_own(op, output);
}

static tr_wave_tensor wave_tensor(const tr_unit_program *unit, bool backward,
                                  int64_t offset, const tr_tensor_desc *desc) {
    int output = 0;
    const tr_op *op = maker_of(unit, offset, &output);
    return (tr_wave_tensor){.offset = offset,
                            .bytes = tr_tensor_bytes(*desc),
                            .desc = *desc,
                            .op = backward ? NULL : op,
                            .own = is_own(op, output)};
}

bool tr__wave_next(const tr_plan *plan, tr_wave_segment of, size_t *next,
                   tr_wave_tensor *tensor) {
    const tr_unit_program *unit = plan->units[of.unit].program;
    tr_variant role = of.backward ? TR_VARIANT_BACKWARD : TR_VARIANT_FORWARD;
    const tr_program *program = tr__unit_piece(unit, role, of.segment);
    tr_place place = of.backward ? TR_PLACE_WAVE_GRAD : TR_PLACE_WAVE;
    const tr_tensor_desc *desc = NULL;
    const tr_operand *result;
    while ((result = tr__program_result(program, *next, &desc)) != NULL) {
        size_t at = (*next)++;
        if (result->place == place && !tr__program_repeats(program, at, result)) {
            *tensor = wave_tensor(unit, of.backward, result->offset, desc);
            return true;
        }
    }
    return false;
}

int64_t tr__wave_parts(const tr_plan *plan, tr_sequence_kind sequence) {
    bool apart = plan->request.reproducible && sequence == TR_SEQUENCE_TRAIN;
    return apart ? plan->request.accumulation_steps : 1;
}

bool tr__wave_is_step(const tr_unit_program *unit) {
    return tr__graph_barriers(unit->graph, 1, unit->segments) == 0;
}

bool tr__wave_is_exchanged(const tr_plan *plan, const tr_wave_tensor *tensor) {
    return tr__data_ranks(&plan->request) > 1 && !tensor->own;
}

bool tr__wave_is_merged(const tr_plan *plan, const tr_wave_tensor *tensor) {
    return tr__wave_parts(plan, TR_SEQUENCE_TRAIN) > 1 ||
           tr__wave_is_exchanged(plan, tensor);
}

tr_wave_range tr__wave_range(const tr_plan *plan, tr_wave_segment of) {
    int64_t first = INT64_MAX, end = 0;
    tr_wave_tensor tensor;
    size_t next = 0;
    while (tr__wave_next(plan, of, &next, &tensor)) {
        if (tr__wave_is_exchanged(plan, &tensor)) {
            first = tr__min_i64(first, tensor.offset);
            end = tr__max_i64(end, tensor.offset + tensor.bytes);
        }
    }
    return end > 0 ? (tr_wave_range){first, tr__round_up(end - first, WORD)}
                   : (tr_wave_range){0, 0};
}

int64_t tr__wave_sent(const tr_plan *plan, tr_wave_segment of) {
    return tr__wave_range(plan, of).bytes * tr__wave_parts(plan, TR_SEQUENCE_TRAIN);
}

int64_t tr__wave_gathered(const tr_plan *plan, tr_wave_segment of) {
    return tr__wave_sent(plan, of) * tr__data_ranks(&plan->request);
}

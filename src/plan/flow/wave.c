#include "plan/flow/wave.h"

#include "base/checked.h"

enum { WORD = 8 }; // tensors of f64 lie at multiples of it

// The result of a segment that lies at `offset` among wave tensors; of NULL: none.
static tr_result wave_result(const tr_unit_program *unit, int segment, int64_t offset) {
    tr_result result;
    for (size_t at = 0;
         (result = tr__segment_result(unit, TR_VARIANT_FORWARD, segment, at)).of;
         at++) {
        const tr_operand *operand = tr__result_operand(result);
        if (operand->place == TR_PLACE_WAVE && operand->offset == offset) {
            break;
        }
    }
    return result;
}

// The op whose output the wave tensor is, and which of them; NULL: none.
static const tr_op *maker_of(const tr_unit_program *unit, int64_t offset, int *output) {
    tr_result result = {NULL, 0};
    for (int s = 0; s < unit->segments && !result.of; s++) {
        result = wave_result(unit, s, offset);
    }
    *output = result.index;
    return result.of ? result.of->desc.op : NULL;
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
    tr_place place = of.backward ? TR_PLACE_WAVE_GRAD : TR_PLACE_WAVE;
    tr_result result;
    while ((result = tr__segment_result(unit, role, of.segment, *next)).of) {
        const tr_operand *operand = tr__result_operand(result);
        size_t at = (*next)++;
        if (operand->place == place &&
            !tr__segment_repeats(unit, role, of.segment, at)) {
            *tensor = wave_tensor(unit, of.backward, operand->offset,
                                  &result.of->desc.out[result.index]);
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

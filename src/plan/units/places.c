#include "plan/units/compiler.h"

#include "base/batch.h"

static int output_index(const tr_graph *graph, tr_value value) {
    for (int i = 0; i < graph->output_count; i++) {
        if (graph->output[i] == value) {
            return i;
        }
    }
    return -1;
}

static tr_operand at(tr_place place, int64_t offset) {
    return (tr_operand){.place = place, .offset = offset};
}

static tr_operand in_temp(tr_draft *d, tr_value value) {
    if (d->temp_of[value] < 0) {
        d->temp_of[value] = (int)d->temp_count;
        d->temps[d->temp_count++] =
            (tr_interval){.first = (int32_t)d->program->count, .last = -1};
    }
    d->temps[d->temp_of[value]].last = (int32_t)d->program->count;
    return at(TR_PLACE_TEMP, d->temp_of[value]);
}

// What passes within a backward, or to the gradients of weights that come later.
static tr_operand passing_place(const tr_compiler *c, tr_draft *d, tr_value value) {
    return c->held_offset[value] >= 0 ? at(TR_PLACE_HELD, c->held_offset[value])
                                      : in_temp(d, value);
}

static tr_operand in_param(const tr_compiler *c, tr_place place, int index) {
    const tr_program_param *param = &c->unit->params[index];
    tr_dtype element = place == TR_PLACE_PARAM ? c->request->real : TR_F32;
    return (tr_operand){.place = place,
                        .flat = param->flat,
                        .offset = param->offset * (int64_t)tr_dtype_bytes(element)};
}

// Does this variant keep what passes from the forward to the backward, or, in units of
// several segments, from one to the next?
static bool keeps(const tr_compiler *c, tr_variant variant) {
    switch (variant) {
    case TR_VARIANT_SAVES_NOTHING:
    case TR_VARIANT_EVALUATE:
        return c->unit->segments > 1;
    case TR_VARIANT_INFERENCE: // all segments in one program
        return false;
    default:
        return true;
    }
}

static tr_operand node_place(const tr_compiler *c, tr_draft *d, tr_value value) {
    const tr_value_info *info = &c->graph->values[value];
    int output = output_index(c->graph, value);
    if (info->wave) {
        return at(TR_PLACE_WAVE, c->wave_offset[value]);
    }
    if (info->sums) {
        return at(TR_PLACE_SUMS, 0);
    }
    if (output >= 0 && d->variant != TR_VARIANT_RECOMPUTE) {
        return at(TR_PLACE_OUTPUT, tr__output_offset(c, output));
    }
    if (c->saved_offset[value] >= 0 && keeps(c, d->variant)) {
        return at(TR_PLACE_SAVED, c->saved_offset[value]);
    }
    return d->variant == TR_VARIANT_BACKWARD ? passing_place(c, d, value)
                                             : in_temp(d, value);
}

static tr_operand grad_place(const tr_compiler *c, tr_draft *d, tr_value value) {
    const tr_derivation *derived = &c->unit->derived;
    tr_value of = c->graph->values[value].index;
    const tr_value_info *forward = &c->graph->values[of];
    if (forward->kind == TR_VALUE_PARAM) {
        return in_param(c, TR_PLACE_PARAM_GRAD, forward->index);
    }
    if (forward->wave) {
        return at(TR_PLACE_WAVE_GRAD, c->wave_offset[of]);
    }
    for (int i = 0; i < c->graph->output_count; i++) {
        if (derived->output_grad[i] == value) {
            return at(TR_PLACE_OUTPUT_GRAD, tr__output_offset(c, i));
        }
    }
    for (int i = 0; i < c->graph->input_count; i++) {
        if (derived->input_grad[i] == value) {
            return at(TR_PLACE_INPUT_GRAD, tr__input_offset(c, i));
        }
    }
    if (c->saved_offset[value] >= 0) {
        return at(TR_PLACE_SAVED, c->saved_offset[value]);
    }
    return passing_place(c, d, value);
}

static tr_operand find_place(const tr_compiler *c, tr_draft *d, tr_value value) {
    const tr_value_info *info = &c->graph->values[value];
    switch (info->kind) {
    case TR_VALUE_INPUT:
        return at(TR_PLACE_INPUT, tr__input_offset(c, info->index));
    case TR_VALUE_DATA:
        return at(TR_PLACE_DATA,
                  tr__batch_offset(c->batch, c->request->micro_batch, info->index));
    case TR_VALUE_PARAM:
        return in_param(c, TR_PLACE_PARAM, info->index);
    case TR_VALUE_STATE:
        return at(TR_PLACE_STATE, c->unit->state_offset[info->index]);
    case TR_VALUE_NODE:
        return node_place(c, d, value);
    case TR_VALUE_GRAD:
        return grad_place(c, d, value);
    case TR_VALUE_TEMP:
        return passing_place(c, d, value);
    case TR_VALUE_LOGITS:
        return at(TR_PLACE_LOGITS, 0);
    case TR_VALUE_CACHE:
        return at(TR_PLACE_CACHE, tr__cache_offset(c, value));
    }
    return at(TR_PLACE_NONE, 0);
}

tr_operand tr__value_place(const tr_compiler *c, tr_draft *d, tr_value value) {
    tr_operand operand =
        value == TR_NO_VALUE ? at(TR_PLACE_NONE, 0) : find_place(c, d, c->alias[value]);
    operand.value = value;
    return operand;
}

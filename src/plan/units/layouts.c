#include "plan/units/compiler.h"

#include "base/batch.h"
#include "base/checked.h"
#include "base/memory.h"
#include "plan/units/apart.h"
#include "plan/units/own.h"

static const int64_t largest = INT64_C(1) << 46; // bytes of one tensor

static tr_status check_bytes(const tr_compiler *c, int64_t bytes) {
    if (bytes >= 0 && bytes <= largest) {
        return TR_OK;
    }
    return tr_fail(c->err, TR_USAGE,
                   "unit %s: a tensor of one micro-batch of %lld samples would be "
                   "larger than 2^46 bytes; make the micro-batch or the model smaller",
                   c->unit->kind, (long long)c->request->micro_batch);
}

static tr_status check_sizes(const tr_compiler *c) {
    tr_status status = TR_OK;
    for (int i = 0; i < c->batch->count && status == TR_OK; i++) {
        tr_tensor_desc data = tr__concrete_desc(tr__batch_desc(&c->batch->tensor[i]),
                                                c->request->micro_batch);
        status = check_bytes(c, tr_tensor_bytes(data));
    }
    for (size_t v = 0; v < c->graph->value_count && status == TR_OK; v++) {
        status = check_bytes(c, tr__value_bytes(c, (tr_value)v));
    }
    return status;
}

static tr_status no_memory(const tr_compiler *c) {
    return tr_fail(c->err, TR_MEMORY, "no memory for the layout of unit %s",
                   c->unit->kind);
}

static tr_status add_flat(tr_compiler *c, bool frozen, int *flat) {
    tr_unit_program *unit = c->unit;
    if (unit->flat_count == TR_UNIT_FLATS_MAX) {
        return tr_fail(c->err, TR_INTERNAL, "unit %s uses more than %d tied tensors",
                       unit->kind, TR_UNIT_FLATS_MAX - TR_OWN);
    }
    *flat = unit->flat_count++;
    unit->frozen_flats |= (uint32_t)frozen << *flat;
    return TR_OK;
}

// Flat buffers of the unit's own parameters; there is one, whatever it has.
static tr_status add_own_flats(tr_compiler *c) {
    tr_unit_program *unit = c->unit;
    bool has[TR_OWN] = {false};
    for (size_t i = 0; i < c->graph->param_count; i++) {
        const tr_param_info *param = &c->graph->params[i];
        has[tr__own_of(param)] = has[tr__own_of(param)] || !param->shared;
    }
    has[TR_OWN_TRAINED] =
        has[TR_OWN_TRAINED] || (!has[TR_OWN_APART] && !has[TR_OWN_FROZEN]);
    tr_status status = TR_OK;
    for (int own = 0; own < TR_OWN; own++) {
        unit->own[own] = -1;
        if (has[own] && status == TR_OK) {
            status = add_flat(c, tr__own_rows[own].frozen, &unit->own[own]);
        }
    }
    return status;
}

static const int64_t line = TR_ALIGNMENT / (int64_t)sizeof(float); // of the cache

// A tensor begins where a block of its states does.
static void lay_out_own(const tr_compiler *c, const tr_param_info *param,
                        tr_program_param *to) {
    tr_own own = tr__own_of(param);
    int64_t *end = &c->unit->own_elements[own];
    bool packed = !tr__own_rows[own].frozen && !tr__own_rows[own].apart;
    int64_t block = packed ? tr__states_block(c->request->plan) : 1;
    to->flat = c->unit->own[own];
    to->offset = param->stacked ? *end : tr__round_up(*end, tr__max_i64(line, block));
    *end = to->offset + to->padding +
           (param->split ? param->room : tr_shape_count(param->shape));
}

static tr_status lay_out_params(tr_compiler *c) {
    tr_unit_program *unit = c->unit;
    unit->params = tr__calloc(c->graph->param_count, sizeof *unit->params);
    if (!unit->params) {
        return no_memory(c);
    }
    tr_status status = add_own_flats(c);
    for (size_t i = 0; i < c->graph->param_count && status == TR_OK; i++) {
        const tr_param_info *param = &c->graph->params[i];
        unit->params[i].padding = tr__param_padding(c, i);
        if (param->shared) {
            status = add_flat(c, param->frozen, &unit->params[i].flat);
        } else {
            lay_out_own(c, param, &unit->params[i]);
        }
    }
    for (int own = 0; own < TR_OWN; own++) {
        unit->own_elements[own] = tr__round_up(unit->own_elements[own], line);
    }
    return status;
}

static tr_status lay_out_states(tr_compiler *c) {
    tr_unit_program *unit = c->unit;
    unit->state_offset = tr__calloc(c->graph->state_count, sizeof *unit->state_offset);
    if (!unit->state_offset) {
        return no_memory(c);
    }
    for (size_t i = 0; i < c->graph->state_count; i++) {
        int64_t bytes = tr__value_bytes(c, c->graph->states[i].value);
        unit->state_offset[i] = unit->state_bytes;
        unit->state_bytes += tr__round_up(bytes, TR_ALIGNMENT);
    }
    return TR_OK;
}

// Which of the parts of a backward that do not follow each other at once: a segment;
// of a unit that has only one, the gradients of weights that come later.
static int part_of(const tr_call *call) {
    return call->segment + call->weights;
}

// Marks derived values (gradients, recomputed tensors) that pass from one part of the
// backward to another: those between segments live beside the saved ones.
static void mark_crossing(const tr_compiler *c, bool *crosses, int *part) {
    const tr_derivation *derived = &c->unit->derived;
    for (size_t v = 0; v < c->graph->value_count; v++) {
        part[v] = -1;
    }
    for (size_t i = 0; i < derived->backward_count; i++) {
        const tr_call *call = &derived->backward[i];
        for (int k = 0; k < call->in_count + call->out_count; k++) {
            tr_value value =
                k < call->in_count ? call->in[k] : call->out[k - call->in_count];
            if (value == TR_NO_VALUE) {
                continue;
            }
            tr_value_kind kind = c->graph->values[value].kind;
            bool derived_value = kind == TR_VALUE_GRAD || kind == TR_VALUE_TEMP ||
                                 derived->recomputed[value];
            crosses[value] = crosses[value] || (derived_value && part[value] >= 0 &&
                                                part[value] != part_of(call));
            part[value] = part_of(call);
        }
    }
}

// Has the gradient a place of its own, whatever segments it crosses?
static bool in_boundary(const tr_compiler *c, tr_value value) {
    const tr_derivation *derived = &c->unit->derived;
    const tr_value_info *info = &c->graph->values[value];
    if (info->kind != TR_VALUE_GRAD) {
        return false;
    }
    for (int i = 0; i < c->graph->output_count; i++) {
        if (value == derived->output_grad[i]) {
            return true;
        }
    }
    for (int i = 0; i < c->graph->input_count; i++) {
        if (value == derived->input_grad[i]) {
            return true;
        }
    }
    const tr_value_info *of = &c->graph->values[info->index];
    return of->kind == TR_VALUE_PARAM || of->wave;
}

static bool is_handed_on(const tr_compiler *c, tr_value value) {
    for (int i = 0; i < c->graph->output_count; i++) {
        if (c->graph->output[i] == value) {
            return true;
        }
    }
    return false;
}

// Turns `crosses` into what lies among the saved: what the forward keeps and what
// passes from segment to segment, where it shares the place of no boundary.
static void mark_saved(const tr_compiler *c, size_t forward_values, const bool *crosses,
                       bool *saved) {
    for (size_t v = 0; v < c->graph->value_count; v++) {
        bool kept =
            v < forward_values && c->request->train && c->unit->derived.saved[v];
        tr_value place = c->alias[v];
        if ((kept || crosses[v]) && !in_boundary(c, place) && !is_handed_on(c, place)) {
            saved[place] = true;
        }
    }
}

// What passes to gradients of weights that come later lives from then on only.
static void mark_held(const tr_compiler *c, bool *crosses, bool *held) {
    for (size_t v = 0; v < c->graph->value_count; v++) {
        tr_value place = c->alias[v];
        if (crosses[v] && !in_boundary(c, place)) {
            held[place] = true;
        }
        crosses[v] = false;
    }
}

static void lay_out_values(tr_compiler *c, const bool *saved, const bool *held) {
    for (size_t v = 0; v < c->graph->value_count; v++) {
        int64_t bytes = tr__round_up(tr__value_bytes(c, (tr_value)v), TR_ALIGNMENT);
        c->saved_offset[v] = c->held_offset[v] = -1;
        if (saved[v]) {
            c->saved_offset[v] = c->unit->saved_bytes;
            c->unit->saved_bytes += bytes;
        }
        if (held[v]) {
            c->held_offset[v] = c->unit->held_bytes;
            c->unit->held_bytes += bytes;
        }
        if (c->graph->values[v].wave) {
            c->wave_offset[v] = c->unit->wave_bytes;
            c->unit->wave_bytes += bytes;
        }
    }
}

static tr_status lay_out_saved(tr_compiler *c, size_t forward_values) {
    size_t values = c->graph->value_count;
    bool *crosses = tr__calloc(values, sizeof *crosses);
    bool *saved = tr__calloc(values, sizeof *saved);
    bool *held = tr__calloc(values, sizeof *held);
    int *part = tr__calloc(values, sizeof *part);
    bool weights_later = c->unit->derived.weights < c->unit->derived.backward_count;
    tr_status status = TR_OK;
    c->saved_offset = tr__calloc(values, sizeof *c->saved_offset);
    c->held_offset = tr__calloc(values, sizeof *c->held_offset);
    c->wave_offset = tr__calloc(values, sizeof *c->wave_offset);
    if (!crosses || !saved || !held || !part || !c->saved_offset || !c->held_offset ||
        !c->wave_offset) {
        status = no_memory(c);
        goto cleanup;
    }
    if (c->unit->segments > 1 || weights_later) {
        mark_crossing(c, crosses, part);
    }
    if (weights_later) {
        mark_held(c, crosses, held);
    }
    mark_saved(c, forward_values, crosses, saved);
    lay_out_values(c, saved, held);
cleanup:
    tr__free(crosses);
    tr__free(saved);
    tr__free(held);
    tr__free(part);
    return status;
}

static bool any(const tr_value *values, int count) {
    bool some = false;
    for (int i = 0; i < count; i++) {
        some = some || values[i] != TR_NO_VALUE;
    }
    return some;
}

// A boundary's gradients have its layout, or there are none.
static void count_gradients(tr_compiler *c) {
    const tr_derivation *derived = &c->unit->derived;
    bool has_grad =
        c->request->train && any(derived->input_grad, c->graph->input_count);
    bool made = c->request->train && any(derived->output_grad, c->graph->output_count);
    c->unit->input_grad_bytes = has_grad ? c->unit->input_bytes : 0;
    c->unit->output_grad_bytes = made ? c->unit->output_bytes : 0;
}

tr_status tr__compiler_layout(tr_compiler *c, size_t forward_values) {
    tr_status status = check_sizes(c);
    if (status == TR_OK) {
        status = lay_out_params(c);
    }
    if (status == TR_OK) {
        status = lay_out_states(c);
    }
    if (status == TR_OK) {
        status = tr__compiler_in_place(c);
    }
    if (status == TR_OK) {
        status = lay_out_saved(c, forward_values);
    }
    if (status == TR_OK) {
        c->unit->input_bytes = tr__input_offset(c, c->graph->input_count);
        c->unit->output_bytes = tr__output_offset(c, c->graph->output_count);
        count_gradients(c);
        c->unit->cache_bytes = tr__cache_offset(c, (tr_value)c->graph->value_count);
    }
    return status;
}

#include "plan/flow/unit_values.h"

#include "base/checked.h"
#include "base/memory.h"
#include "plan/flow/plan.h"
#include "plan/flow/wave.h"
#include "plan/units/offsets.h"

#include <string.h>

// ---- making values

typedef struct maker {
    tr_plan *plan;
    tr_sequence_kind kind;
    tr_unit_values *values;
    const tr_unit_program *unit;
    const tr_plan_step *step;
    const tr_program *program;
    tr_error *err;
    tr_status status;
} maker;

// The value that `*entry` names, made where it names none yet; -1: of no bytes.
static int32_t use(maker *m, int32_t *entry, tr_ledger_category category,
                   int64_t bytes) {
    if (*entry < 0 && bytes > 0 && m->status == TR_OK) {
        tr_buffer buffer = {.category = category,
                            .space = TR_SPACE_DEVICE,
                            .sequence = m->kind,
                            .bytes = bytes,
                            .first = INT32_MAX,
                            .last = -1};
        *entry = tr__plan_buffer(m->plan, buffer, m->err);
        m->status = *entry < 0 ? TR_MEMORY : TR_OK;
    }
    return *entry;
}

static int32_t *at(const maker *m, int32_t *entries, int unit) {
    return &entries[unit * m->values->micros + m->step->micro];
}

bool tr__plan_params_stay(const tr_plan *plan) {
    return tr__plan_stage(plan) < 3 && plan->request.param_placement == TR_SPACE_DEVICE;
}

static int32_t param_value(maker *m, int flat) {
    const tr_flat *f = &m->plan->flats[flat];
    int64_t bytes = tr__round_up(f->count * tr__param_bytes(m->plan), TR_ALIGNMENT);
    return tr__plan_params_stay(m->plan)
               ? f->param.buffer
               : use(m, &m->values->param[flat], TR_LEDGER_parameters, bytes);
}

// f32 gradients that pass: of a wave, or of one micro-batch where they are accumulated.
static int32_t grad_value(maker *m, int flat) {
    const tr_flat *f = &m->plan->flats[flat];
    bool passes = tr__plan_accumulates(m->plan) || tr__flat_grads_pass(m->plan, flat);
    return passes ? use(m, &m->values->grad[flat], TR_LEDGER_gradients,
                        f->count * (int64_t)sizeof(float))
                  : f->sums.buffer;
}

static maker maker_of(tr_plan *plan, tr_sequence_kind kind, tr_error *err) {
    return (maker){
        .plan = plan, .kind = kind, .values = &plan->unit_values[kind], .err = err};
}

int32_t tr__param_value(tr_plan *plan, tr_sequence_kind kind, int flat, tr_error *err) {
    maker m = maker_of(plan, kind, err);
    return param_value(&m, flat);
}

int32_t tr__grad_value(tr_plan *plan, tr_sequence_kind kind, int flat, tr_error *err) {
    maker m = maker_of(plan, kind, err);
    return grad_value(&m, flat);
}

int32_t tr__sum_value(tr_plan *plan, tr_sequence_kind kind, int flat, tr_error *err) {
    maker m = maker_of(plan, kind, err);
    return use(&m, &m.values->sum[flat], TR_LEDGER_gradients,
               tr__sums_bytes(plan, plan->flats[flat].count));
}

// ---- blocks of programs

// A unit that hands a gradient on in the same memory has one value for both.
static int32_t input_gradient(maker *m) {
    int unit = m->step->unit;
    return m->unit->derived.in_place
               ? use(m, at(m, m->values->gradient, unit + 1), TR_LEDGER_boundary,
                     m->unit->output_grad_bytes)
               : use(m, at(m, m->values->gradient, unit), TR_LEDGER_boundary,
                     m->unit->input_grad_bytes);
}

static int32_t output_gradient(maker *m) {
    return use(m, at(m, m->values->gradient, m->step->unit + 1), TR_LEDGER_boundary,
               m->unit->output_grad_bytes);
}

static int64_t wave_bytes(const maker *m) {
    return m->unit->wave_bytes * tr__wave_parts(m->plan, m->kind);
}

static int32_t workspace(maker *m, int64_t bytes) {
    int32_t none = -1;
    return use(m, &none, TR_LEDGER_workspace, bytes);
}

static int32_t packed_value(maker *m, bool backward) {
    return use(m, &m->values->packed[2 * m->step->unit + backward], TR_LEDGER_packed,
               m->unit->packed_bytes[backward]);
}

// What passes from one step to another.
static int32_t passing_value(maker *m, const tr_program_block *block) {
    tr_unit_values *v = m->values;
    int unit = m->step->unit;
    switch (block->place) {
    case TR_PLACE_INPUT:
        return use(m, at(m, v->boundary, unit), TR_LEDGER_boundary,
                   m->unit->input_bytes);
    case TR_PLACE_OUTPUT:
        return use(m, at(m, v->boundary, unit + 1), TR_LEDGER_boundary,
                   m->unit->output_bytes);
    case TR_PLACE_INPUT_GRAD:
        return input_gradient(m);
    case TR_PLACE_OUTPUT_GRAD:
        return output_gradient(m);
    case TR_PLACE_SAVED:
        return use(m, at(m, v->saved, unit), TR_LEDGER_activations,
                   m->unit->saved_bytes);
    case TR_PLACE_HELD:
        return use(m, at(m, v->held, unit), TR_LEDGER_activations, m->unit->held_bytes);
    case TR_PLACE_WAVE:
        return use(m, &v->wave[unit], TR_LEDGER_activations, wave_bytes(m));
    case TR_PLACE_WAVE_GRAD:
        return use(m, &v->wave_grad[unit], TR_LEDGER_activations, wave_bytes(m));
    case TR_PLACE_CARRIED:
        return use(m, at(m, v->carried, unit), TR_LEDGER_workspace,
                   m->program->carried_bytes);
    case TR_PLACE_TEMP:
        return workspace(m, block->of.end);
    default:
        return packed_value(m, block->place == TR_PLACE_PACKED_BACKWARD);
    }
}

static int32_t value_of(maker *m, const tr_program_block *block) {
    const tr_plan *plan = m->plan;
    const tr_plan_unit *unit = &plan->units[m->step->unit];
    bool train = m->kind == TR_SEQUENCE_TRAIN;
    switch (block->place) {
    case TR_PLACE_PARAM:
        return param_value(m, unit->flats[block->flat]);
    case TR_PLACE_PARAM_GRAD:
        return grad_value(m, unit->flats[block->flat]);
    case TR_PLACE_DATA:
        return plan->data_ring[train ? 0 : 1];
    case TR_PLACE_FIRST_BAD:
        return plan->statistics.buffer;
    case TR_PLACE_SUMS:
        return train ? plan->statistics.buffer : plan->sums;
    case TR_PLACE_LOGITS:
        return plan->logits;
    case TR_PLACE_STATE:
        return unit->states;
    case TR_PLACE_CACHE:
        return unit->cache;
    default:
        return passing_value(m, block);
    }
}

// Where this rank has a number of the statistics.
static int64_t own_statistic(const tr_plan *plan, int64_t number) {
    int64_t rank = tr_mesh_rank(&plan->request.mesh);
    return (rank * plan->statistics.doubles + number) * (int64_t)sizeof(double);
}

// Where the step's micro-batch has its share of a value: its slot of the data ring, its
// sums in the statistics, its part of wave tensors.
static int64_t share_of(const maker *m, const tr_program_block *block) {
    const tr_plan *plan = m->plan;
    bool train = m->kind == TR_SEQUENCE_TRAIN;
    int64_t micro = m->step->micro;
    switch (block->place) {
    case TR_PLACE_DATA:
        return micro % plan->slots[train ? 0 : 1] * plan->slot_bytes;
    case TR_PLACE_SUMS:
        return train ? own_statistic(plan, plan->statistics.sums + micro * TR_SUMS)
                     : micro * TR_SUMS * (int64_t)sizeof(double);
    case TR_PLACE_FIRST_BAD:
        return own_statistic(plan, TR_STATISTICS_FIRST_BAD);
    default:
        return block->part && tr__wave_parts(plan, m->kind) > 1
                   ? micro * m->unit->wave_bytes
                   : 0;
    }
}

// Also where no block of the program lies in it: the unit before goes on with it.
static void hand_on_in_place(maker *m, const tr_program *program) {
    if (m->unit->derived.in_place && program->variant == TR_VARIANT_BACKWARD) {
        *at(m, m->values->gradient, m->step->unit) = input_gradient(m);
    }
}

tr_status tr__unit_launch(tr_plan *plan, tr_sequence_kind kind,
                          const tr_program *program, tr_plan_step *step,
                          tr_error *err) {
    maker m = maker_of(plan, kind, err);
    m.unit = plan->units[step->unit].program;
    m.step = step;
    m.program = program;
    if (program->begins) {
        *at(&m, m.values->carried, step->unit) = -1;
    }
    if (program->begins && step->segment == 0 && kind == TR_SEQUENCE_EVALUATE) {
        m.values->wave[step->unit] = -1; // each micro-batch is a wave of its own
    }
    step->payload = (tr_payload){.operand = plan->operand_count, .program = program};
    step->shape = TR_STEP_IS_LAUNCH;
    hand_on_in_place(&m, program);
    for (size_t i = 0; i < program->block_count && m.status == TR_OK; i++) {
        const tr_program_block *block = &program->blocks[i];
        tr_step_operand operand = block->of;
        operand.buffer = value_of(&m, block);
        operand.first = share_of(&m, block);
        operand.end += operand.first;
        m.status = m.status == TR_OK ? tr__plan_operand(plan, operand, err) : m.status;
        step->payload.operand_count++;
    }
    return m.status;
}

// ---- the table

static int32_t *take(int32_t **next, size_t count) {
    int32_t *taken = *next;
    for (size_t i = 0; i < count; i++) {
        taken[i] = -1;
    }
    *next += count;
    return taken;
}

tr_status tr__unit_values_make(tr_plan *plan, tr_sequence_kind kind, tr_error *err) {
    tr_unit_values *v = &plan->unit_values[kind];
    size_t units = (size_t)plan->unit_count, flats = plan->flat_count;
    v->micros = tr__plan_micros(plan, kind);
    size_t micros = (size_t)v->micros;
    int32_t *next =
        tr__calloc((5 * units + 2) * micros + 4 * units + 3 * flats + 1, sizeof *next);
    if (!next) {
        return tr_fail(err, TR_MEMORY, "no memory for the plan's values");
    }
    v->boundary = take(&next, (units + 1) * micros); // the block's begin
    v->gradient = take(&next, (units + 1) * micros);
    v->saved = take(&next, units * micros);
    v->held = take(&next, units * micros);
    v->carried = take(&next, units * micros);
    v->wave = take(&next, units);
    v->wave_grad = take(&next, units);
    v->packed = take(&next, 2 * units);
    v->param = take(&next, flats);
    v->grad = take(&next, flats);
    v->sum = take(&next, flats);
    memset(v->convert, -1, sizeof v->convert);
    v->measured = v->tensor_sums = v->totals = -1;
    return TR_OK;
}

void tr__unit_values_clear(tr_plan *plan, tr_sequence_kind kind) {
    tr__free(plan->unit_values[kind].boundary);
    plan->unit_values[kind] = (tr_unit_values){0};
}

// Pass: names the buffers of every step, and from which step to which each lives.
#include "base/checked.h"
#include "base/memory.h"
#include "ops/norm/norm.h"
#include "plan/plan.h"

// Buffers found so far, by what they hold; -1: none yet.
typedef struct table {
    tr_plan *plan;
    tr_sequence_kind kind;
    int64_t micros;
    int *boundary, *gradient; // [units + 1][micros]
    int *saved;               // [units][micros]
    int *wave, *wave_grad;    // [units]
    tr_error *err;
    tr_status status;
} table;

static int *entries(size_t count) {
    int *all = tr__calloc(count, sizeof *all);
    for (size_t i = 0; all && i < count; i++) {
        all[i] = -1;
    }
    return all;
}

// The step uses what `*entry` holds: its buffer lives until now at least.
static int use(table *t, int *entry, tr_ledger_category category, int64_t bytes,
               int32_t step) {
    if (bytes == 0 || t->status != TR_OK) {
        return -1;
    }
    if (*entry < 0) {
        *entry = tr__plan_buffer(t->plan,
                                 (tr_buffer){.category = category,
                                             .sequence = t->kind,
                                             .bytes = bytes,
                                             .first = step,
                                             .last = step},
                                 t->err);
        t->status = *entry < 0 ? TR_MEMORY : TR_OK;
        return *entry;
    }
    t->plan->buffers[*entry].last = step;
    return *entry;
}

static int *at(int *entries_, const table *t, int unit, int64_t micro) {
    return &entries_[(int64_t)unit * t->micros + micro];
}

static bool any(const bool *flags) {
    for (int i = 0; i < TR_GRAPH_IO_MAX; i++) {
        if (flags[i]) {
            return true;
        }
    }
    return false;
}

static void use_input(table *t, tr_plan_step *step, int32_t now) {
    const tr_unit_program *unit = t->plan->units[step->unit].program;
    step->buffer[TR_SLOT_INPUT] = use(t, at(t->boundary, t, step->unit, step->micro),
                                      TR_LEDGER_boundary, unit->input_bytes, now);
}

static void use_output(table *t, tr_plan_step *step, int32_t now) {
    const tr_unit_program *unit = t->plan->units[step->unit].program;
    step->buffer[TR_SLOT_OUTPUT] =
        use(t, at(t->boundary, t, step->unit + 1, step->micro), TR_LEDGER_boundary,
            unit->output_bytes, now);
}

static void use_saved(table *t, tr_plan_step *step, int32_t now) {
    const tr_unit_program *unit = t->plan->units[step->unit].program;
    step->buffer[TR_SLOT_SAVED] = use(t, at(t->saved, t, step->unit, step->micro),
                                      TR_LEDGER_activations, unit->saved_bytes, now);
}

static void use_wave(table *t, tr_plan_step *step, int32_t now) {
    const tr_unit_program *unit = t->plan->units[step->unit].program;
    step->buffer[TR_SLOT_WAVE] =
        use(t, &t->wave[step->unit], TR_LEDGER_activations, unit->wave_bytes, now);
}

static void use_wave_grad(table *t, tr_plan_step *step, int32_t now) {
    const tr_unit_program *unit = t->plan->units[step->unit].program;
    step->buffer[TR_SLOT_WAVE_GRAD] =
        use(t, &t->wave_grad[step->unit], TR_LEDGER_activations, unit->wave_bytes, now);
}

static void use_gradients(table *t, tr_plan_step *step, int32_t now) {
    const tr_unit_program *unit = t->plan->units[step->unit].program;
    int *before = at(t->gradient, t, step->unit, step->micro);
    int *after = at(t->gradient, t, step->unit + 1, step->micro);
    step->buffer[TR_SLOT_OUTPUT_GRAD] =
        use(t, after, TR_LEDGER_boundary, unit->output_bytes, now);
    if (unit->derived.in_place) {
        *before = *after;
    }
    step->buffer[TR_SLOT_INPUT_GRAD] =
        use(t, before, TR_LEDGER_boundary, unit->input_bytes, now);
    use_wave_grad(t, step, now);
}

static void use_temp(table *t, tr_plan_step *step, int64_t bytes, int32_t now) {
    int none = -1;
    step->buffer[TR_SLOT_TEMP] = use(t, &none, TR_LEDGER_workspace, bytes, now);
}

static int64_t norm_bytes(const tr_plan *plan) {
    int64_t blocks = 0;
    for (size_t i = 0; i < plan->flat_count; i++) {
        blocks += tr__ceil_div(plan->flats[i].count, TR_NORM_BLOCK);
    }
    return blocks * (int64_t)sizeof(double);
}

static void use_all(table *t, tr_plan_step *step, int32_t now) {
    const tr_program *program = tr__step_program(t->plan, step, t->kind);
    const tr_unit_program *unit = program || step->kind == TR_STEP_combine
                                      ? t->plan->units[step->unit].program
                                      : NULL;
    switch (step->kind) {
    case TR_STEP_forward:
        use_input(t, step, now);
        use_output(t, step, now);
        if (t->kind != TR_SEQUENCE_ANSWER && (!step->lean || unit->segments > 1)) {
            use_saved(t, step, now);
        }
        use_wave(t, step, now);
        break;
    case TR_STEP_recompute:
        use_input(t, step, now);
        use_saved(t, step, now);
        use_wave(t, step, now);
        break;
    case TR_STEP_backward:
        if (any(unit->derived.reads_input)) {
            use_input(t, step, now);
        }
        if (any(unit->derived.reads_output)) {
            use_output(t, step, now);
        }
        use_saved(t, step, now);
        use_wave(t, step, now);
        use_gradients(t, step, now);
        break;
    case TR_STEP_combine:
        use_wave(t, step, now);
        if (t->wave_grad[step->unit] >= 0) { // the backward has begun
            use_wave_grad(t, step, now);
        }
        break;
    case TR_STEP_norm:
        use_temp(t, step, norm_bytes(t->plan), now);
        break;
    default:
        break;
    }
    if (program) {
        use_temp(t, step, program->temp_bytes, now);
        t->plan->flops += t->kind == TR_SEQUENCE_EVALUATE ? 0 : program->cost.flops;
    }
}

static tr_status name_buffers(tr_plan *plan, tr_sequence_kind kind, tr_error *err) {
    tr_sequence *sequence = &plan->sequences[kind];
    table t = {.plan = plan, .kind = kind, .err = err};
    size_t units = (size_t)plan->unit_count;
    t.micros = kind == TR_SEQUENCE_TRAIN ? plan->request.accumulation_steps : 1;
    t.boundary = entries((units + 1) * (size_t)t.micros);
    t.gradient = entries((units + 1) * (size_t)t.micros);
    t.saved = entries(units * (size_t)t.micros);
    t.wave = entries(units);
    t.wave_grad = entries(units);
    if (!t.boundary || !t.gradient || !t.saved || !t.wave || !t.wave_grad) {
        t.status = tr_fail(err, TR_MEMORY, "no memory for the plan's lifetimes");
    }
    for (size_t i = 0; i < sequence->count && t.status == TR_OK; i++) {
        use_all(&t, &sequence->steps[i], (int32_t)i);
    }
    tr__free(t.boundary);
    tr__free(t.gradient);
    tr__free(t.saved);
    tr__free(t.wave);
    tr__free(t.wave_grad);
    return t.status;
}

// Rings of data slots, sums and the answer: they live always.
static tr_status name_always(tr_plan *plan, tr_error *err) {
    const tr_plan_request *r = &plan->request;
    plan->slot_bytes = tr__data_offset(plan->data, r->micro_batch, TR_DATA_KINDS);
    plan->slots[0] = 2 * r->wave; // the next wave is read while one is at work
    plan->slots[1] = r->inference ? 1 : 2;
    for (int i = 0; i < 2; i++) {
        bool there = i == 1 || !r->inference;
        int64_t bytes = 0;
        if (there && !tr__mul_i64(plan->slots[i], plan->slot_bytes, &bytes)) {
            return tr_fail(err, TR_USAGE,
                           "the ring of data needs more than 2^63 bytes");
        }
        plan->data_ring[i] = tr__plan_buffer(
            plan,
            (tr_buffer){.category = TR_LEDGER_data, .sequence = -1, .bytes = bytes},
            err);
        plan->sums[i] = tr__plan_buffer(plan,
                                        (tr_buffer){.category = TR_LEDGER_workspace,
                                                    .sequence = -1,
                                                    .bytes = TR_SUMS * sizeof(double)},
                                        err);
        if (plan->data_ring[i] < 0 || plan->sums[i] < 0) {
            return TR_MEMORY;
        }
    }
    const tr_unit_program *last = plan->units[plan->unit_count - 1].program;
    if (r->inference) {
        plan->answer = tr__plan_buffer(plan,
                                       (tr_buffer){.category = TR_LEDGER_workspace,
                                                   .sequence = -1,
                                                   .bytes = last->answer_bytes},
                                       err);
        return plan->answer < 0 ? TR_MEMORY : TR_OK;
    }
    return TR_OK;
}

tr_status tr__pass_lifetimes(tr_plan *plan, tr_error *err) {
    tr_status status = name_always(plan, err);
    for (int kind = 0; kind < TR_SEQUENCES && status == TR_OK; kind++) {
        status = name_buffers(plan, (tr_sequence_kind)kind, err);
    }
    return status;
}

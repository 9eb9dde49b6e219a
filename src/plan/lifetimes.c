// Pass: names the buffers of every step, and from which step to which each lives.
#include "base/checked.h"
#include "base/memory.h"
#include "comm/comm.h"
#include "ops/optimizer_measure.h"
#include "plan/plan.h"

#include <string.h>

// Buffers found so far, by what they hold; -1: none yet.
typedef struct table {
    tr_plan *plan;
    tr_sequence_kind kind;
    int64_t micros;
    int *boundary, *gradient; // [units + 1][micros]
    int *away;                // [units][micros] what a unit is given, elsewhere
    int *saved;               // [units][micros]
    int *wave, *wave_grad;    // [units]
    int *param, *part; // [flats] parameters that are there; this rank's part, fetched
    int *grad, *sum;   // gradients that pass; the sums that they are folded into
    int *reduced;      // this rank's part of what was reduced
    // [flats] parameters from NVMe that are next to be fetched, and those after them;
    // gradients on their way to NVMe.
    int *staged_param, *staged_later, *staged_grad;
    int ring[TR_UPDATE_SLOTS_MAX][TR_PARTS]; // of the update's pieces
    int measured;                            // what ranks have measured
    int totals;                              // the norms of tensors
    int32_t *waited; // [steps] of a step beside computing: who waits for it
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
static int use_in(table *t, tr_space space, int *entry, tr_ledger_category category,
                  int64_t bytes, int32_t step) {
    if (bytes == 0 || t->status != TR_OK) {
        return -1;
    }
    if (*entry < 0) {
        *entry = tr__plan_buffer(t->plan,
                                 (tr_buffer){.category = category,
                                             .space = space,
                                             .sequence = t->kind,
                                             .bytes = bytes,
                                             .first = step,
                                             .last = step},
                                 t->err);
        t->status = *entry < 0 ? TR_MEMORY : TR_OK;
        return *entry;
    }
    tr_buffer *buffer = &t->plan->buffers[*entry];
    buffer->last = buffer->last > step ? buffer->last : step;
    return *entry;
}

static int use(table *t, int *entry, tr_ledger_category category, int64_t bytes,
               int32_t step) {
    return use_in(t, TR_SPACE_DEVICE, entry, category, bytes, step);
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
        use(t, &t->wave[step->unit], TR_LEDGER_activations,
            unit->wave_bytes * tr__wave_parts(t->plan, t->kind), now);
}

static void use_wave_grad(table *t, tr_plan_step *step, int32_t now) {
    const tr_unit_program *unit = t->plan->units[step->unit].program;
    step->buffer[TR_SLOT_WAVE_GRAD] =
        use(t, &t->wave_grad[step->unit], TR_LEDGER_activations,
            unit->wave_bytes * tr__wave_parts(t->plan, t->kind), now);
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
    if (!tr__wave_is_step(unit)) {
        use_wave_grad(t, step, now);
    }
}

static void use_temp(table *t, tr_plan_step *step, int64_t bytes, int32_t now) {
    int none = -1;
    step->buffer[TR_SLOT_TEMP] = use(t, &none, TR_LEDGER_workspace, bytes, now);
}

// ---- flat buffers
// ---------------------------------------------------------------------

static int64_t flat_bytes(const tr_flat *flat, size_t element) {
    return flat->count * (int64_t)element;
}

// Do parameters lie in the flat's own buffer, whole? Else they are brought into others.
static bool params_stay(const table *t) {
    return tr__plan_stage(t->plan) < 3 &&
           t->plan->request.param_home == TR_SPACE_DEVICE;
}

// What every rank has room for of its part.
static int64_t part_elements(const tr_flat *flat) {
    return tr__min_i64(flat->shard, flat->count);
}

// f32 gradients that pass: of a wave, or of one micro-batch where they are folded.
static int use_grad(table *t, int flat, int32_t now) {
    const tr_flat *f = &t->plan->flats[flat];
    return use(t, &t->grad[flat], TR_LEDGER_gradients, flat_bytes(f, sizeof(float)),
               now);
}

static int use_sum(table *t, int flat, int32_t now) {
    const tr_flat *f = &t->plan->flats[flat];
    return use(t, &t->sum[flat], TR_LEDGER_gradients, tr__sums_bytes(t->plan, f->count),
               now);
}

static int use_reduced(table *t, int flat, int32_t now) {
    int64_t bytes = tr__sums_bytes(t->plan, part_elements(&t->plan->flats[flat]));
    return use(t, &t->reduced[flat], TR_LEDGER_gradients, bytes, now);
}

static int use_part(table *t, int flat, int32_t now) {
    int64_t bytes = part_elements(&t->plan->flats[flat]) * tr__param_bytes(t->plan);
    return use(t, &t->part[flat], TR_LEDGER_parameters, bytes, now);
}

// All that this rank has of the part.
static int use_staged(table *t, int *staged, tr_part part, int flat, int32_t now) {
    const tr_flat_range *range = tr__flat_range(&t->plan->flats[flat], part);
    return use_in(t, TR_SPACE_HOST, &staged[flat], TR_LEDGER_staging,
                  t->plan->buffers[range->buffer].bytes, now);
}

static int use_ring(table *t, int slot, tr_part part, int32_t now) {
    int64_t bytes = tr__nvme_bytes(t->plan, part, t->plan->request.update_elements);
    return use_in(t, TR_SPACE_HOST, &t->ring[slot][part], TR_LEDGER_staging, bytes,
                  now);
}

// Are f32 gradients of buffers that pass?
static bool grads_pass(const table *t, int flat) {
    return tr__plan_folds(t->plan) || tr__flat_grads_pass(t->plan, flat);
}

static int32_t param_place(table *t, int flat, int32_t now) {
    const tr_flat *f = &t->plan->flats[flat];
    return params_stay(t) ? f->param.buffer
                          : use(t, &t->param[flat], TR_LEDGER_parameters,
                                f->count * tr__param_bytes(t->plan), now);
}

static int32_t grad_place(table *t, int flat, int32_t now) {
    return grads_pass(t, flat) ? use_grad(t, flat, now)
                               : t->plan->flats[flat].sums.buffer;
}

static void bind(table *t, tr_plan_step *step, const tr_program *program, int32_t now) {
    const tr_plan_unit *unit = &t->plan->units[step->unit];
    uint32_t reads = tr__program_flats(program, TR_PLACE_PARAM);
    uint32_t makes = tr__program_flats(program, TR_PLACE_PARAM_GRAD);
    tr_binding binding;
    for (int f = 0; f < TR_UNIT_FLATS_MAX; f++) {
        bool read = reads >> f & 1, made = makes >> f & 1;
        binding.param[f] = read ? param_place(t, unit->flats[f], now) : -1;
        binding.grad[f] = made ? grad_place(t, unit->flats[f], now) : -1;
    }
    if (t->status == TR_OK) {
        step->binding = tr__plan_bind(t->plan, &binding, t->err);
        t->status = step->binding < 0 ? TR_MEMORY : TR_OK;
    }
}

// Gradients of the unit's own flat buffer, where the backward has left them.
static void use_gauged(table *t, tr_plan_step *step, int32_t now) {
    tr_binding binding;
    for (int f = 0; f < TR_UNIT_FLATS_MAX; f++) {
        binding.param[f] = binding.grad[f] = -1;
    }
    binding.grad[0] = grad_place(t, t->plan->units[step->unit].flats[0], now);
    if (t->status == TR_OK) {
        step->binding = tr__plan_bind(t->plan, &binding, t->err);
        t->status = step->binding < 0 ? TR_MEMORY : TR_OK;
    }
}

// Sums that stay are the flat's own.
static void use_fold(table *t, tr_plan_step *step, int32_t now) {
    step->buffer[TR_SLOT_INPUT] = use_grad(t, step->unit, now);
    if (tr__flat_grads_pass(t->plan, step->unit)) {
        step->buffer[TR_SLOT_OUTPUT] = use_sum(t, step->unit, now);
    }
    t->grad[step->unit] = -1; // the next micro-batch makes another
}

// What a wave has made, until the moving step `now` is done.
static int take_made(table *t, int flat, int32_t now) {
    bool folds = tr__plan_folds(t->plan);
    int buffer =
        folds ? use_sum(t, flat, t->waited[now]) : use_grad(t, flat, t->waited[now]);
    *(folds ? &t->sum[flat] : &t->grad[flat]) = -1;
    return buffer;
}

// What is under way lives until somebody has waited for it.
static void use_reduce(table *t, tr_plan_step *step, int32_t now) {
    if (!tr__flat_grads_pass(t->plan, step->unit)) {
        return; // in place, in what lives always
    }
    step->buffer[TR_SLOT_INPUT] = take_made(t, step->unit, now);
    if (t->plan->flats[step->unit].leaves) {
        t->reduced[step->unit] = -1;
        step->buffer[TR_SLOT_OUTPUT] = use_reduced(t, step->unit, now);
        use_reduced(t, step->unit, t->waited[now]);
    }
}

// What a unit is given is in one buffer on the device until it has left, and in another
// one from when it sets out to come back.
static void use_boundary(table *t, tr_plan_step *step, int32_t now) {
    bool leaves = step->kind == TR_STEP_evict;
    tr_slot here = leaves ? TR_SLOT_INPUT : TR_SLOT_OUTPUT;
    tr_slot there = leaves ? TR_SLOT_OUTPUT : TR_SLOT_INPUT;
    int64_t bytes = t->plan->units[step->unit].program->input_bytes;
    int *entry = at(t->boundary, t, step->unit, step->micro);
    int *away = at(t->away, t, step->unit, step->micro);
    const int32_t moments[] = {now, t->waited[now]};
    for (int i = 0; i < 2; i++) {
        step->buffer[here] = use(t, entry, TR_LEDGER_boundary, bytes, moments[i]);
        step->buffer[there] = use_in(t, t->plan->request.boundary_home, away,
                                     TR_LEDGER_boundary, bytes, moments[i]);
    }
    *entry = leaves ? -1 : *entry;
}

static void use_evict(table *t, tr_plan_step *step, int32_t now) {
    if (tr__part_is_on_nvme(t->plan, TR_PART_GRAD)) {
        t->staged_grad[step->unit] = -1;
        step->buffer[TR_SLOT_OUTPUT] =
            use_staged(t, t->staged_grad, TR_PART_GRAD, step->unit, now);
        use_staged(t, t->staged_grad, TR_PART_GRAD, step->unit, t->waited[now]);
    }
    if (!tr__flat_grads_pass(t->plan, step->unit)) {
        return;
    }
    step->buffer[TR_SLOT_INPUT] = t->plan->request.ranks > 1
                                      ? use_reduced(t, step->unit, t->waited[now])
                                      : take_made(t, step->unit, now);
}

// What is about to leave.
static void use_square(table *t, tr_plan_step *step, int32_t now) {
    int32_t *input = &step->buffer[TR_SLOT_INPUT];
    if (tr__flat_grads_pass(t->plan, step->unit)) {
        *input = t->plan->request.ranks > 1 ? use_reduced(t, step->unit, now)
                 : tr__plan_folds(t->plan)  ? use_sum(t, step->unit, now)
                                            : use_grad(t, step->unit, now);
    }
}

// Into or out of staging; of an update's piece, into or out of its slot.
static void use_transfer(table *t, tr_plan_step *step, int32_t now) {
    bool read = step->kind == TR_STEP_read;
    int32_t *buffer = &step->buffer[read ? TR_SLOT_OUTPUT : TR_SLOT_INPUT];
    if (step->slot >= 0) {
        *buffer = use_ring(t, step->slot, step->part, now);
        use_ring(t, step->slot, step->part, t->waited[now]);
        return;
    }
    int *staged = t->staged_grad;
    if (read) { // perhaps again, before what was read is fetched
        staged = t->staged_param[step->unit] < 0 ? t->staged_param : t->staged_later;
    }
    *buffer = use_staged(t, staged, step->part, step->unit, now);
    use_staged(t, staged, step->part, step->unit, t->waited[now]);
}

static void use_update(table *t, tr_plan_step *step, int32_t now) {
    int parts = TR_PART_STATE + t->plan->request.optimizer_states;
    for (int part = 0; part < parts && step->slot >= 0 && step->count > 0; part++) {
        bool later = step->kind == TR_STEP_measure && part == TR_PART_COPY;
        if (!later && tr__part_is_on_nvme(t->plan, (tr_part)part)) {
            step->buffer[tr__update_slot((tr_part)part)] =
                use_ring(t, step->slot, (tr_part)part, now);
        }
    }
}

// All of it with one rank, else this rank's part, to be gathered.
static void use_fetch(table *t, tr_plan_step *step, int32_t now) {
    bool whole = t->plan->request.ranks == 1;
    tr_part used = tr__used_part(t->plan);
    if (tr__part_is_on_nvme(t->plan, used) && t->plan->flats[step->unit].count > 0) {
        step->buffer[TR_SLOT_INPUT] =
            use_staged(t, t->staged_param, used, step->unit, t->waited[now]);
        t->staged_param[step->unit] = t->staged_later[step->unit];
        t->staged_later[step->unit] = -1;
    }
    if (t->plan->request.param_home == TR_SPACE_DEVICE) {
        return;
    }
    *(whole ? &t->param[step->unit] : &t->part[step->unit]) = -1;
    step->buffer[TR_SLOT_OUTPUT] =
        whole ? param_place(t, step->unit, now) : use_part(t, step->unit, now);
    if (whole) {
        param_place(t, step->unit, t->waited[now]);
    } else {
        use_part(t, step->unit, t->waited[now]);
    }
}

// What ranks measure, and the norms that it makes.
static int use_measured(table *t, int32_t now) {
    const tr_plan *plan = t->plan;
    int64_t ranks = tr__norms_ranks(plan);
    return use(t, &t->measured,
               ranks > 1 ? TR_LEDGER_communication : TR_LEDGER_workspace,
               plan->norms.parts * ranks * (int64_t)sizeof(tr_squares), now);
}

static int use_totals(table *t, int32_t now) {
    int64_t bytes = (int64_t)t->plan->param_count * (int64_t)sizeof(tr_squares);
    return t->plan->request.tensor_norms
               ? use(t, &t->totals, TR_LEDGER_workspace, bytes, now)
               : -1;
}

static void use_total(table *t, tr_plan_step *step, int32_t now) {
    step->buffer[TR_SLOT_INPUT] = use_measured(t, now);
    step->buffer[TR_SLOT_OUTPUT] = use_totals(t, now);
}

static void use_gather(table *t, tr_plan_step *step, int32_t now) {
    if (step->part == TR_PART_NORMS) {
        step->buffer[TR_SLOT_OUTPUT] = use_measured(t, t->waited[now]);
    }
    if (step->part != TR_PART_PARAM || params_stay(t)) {
        return;
    }
    t->param[step->unit] = -1;
    step->buffer[TR_SLOT_OUTPUT] = param_place(t, step->unit, now);
    param_place(t, step->unit, t->waited[now]);
    if (t->plan->request.param_home != TR_SPACE_DEVICE) {
        step->buffer[TR_SLOT_INPUT] = use_part(t, step->unit, t->waited[now]);
    }
}

// Sums of another type, as f32.
static void use_unfold(table *t, tr_plan_step *step, int32_t now) {
    if (tr__plan_folds(t->plan)) {
        use_temp(t, step, TR_UNFOLD_ELEMENTS * (int64_t)sizeof(float), now);
    }
}

// For each step of `stream`, the first step that waits for it; the last of all where
// only the sequence's end does.
static void find_waits(table *t, tr_stream stream) {
    const tr_sequence *sequence = &t->plan->sequences[t->kind];
    int32_t done = 0, number = 0;
    size_t next = 0; // whom nobody has waited for yet
    for (size_t i = 0; i < sequence->count; i++) {
        const tr_plan_step *step = &sequence->steps[i];
        int32_t wait = tr__step_wait(step, stream);
        done = wait > done ? wait : done;
        for (; number < done && next < i; next++) {
            if (sequence->steps[next].stream == stream) {
                t->waited[next] = (int32_t)i;
                number++;
            }
        }
        if (step->stream == stream) {
            t->waited[i] = (int32_t)sequence->count - 1;
        }
    }
}

// ---- all kinds
// -----------------------------------------------------------------------

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
        if (step->backward) {
            use_wave_grad(t, step, now);
        }
        if (t->kind == TR_SEQUENCE_TRAIN) {
            use_temp(t, step, tr__combine_bytes(t->plan, step), now);
        }
        break;
    case TR_STEP_track:
        use_wave(t, step, now);
        break;
    case TR_STEP_clear:
        if (step->part == TR_PART_GRAD) {
            step->buffer[TR_SLOT_OUTPUT] = use_grad(t, step->unit, now);
        }
        break;
    case TR_STEP_gauge:
        use_gauged(t, step, now);
        break;
    case TR_STEP_fold:
        use_fold(t, step, now);
        break;
    case TR_STEP_reduce:
        use_reduce(t, step, now);
        break;
    case TR_STEP_evict:
        (tr__step_is_of_boundary(step) ? use_boundary : use_evict)(t, step, now);
        break;
    case TR_STEP_fetch:
        (tr__step_is_of_boundary(step) ? use_boundary : use_fetch)(t, step, now);
        break;
    case TR_STEP_gather:
        use_gather(t, step, now);
        break;
    case TR_STEP_read:
    case TR_STEP_write:
        use_transfer(t, step, now);
        break;
    case TR_STEP_square:
        use_square(t, step, now);
        use_unfold(t, step, now);
        break;
    case TR_STEP_measure:
        use_update(t, step, now);
        step->buffer[TR_SLOT_INPUT_GRAD] = use_measured(t, now);
        use_unfold(t, step, now);
        break;
    case TR_STEP_total:
        use_total(t, step, now);
        break;
    case TR_STEP_update:
        use_update(t, step, now);
        step->buffer[TR_SLOT_INPUT_GRAD] = use_totals(t, now);
        use_unfold(t, step, now);
        break;
    case TR_STEP_norm:
        use_unfold(t, step, now);
        break;
    default:
        break;
    }
    if (program) {
        bind(t, step, program, now);
        use_temp(t, step, program->temp_bytes, now);
        t->plan->flops += t->kind == TR_SEQUENCE_EVALUATE ? 0 : program->cost.flops;
    }
}

static tr_status name_buffers(tr_plan *plan, tr_sequence_kind kind, tr_error *err) {
    tr_sequence *sequence = &plan->sequences[kind];
    table t = {.plan = plan, .kind = kind, .measured = -1, .totals = -1, .err = err};
    size_t units = (size_t)plan->unit_count;
    t.micros = kind == TR_SEQUENCE_TRAIN ? plan->request.accumulation_steps : 1;
    t.boundary = entries((units + 1) * (size_t)t.micros);
    t.gradient = entries((units + 1) * (size_t)t.micros);
    t.away = entries(units * (size_t)t.micros);
    t.saved = entries(units * (size_t)t.micros);
    t.wave = entries(units);
    t.wave_grad = entries(units);
    t.param = entries(plan->flat_count);
    t.part = entries(plan->flat_count);
    t.reduced = entries(plan->flat_count);
    t.grad = entries(plan->flat_count);
    t.sum = entries(plan->flat_count);
    t.staged_param = entries(plan->flat_count);
    t.staged_later = entries(plan->flat_count);
    t.staged_grad = entries(plan->flat_count);
    memset(t.ring, -1, sizeof t.ring);
    t.waited = tr__calloc(sequence->count, sizeof *t.waited);
    if (!t.boundary || !t.gradient || !t.away || !t.saved || !t.wave || !t.wave_grad ||
        !t.param || !t.part || !t.reduced || !t.grad || !t.sum || !t.waited ||
        !t.staged_param || !t.staged_later || !t.staged_grad) {
        t.status = tr_fail(err, TR_MEMORY, "no memory for the plan's lifetimes");
    } else {
        find_waits(&t, TR_STREAM_COMM);
        find_waits(&t, TR_STREAM_COPY);
        find_waits(&t, TR_STREAM_NVME);
    }
    for (size_t i = 0; i < sequence->count && t.status == TR_OK; i++) {
        use_all(&t, &sequence->steps[i], (int32_t)i);
    }
    tr__free(t.boundary);
    tr__free(t.gradient);
    tr__free(t.away);
    tr__free(t.saved);
    tr__free(t.wave);
    tr__free(t.wave_grad);
    tr__free(t.param);
    tr__free(t.part);
    tr__free(t.reduced);
    tr__free(t.grad);
    tr__free(t.sum);
    tr__free(t.staged_param);
    tr__free(t.staged_later);
    tr__free(t.staged_grad);
    tr__free(t.waited);
    return t.status;
}

// ---- what lives always
// ---------------------------------------------------------------

static tr_status keep_in(tr_plan *plan, tr_space space, tr_ledger_category category,
                         int64_t bytes, int *buffer, tr_error *err) {
    *buffer = tr__plan_buffer(
        plan,
        (tr_buffer){
            .category = category, .space = space, .sequence = -1, .bytes = bytes},
        err);
    return *buffer < 0 ? TR_MEMORY : TR_OK;
}

static tr_status keep(tr_plan *plan, tr_ledger_category category, int64_t bytes,
                      int *buffer, tr_error *err) {
    return keep_in(plan, TR_SPACE_DEVICE, category, bytes, buffer, err);
}

// Weights and checkpoints pass through it, block by block.
static tr_status keep_exchange(tr_plan *plan, tr_error *err) {
    int64_t block = tr__nvme_elements(plan, tr__used_part(plan)), most = 0;
    if (!tr__plan_uses_nvme(plan)) {
        return TR_OK;
    }
    for (size_t i = 0; i < plan->buffer_count; i++) {
        const tr_buffer *buffer = &plan->buffers[i];
        most = tr__max_i64(most, buffer->space == TR_SPACE_NVME ? buffer->bytes : 0);
    }
    int64_t elements = tr__round_up(tr__ceil_div(most, (int64_t)sizeof(float)), block);
    elements = tr__min_i64(elements, TR_EXCHANGE_ELEMENTS);
    return keep_in(plan, TR_SPACE_HOST, TR_LEDGER_staging,
                   elements * tr__exchange_bytes(plan), &plan->exchange, err);
}

static tr_status keep_rings(tr_plan *plan, tr_error *err) {
    const tr_plan_request *r = &plan->request;
    tr_status status = TR_OK;
    plan->slot_bytes = tr__data_offset(plan->data, r->micro_batch, TR_DATA_KINDS);
    plan->slots[0] = 2 * r->wave; // the next wave is read while one is at work
    plan->slots[1] = r->inference ? 1 : 2;
    for (int i = 0; i < 2 && status == TR_OK; i++) {
        bool there = i == 1 || !r->inference;
        int64_t bytes = 0;
        if (there && !tr__mul_i64(plan->slots[i], plan->slot_bytes, &bytes)) {
            return tr_fail(err, TR_USAGE,
                           "the ring of data needs more than 2^63 bytes");
        }
        status = keep(plan, TR_LEDGER_data, bytes, &plan->data_ring[i], err);
    }
    return status;
}

// The record of the step, of all ranks, and what moves between them on its way.
static tr_status keep_records(tr_plan *plan, tr_error *err) {
    const tr_plan_request *r = &plan->request;
    int64_t bytes = 0;
    if (r->inference) {
        plan->record.buffer = plan->staging = -1;
        return TR_OK;
    }
    if (!tr__mul_i64(plan->record.doubles, r->ranks * (int64_t)sizeof(double),
                     &bytes)) {
        return tr_fail(err, TR_USAGE,
                       "the record of a step needs more than 2^63 bytes");
    }
    tr_status status =
        keep(plan, r->ranks > 1 ? TR_LEDGER_communication : TR_LEDGER_workspace, bytes,
             &plan->record.buffer, err);
    return status == TR_OK ? keep(plan, TR_LEDGER_communication,
                                  tr__comm_staging_bytes(r->ranks), &plan->staging, err)
                           : status;
}

// Rings of data slots, sums and the answer.
static tr_status name_always(tr_plan *plan, tr_error *err) {
    const tr_unit_program *last = plan->units[plan->unit_count - 1].program;
    tr_status status = keep_rings(plan, err);
    if (status == TR_OK) {
        status = keep_records(plan, err);
    }
    if (status == TR_OK) {
        status = keep_exchange(plan, err);
    }
    if (status == TR_OK) {
        status =
            keep(plan, TR_LEDGER_workspace, TR_SUMS * sizeof(double), &plan->sums, err);
    }
    return status == TR_OK && plan->request.inference
               ? keep(plan, TR_LEDGER_workspace, last->answer_bytes, &plan->answer, err)
               : status;
}

tr_status tr__pass_lifetimes(tr_plan *plan, tr_error *err) {
    tr_status status = name_always(plan, err);
    for (int kind = 0; kind < TR_SEQUENCES && status == TR_OK; kind++) {
        status = name_buffers(plan, (tr_sequence_kind)kind, err);
    }
    return status;
}

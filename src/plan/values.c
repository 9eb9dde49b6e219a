// Pass: the buffers that steps work on. Each step's slots and binding name them; how
// long a buffer lives and where it lies is found later (lifetimes.c, layout.c).
#include "base/checked.h"
#include "base/memory.h"
#include "comm/comm.h"
#include "ops/accumulate/accumulate.h"
#include "ops/optimizer_measure.h"
#include "plan/offsets.h"
#include "plan/passes.h"
#include "plan/plan.h"
#include "plan/residency.h"
#include "plan/wave.h"

#include <string.h>

// Buffers found so far, by what they hold; -1: none yet.
typedef struct table {
    tr_plan *plan;
    tr_sequence_kind kind;
    int64_t micros;
    int *boundary, *gradient; // [units + 1][micros]
    int *away;                // [units][micros] a unit's inputs, elsewhere
    int *saved;               // [units][micros]
    int *wave, *wave_grad;    // [units]
    int *packed, *packed_of;  // [2 units] what was packed; the newest parameters then
    int *param, *part; // [flats] parameters that are there; this rank's part, fetched
    int *grad, *sum;   // gradients that pass; the sums that they are accumulated into
    int *reduced;      // this rank's part of what was reduced
    int *evicted;      // what waits on the host to be added
    // [flats] parameters from NVMe that are next to be fetched, and those after them;
    // gradients on their way to NVMe.
    int *staged_param, *staged_later, *staged_grad;
    int ring[TR_UPDATE_SLOTS_MAX][TR_PARTS]; // of the update's pieces
    // Where sums of another type become f32: for the device, for the host.
    int convert[2][TR_STEP_KINDS];
    int measured; // what ranks have measured
    int totals;   // the norms of tensors
    int gathered; // all ranks' parts of wave tensors, until they are merged
    tr_error *err;
    tr_status status;
} table;

// The buffer that `*entry` holds, made where there is none yet; -1: of no bytes.
static int use_in(table *t, tr_space space, int *entry, tr_ledger_category category,
                  int64_t bytes) {
    if (bytes == 0 || t->status != TR_OK) {
        return -1;
    }
    if (*entry < 0) {
        tr_buffer buffer = {.category = category,
                            .space = space,
                            .sequence = t->kind,
                            .bytes = bytes,
                            .first = INT32_MAX,
                            .last = -1};
        *entry = tr__plan_buffer(t->plan, buffer, t->err);
        t->status = *entry < 0 ? TR_MEMORY : TR_OK;
    }
    return *entry;
}

static int use(table *t, int *entry, tr_ledger_category category, int64_t bytes) {
    return use_in(t, TR_SPACE_DEVICE, entry, category, bytes);
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

static void use_input(table *t, tr_plan_step *step) {
    const tr_unit_program *unit = t->plan->units[step->unit].program;
    step->buffer[TR_SLOT_INPUT] = use(t, at(t->boundary, t, step->unit, step->micro),
                                      TR_LEDGER_boundary, unit->input_bytes);
}

static void use_output(table *t, tr_plan_step *step) {
    const tr_unit_program *unit = t->plan->units[step->unit].program;
    step->buffer[TR_SLOT_OUTPUT] =
        use(t, at(t->boundary, t, step->unit + 1, step->micro), TR_LEDGER_boundary,
            unit->output_bytes);
}

static void use_saved(table *t, tr_plan_step *step) {
    const tr_unit_program *unit = t->plan->units[step->unit].program;
    step->buffer[TR_SLOT_SAVED] = use(t, at(t->saved, t, step->unit, step->micro),
                                      TR_LEDGER_activations, unit->saved_bytes);
}

static void use_wave(table *t, tr_plan_step *step) {
    const tr_unit_program *unit = t->plan->units[step->unit].program;
    step->buffer[TR_SLOT_WAVE] =
        use(t, &t->wave[step->unit], TR_LEDGER_activations,
            unit->wave_bytes * tr__wave_parts(t->plan, t->kind));
}

static void use_wave_grad(table *t, tr_plan_step *step) {
    const tr_unit_program *unit = t->plan->units[step->unit].program;
    step->buffer[TR_SLOT_WAVE_GRAD] =
        use(t, &t->wave_grad[step->unit], TR_LEDGER_activations,
            unit->wave_bytes * tr__wave_parts(t->plan, t->kind));
}

static void use_merged(table *t, tr_plan_step *step) {
    (step->backward ? use_wave_grad : use_wave)(t, step);
}

static int use_gathered(table *t, const tr_plan_step *step) {
    return use(t, &t->gathered, TR_LEDGER_communication,
               tr__wave_gathered(t->plan, step));
}

static void use_pack(table *t, tr_plan_step *step) {
    use_merged(t, step);
    step->buffer[TR_SLOT_OUTPUT] = use_gathered(t, step);
}

// What is packed is where it is gathered.
static void use_gather_wave(table *t, tr_plan_step *step) {
    if (tr__wave_parts(t->plan, t->kind) == 1) {
        use_merged(t, step);
    }
    step->buffer[TR_SLOT_OUTPUT] = use_gathered(t, step);
}

static void use_merge(table *t, tr_plan_step *step) {
    use_merged(t, step);
    step->buffer[TR_SLOT_INPUT] = use_gathered(t, step);
    t->gathered = -1;
}

// Does any segment's backward touch what lies in the place?
static bool backward_touches(const tr_unit_program *unit, tr_place place) {
    bool touches = false;
    for (int s = 0; s < unit->segments; s++) {
        touches = touches || tr__program_flats(&unit->backward[s], place);
    }
    return touches;
}

static void use_gradients(table *t, tr_plan_step *step) {
    const tr_unit_program *unit = t->plan->units[step->unit].program;
    int *before = at(t->gradient, t, step->unit, step->micro);
    int *after = at(t->gradient, t, step->unit + 1, step->micro);
    step->buffer[TR_SLOT_OUTPUT_GRAD] =
        use(t, after, TR_LEDGER_boundary, unit->output_grad_bytes);
    if (unit->derived.in_place) {
        *before = *after;
    }
    step->buffer[TR_SLOT_INPUT_GRAD] =
        use(t, before, TR_LEDGER_boundary, unit->input_grad_bytes);
    if (!tr__wave_is_step(unit) && backward_touches(unit, TR_PLACE_WAVE_GRAD)) {
        use_wave_grad(t, step);
    }
}

static void use_temp(table *t, tr_plan_step *step, int64_t bytes) {
    int none = -1;
    step->buffer[TR_SLOT_TEMP] = use(t, &none, TR_LEDGER_workspace, bytes);
}

// ---- flat buffers

static int64_t flat_bytes(const tr_flat *flat, size_t element) {
    return flat->count * (int64_t)element;
}

// Do parameters lie in the flat's own buffer, whole? Else they are brought into others.
static bool params_stay(const table *t) {
    return tr__plan_stage(t->plan) < 3 &&
           t->plan->request.param_placement == TR_SPACE_DEVICE;
}

// What every rank has room for of its part.
static int64_t part_elements(const tr_flat *flat) {
    return tr__min_i64(flat->shard, flat->count);
}

// f32 gradients that pass: of a wave, or of one micro-batch where they are accumulated.
static int use_grad(table *t, int flat) {
    const tr_flat *f = &t->plan->flats[flat];
    return use(t, &t->grad[flat], TR_LEDGER_gradients, flat_bytes(f, sizeof(float)));
}

static int use_sum(table *t, int flat) {
    const tr_flat *f = &t->plan->flats[flat];
    return use(t, &t->sum[flat], TR_LEDGER_gradients,
               tr__sums_bytes(t->plan, f->count));
}

static int use_reduced(table *t, int flat) {
    int64_t bytes = tr__sums_bytes(t->plan, part_elements(&t->plan->flats[flat]));
    return use(t, &t->reduced[flat], TR_LEDGER_gradients, bytes);
}

static int use_evicted(table *t, int flat) {
    int64_t bytes = tr__sums_bytes(t->plan, part_elements(&t->plan->flats[flat]));
    return use_in(t, TR_SPACE_HOST, &t->evicted[flat], TR_LEDGER_gradients, bytes);
}

// Of so many parameters in memory: whole lines of the cache.
static int64_t param_bytes(const table *t, int64_t count) {
    return tr__round_up(count * tr__param_bytes(t->plan), TR_ALIGNMENT);
}

static int use_part(table *t, int flat) {
    int64_t count = part_elements(&t->plan->flats[flat]);
    return use(t, &t->part[flat], TR_LEDGER_parameters, param_bytes(t, count));
}

// All that this rank has of the part.
static int use_staged(table *t, int *staged, tr_part part, int flat) {
    const tr_flat_range *range = tr__flat_range(&t->plan->flats[flat], part);
    return use_in(t, TR_SPACE_HOST, &staged[flat], TR_LEDGER_staging,
                  t->plan->buffers[range->buffer].bytes);
}

static int use_ring(table *t, int slot, tr_part part) {
    int64_t bytes = tr__nvme_bytes(t->plan, part, t->plan->request.update_elements);
    return use_in(t, TR_SPACE_HOST, &t->ring[slot][part], TR_LEDGER_staging, bytes);
}

// Are f32 gradients of buffers that pass?
static bool grads_pass(const table *t, int flat) {
    return tr__plan_accumulates(t->plan) || tr__flat_grads_pass(t->plan, flat);
}

static int32_t param_place(table *t, int flat) {
    const tr_flat *f = &t->plan->flats[flat];
    return params_stay(t) ? f->param.buffer
                          : use(t, &t->param[flat], TR_LEDGER_parameters,
                                param_bytes(t, f->count));
}

static int32_t grad_place(table *t, int flat) {
    return grads_pass(t, flat) ? use_grad(t, flat) : t->plan->flats[flat].sums.buffer;
}

static void bind(table *t, tr_plan_step *step, const tr_program *program) {
    const tr_plan_unit *unit = &t->plan->units[step->unit];
    uint32_t reads = tr__program_flats(program, TR_PLACE_PARAM);
    uint32_t makes = tr__program_flats(program, TR_PLACE_PARAM_GRAD);
    tr_binding binding;
    for (int f = 0; f < TR_UNIT_FLATS_MAX; f++) {
        bool read = reads >> f & 1, made = makes >> f & 1;
        binding.param[f] = read ? param_place(t, unit->flats[f]) : -1;
        binding.grad[f] = made ? grad_place(t, unit->flats[f]) : -1;
    }
    if (t->status == TR_OK) {
        step->binding = tr__plan_bind(t->plan, &binding, t->err);
        t->status = step->binding < 0 ? TR_MEMORY : TR_OK;
    }
}

// The newest of the buffers that have what is packed. Parameters that stay are packed
// once a step, others each time they are brought.
static int newest_packed(const table *t, const tr_plan_step *step,
                         const tr_program *program, tr_place place) {
    const tr_binding *binding = &t->plan->bindings[step->binding];
    int newest = 0;
    for (size_t i = 0; i < program->count && !params_stay(t); i++) {
        const tr_instruction *at = &program->instructions[i];
        if (at->packed.place == place) {
            int of = binding->param[at->in[at->desc.op->packed_input - 1].flat];
            newest = of > newest ? of : newest;
        }
    }
    return newest;
}

static void use_packed(table *t, tr_plan_step *step, const tr_program *program) {
    const tr_unit_program *unit = t->plan->units[step->unit].program;
    for (int i = 0; i < 2 && t->status == TR_OK; i++) {
        tr_place place = i == 0 ? TR_PLACE_PACKED : TR_PLACE_PACKED_BACKWARD;
        int *packed = &t->packed[2 * step->unit + i];
        int *of = &t->packed_of[2 * step->unit + i];
        if (tr__program_packs(program, place)) {
            int newest = newest_packed(t, step, program, place);
            *packed = *of == newest ? *packed : -1;
            *of = newest;
            step->buffer[tr__place_slot(place)] =
                use(t, packed, TR_LEDGER_packed, unit->packed_bytes[i]);
        }
    }
}

// Gradients of the unit's own flat buffer, where the backward has left them.
static void use_micro_norm(table *t, tr_plan_step *step) {
    tr_binding binding;
    for (int f = 0; f < TR_UNIT_FLATS_MAX; f++) {
        binding.param[f] = binding.grad[f] = -1;
    }
    binding.grad[0] = grad_place(t, t->plan->units[step->unit].flats[0]);
    if (t->status == TR_OK) {
        step->binding = tr__plan_bind(t->plan, &binding, t->err);
        t->status = step->binding < 0 ? TR_MEMORY : TR_OK;
    }
}

// Gradients that stay are in the flat's own sums.
static void use_micro_norm_tied(table *t, tr_plan_step *step) {
    if (tr__flat_grads_pass(t->plan, step->unit)) {
        step->buffer[TR_SLOT_INPUT] = use_grad(t, step->unit);
    }
}

// Sums that stay are the flat's own.
static void use_fold(table *t, tr_plan_step *step) {
    step->buffer[TR_SLOT_INPUT] = use_grad(t, step->unit);
    if (tr__flat_grads_pass(t->plan, step->unit)) {
        step->buffer[TR_SLOT_OUTPUT] = use_sum(t, step->unit);
    }
    t->grad[step->unit] = -1; // the next micro-batch makes another
}

// What a wave has made; the next wave makes another.
static int take_made(table *t, int flat) {
    bool accumulates = tr__plan_accumulates(t->plan);
    int buffer = accumulates ? use_sum(t, flat) : use_grad(t, flat);
    *(accumulates ? &t->sum[flat] : &t->grad[flat]) = -1;
    return buffer;
}

static void use_reduce(table *t, tr_plan_step *step) {
    if (!tr__flat_grads_pass(t->plan, step->unit)) {
        return; // in place, in what lives always
    }
    step->buffer[TR_SLOT_INPUT] = take_made(t, step->unit);
    if (t->plan->flats[step->unit].offloaded || step->apart) {
        t->reduced[step->unit] = -1;
        step->buffer[TR_SLOT_OUTPUT] = use_reduced(t, step->unit);
    }
}

// A unit's inputs are in one buffer on the device until they are evicted, and in
// another one from when they are fetched.
static void use_boundary(table *t, tr_plan_step *step) {
    bool evicts = step->kind == TR_STEP_evict;
    tr_slot here = evicts ? TR_SLOT_INPUT : TR_SLOT_OUTPUT;
    tr_slot there = evicts ? TR_SLOT_OUTPUT : TR_SLOT_INPUT;
    int64_t bytes = t->plan->units[step->unit].program->input_bytes;
    int *entry = at(t->boundary, t, step->unit, step->micro);
    int *away = at(t->away, t, step->unit, step->micro);
    step->buffer[here] = use(t, entry, TR_LEDGER_boundary, bytes);
    step->buffer[there] =
        use_in(t, t->plan->request.boundary_placement, away, TR_LEDGER_boundary, bytes);
    *entry = evicts ? -1 : *entry;
}

static void use_evict(table *t, tr_plan_step *step) {
    if (step->apart) {
        t->evicted[step->unit] = -1;
        step->buffer[TR_SLOT_OUTPUT] = use_evicted(t, step->unit);
    }
    if (tr__part_is_on_nvme(t->plan, TR_PART_GRAD)) {
        t->staged_grad[step->unit] = -1;
        step->buffer[TR_SLOT_OUTPUT] =
            use_staged(t, t->staged_grad, TR_PART_GRAD, step->unit);
    }
    if (!tr__flat_grads_pass(t->plan, step->unit)) {
        return;
    }
    step->buffer[TR_SLOT_INPUT] = tr__data_ranks(&t->plan->request) > 1
                                      ? use_reduced(t, step->unit)
                                      : take_made(t, step->unit);
}

// What is there already: reduced, or evicted; else, on the host, what has been made.
static void use_add(table *t, tr_plan_step *step) {
    if (step->stream == TR_STREAM_COMM) {
        step->buffer[TR_SLOT_INPUT] = use_reduced(t, step->unit);
    } else if (t->plan->request.discrete) {
        step->buffer[TR_SLOT_INPUT] = use_evicted(t, step->unit);
    } else {
        use_evict(t, step);
    }
}

// What is about to leave; on the host, what is there always.
static void use_square(table *t, tr_plan_step *step) {
    int32_t *input = &step->buffer[TR_SLOT_INPUT];
    if (step->stream != TR_STREAM_HOST && tr__flat_grads_pass(t->plan, step->unit)) {
        *input = tr__data_ranks(&t->plan->request) > 1 ? use_reduced(t, step->unit)
                 : tr__plan_accumulates(t->plan)       ? use_sum(t, step->unit)
                                                       : use_grad(t, step->unit);
    }
}

// Into or out of staging; of an update's piece, into or out of its slot.
static void use_transfer(table *t, tr_plan_step *step) {
    bool read = step->kind == TR_STEP_read;
    int32_t *buffer = &step->buffer[read ? TR_SLOT_OUTPUT : TR_SLOT_INPUT];
    if (step->slot >= 0) {
        *buffer = use_ring(t, step->slot, step->part);
        return;
    }
    int *staged = t->staged_grad;
    if (read) { // perhaps again, before what was read is fetched
        staged = t->staged_param[step->unit] < 0 ? t->staged_param : t->staged_later;
    }
    *buffer = use_staged(t, staged, step->part, step->unit);
}

static void use_update(table *t, tr_plan_step *step) {
    int parts = TR_PART_STATE + t->plan->request.optimizer_states;
    for (int part = 0; part < parts && step->slot >= 0 && step->count > 0; part++) {
        bool later = step->kind == TR_STEP_direction_norms && part == TR_PART_COPY;
        if (!later && tr__part_is_on_nvme(t->plan, (tr_part)part)) {
            step->buffer[TR_SLOT_PART + part] = use_ring(t, step->slot, (tr_part)part);
        }
    }
}

// All of it with one rank, else this rank's part, to be gathered.
static void use_fetch(table *t, tr_plan_step *step) {
    bool whole = tr__data_ranks(&t->plan->request) == 1;
    tr_part used = tr__used_part(t->plan);
    if (tr__part_is_on_nvme(t->plan, used) && t->plan->flats[step->unit].count > 0) {
        step->buffer[TR_SLOT_INPUT] = use_staged(t, t->staged_param, used, step->unit);
        t->staged_param[step->unit] = t->staged_later[step->unit];
        t->staged_later[step->unit] = -1;
    }
    if (t->plan->request.param_placement == TR_SPACE_DEVICE) {
        return;
    }
    *(whole ? &t->param[step->unit] : &t->part[step->unit]) = -1;
    step->buffer[TR_SLOT_OUTPUT] =
        whole ? param_place(t, step->unit) : use_part(t, step->unit);
}

// What ranks measure, and the norms that it makes.
static int use_measured(table *t) {
    const tr_plan *plan = t->plan;
    int64_t ranks = tr__norms_ranks(plan);
    return use_in(t, tr__norms_space(plan), &t->measured,
                  ranks > 1 ? TR_LEDGER_communication : TR_LEDGER_workspace,
                  plan->norms.parts * ranks * (int64_t)sizeof(tr_squares));
}

static int use_totals(table *t) {
    int64_t bytes = (int64_t)t->plan->param_count * (int64_t)sizeof(tr_squares);
    return t->plan->request.tensor_norms
               ? use_in(t, tr__norms_space(t->plan), &t->totals, TR_LEDGER_workspace,
                        bytes)
               : -1;
}

static void use_total(table *t, tr_plan_step *step) {
    step->buffer[TR_SLOT_INPUT] = use_measured(t);
    step->buffer[TR_SLOT_OUTPUT] = use_totals(t);
}

static void use_gather(table *t, tr_plan_step *step) {
    if (step->part == TR_PART_WAVE) {
        use_gather_wave(t, step);
        return;
    }
    if (step->part == TR_PART_NORMS) {
        step->buffer[TR_SLOT_OUTPUT] = use_measured(t);
    }
    if (step->part != TR_PART_PARAM || params_stay(t)) {
        return;
    }
    t->param[step->unit] = -1;
    step->buffer[TR_SLOT_OUTPUT] = param_place(t, step->unit);
    if (t->plan->request.param_placement != TR_SPACE_DEVICE) {
        step->buffer[TR_SLOT_INPUT] = use_part(t, step->unit);
    }
}

// Sums of another type, as f32, where who launches the step reaches them. Steps that
// follow each other share the memory for it: on the host's stream they are not done
// when the next one is issued.
static void use_convert(table *t, tr_plan_step *step) {
    bool square = step->kind == TR_STEP_gradient_squares,
         host = step->stream == TR_STREAM_HOST;
    bool alone = step->guard == TR_GUARD_DEFERRED || (square && !host);
    int none = -1, *shared = &t->convert[host][square ? TR_STEP_norm : step->kind];
    tr_space space = host ? tr__plan_shared_space(t->plan) : TR_SPACE_DEVICE;
    if (tr__plan_accumulates(t->plan)) {
        step->buffer[TR_SLOT_TEMP] =
            use_in(t, space, alone ? &none : shared, TR_LEDGER_workspace,
                   TR_CONVERT_ELEMENTS * (int64_t)sizeof(float));
    }
}

// ---- all kinds

static void use_backward(table *t, tr_plan_step *step) {
    const tr_unit_program *unit = t->plan->units[step->unit].program;
    if (any(unit->derived.reads_input)) {
        use_input(t, step);
    }
    if (any(unit->derived.reads_output)) {
        use_output(t, step);
    }
    use_saved(t, step);
    use_wave(t, step);
    use_gradients(t, step);
}

static void use_forward(table *t, tr_plan_step *step) {
    const tr_program *program = tr__step_program(t->plan, step, t->kind);
    bool later = t->plan->units[step->unit].program->segments > 1;
    use_input(t, step);
    use_output(t, step);
    if (t->kind != TR_SEQUENCE_INFERENCE && (!step->saves_nothing || later)) {
        use_saved(t, step);
    }
    if (tr__program_flats(program, TR_PLACE_WAVE)) { // an evaluation needs none
        use_wave(t, step);
    }
}

static void use_recompute(table *t, tr_plan_step *step) {
    use_input(t, step);
    use_saved(t, step);
    use_wave(t, step);
}

static void use_clear(table *t, tr_plan_step *step) {
    if (step->part == TR_PART_GRAD) {
        step->buffer[TR_SLOT_OUTPUT] = use_grad(t, step->unit);
    }
}

static void use_evict_or_boundary(table *t, tr_plan_step *step) {
    (tr__step_is_of_boundary(step) ? use_boundary : use_evict)(t, step);
}

static void use_fetch_or_boundary(table *t, tr_plan_step *step) {
    (tr__step_is_of_boundary(step) ? use_boundary : use_fetch)(t, step);
}

static void use_leaving_squares(table *t, tr_plan_step *step) {
    use_square(t, step);
    use_convert(t, step);
}

static void use_measure(table *t, tr_plan_step *step) {
    use_update(t, step);
    step->buffer[TR_SLOT_NORMS] = use_measured(t);
    use_convert(t, step);
}

static void use_last_update(table *t, tr_plan_step *step) {
    use_update(t, step);
    step->buffer[TR_SLOT_NORMS] = use_totals(t);
    use_convert(t, step);
}

// Kinds that have none name no buffers but those of their program.
static void (*const use_of[TR_STEP_KINDS])(table *, tr_plan_step *) = {
    [TR_STEP_forward] = use_forward,
    [TR_STEP_recompute] = use_recompute,
    [TR_STEP_backward] = use_backward,
    [TR_STEP_pack] = use_pack,
    [TR_STEP_merge] = use_merge,
    [TR_STEP_track] = use_wave,
    [TR_STEP_clear] = use_clear,
    [TR_STEP_micro_norm] = use_micro_norm,
    [TR_STEP_micro_norm_tied] = use_micro_norm_tied,
    [TR_STEP_accumulate] = use_fold,
    [TR_STEP_reduce] = use_reduce,
    [TR_STEP_evict] = use_evict_or_boundary,
    [TR_STEP_add] = use_add,
    [TR_STEP_fetch] = use_fetch_or_boundary,
    [TR_STEP_gather] = use_gather,
    [TR_STEP_read] = use_transfer,
    [TR_STEP_write] = use_transfer,
    [TR_STEP_gradient_squares] = use_leaving_squares,
    [TR_STEP_direction_norms] = use_measure,
    [TR_STEP_tensor_norms] = use_total,
    [TR_STEP_update] = use_last_update,
    [TR_STEP_norm] = use_convert,
};

static void use_all(table *t, tr_plan_step *step) {
    const tr_program *program = tr__step_program(t->plan, step, t->kind);
    if (use_of[step->kind]) {
        use_of[step->kind](t, step);
    }
    if (program) {
        bind(t, step, program);
        use_packed(t, step, program);
        use_temp(t, step, program->temp_bytes);
        t->plan->flops += t->kind == TR_SEQUENCE_EVALUATE ? 0 : program->cost.flops;
    }
}

// The next `count` entries of the table's block, all empty.
static int *take(int **next, size_t count) {
    int *taken = *next;
    for (size_t i = 0; i < count; i++) {
        taken[i] = -1;
    }
    *next += count;
    return taken;
}

// *block: for the caller to free.
static bool make_table(table *t, int **block) {
    size_t units = (size_t)t->plan->unit_count, flats = t->plan->flat_count;
    size_t micros = (size_t)t->micros;
    int *next =
        tr__calloc((5 * units + 2) * micros + 6 * units + 9 * flats, sizeof *next);
    *block = next;
    if (!next) {
        return false;
    }
    t->boundary = take(&next, (units + 1) * micros);
    t->gradient = take(&next, (units + 1) * micros);
    t->away = take(&next, units * micros);
    t->saved = take(&next, units * micros);
    t->wave = take(&next, units);
    t->wave_grad = take(&next, units);
    t->packed = take(&next, 2 * units);
    t->packed_of = take(&next, 2 * units);
    t->param = take(&next, flats);
    t->part = take(&next, flats);
    t->reduced = take(&next, flats);
    t->evicted = take(&next, flats);
    t->grad = take(&next, flats);
    t->sum = take(&next, flats);
    t->staged_param = take(&next, flats);
    t->staged_later = take(&next, flats);
    t->staged_grad = take(&next, flats);
    memset(t->ring, -1, sizeof t->ring);
    memset(t->convert, -1, sizeof t->convert);
    return true;
}

static tr_status name_values(tr_plan *plan, tr_sequence_kind kind, tr_error *err) {
    tr_sequence *sequence = &plan->sequences[kind];
    table t = {.plan = plan, .kind = kind, .err = err};
    int *block = NULL;
    t.measured = t.totals = t.gathered = -1;
    t.micros = kind == TR_SEQUENCE_TRAIN ? plan->request.accumulation_steps : 1;
    if (!make_table(&t, &block)) {
        t.status = tr_fail(err, TR_MEMORY, "no memory for the plan's buffers");
    }
    for (size_t i = 0; i < sequence->count && t.status == TR_OK; i++) {
        use_all(&t, &sequence->steps[i]);
    }
    tr__free(block);
    return t.status;
}

tr_status tr__pass_values(tr_plan *plan, tr_error *err) {
    tr_status status = TR_OK;
    for (int kind = 0; kind < TR_SEQUENCES && status == TR_OK; kind++) {
        status = name_values(plan, (tr_sequence_kind)kind, err);
    }
    return status;
}

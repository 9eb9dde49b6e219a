#include "plan/values.h"

#include "base/checked.h"
#include "base/memory.h"
#include "comm/comm.h"
#include "ops/accumulate/accumulate.h"
#include "ops/optimizer_measure.h"
#include "plan/lower.h"
#include "plan/offsets.h"
#include "plan/passes.h"
#include "plan/plan.h"
#include "plan/residency.h"
#include "plan/roles.h"
#include "plan/wave.h"

#include <string.h>

// Buffers found so far, by what they hold; -1: none yet.
typedef struct tr_values {
    tr_plan *plan;
    tr_sequence_kind kind;
    tr_stand_ins now; // for the values of units' programs
    int *packed_of;   // [units][2] the newest parameters when they were packed
    int *part;        // [flats] this rank's part of parameters, fetched
    int *reduced;     // this rank's part of what was reduced
    int *evicted;     // what waits on the host to be added
    // [flats] parameters from NVMe that are next to be fetched, and those after them;
    // gradients on their way to NVMe.
    int *staged_param, *staged_later, *staged_grad;
    int ring[TR_UPDATE_SLOTS_MAX][TR_PARTS]; // of the update's pieces
    int gathered;        // all ranks' parts of wave tensors, until they are merged
    tr_step_draft draft; // of the step at work
    int *block;          // of all arrays
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

static tr_unit_values *values_of(const table *t) {
    return &t->plan->unit_values[t->kind];
}

static void use_wave(table *t, tr_plan_step *step) {
    t->draft.buffer[TR_SLOT_WAVE] =
        tr__stand_in(&t->now, values_of(t)->wave[step->unit]);
}

static void use_wave_grad(table *t, tr_plan_step *step) {
    t->draft.buffer[TR_SLOT_WAVE_GRAD] =
        tr__stand_in(&t->now, values_of(t)->wave_grad[step->unit]);
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
    t->draft.buffer[TR_SLOT_OUTPUT] = use_gathered(t, step);
}

// What is packed is where it is gathered.
static void use_gather_wave(table *t, tr_plan_step *step) {
    if (tr__wave_parts(t->plan, t->kind) == 1) {
        use_merged(t, step);
    }
    t->draft.buffer[TR_SLOT_OUTPUT] = use_gathered(t, step);
}

static void use_merge(table *t, tr_plan_step *step) {
    use_merged(t, step);
    t->draft.buffer[TR_SLOT_INPUT] = use_gathered(t, step);
    t->gathered = -1;
}

// ---- flat buffers

// What every rank has room for of its part.
static int64_t part_elements(const tr_flat *flat) {
    return tr__min_i64(flat->shard, flat->count);
}

// The values of units' programs: parameters on the device, and f32 gradients as a
// backward makes them.
static int32_t param_home(table *t, int flat) {
    return tr__param_value(t->plan, t->kind, flat, t->err);
}

static int32_t grad_home(table *t, int flat) {
    return tr__grad_value(t->plan, t->kind, flat, t->err);
}

static int32_t param_place(table *t, int flat) {
    return tr__stand_in(&t->now, param_home(t, flat));
}

static int32_t grad_place(table *t, int flat) {
    return tr__stand_in(&t->now, grad_home(t, flat));
}

static int32_t sum_home(table *t, int flat) {
    return tr__sum_value(t->plan, t->kind, flat, t->err);
}

static int use_sum(table *t, int flat) {
    return tr__stand_in(&t->now, sum_home(t, flat));
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

// The newest of the buffers that have what the step's program packs. Parameters that
// stay are packed once a step, others each time they are brought.
static int newest_packed(const table *t, const tr_plan_step *step, tr_place place) {
    const tr_program *program = step->payload.program;
    int newest = 0;
    for (size_t i = 0; i < program->count && !tr__plan_params_stay(t->plan); i++) {
        const tr_instruction *at = &program->instructions[i];
        if (at->packed.place == place) {
            int block = at->in[at->desc.op->packed_input - 1].block;
            int of = tr__step_operand(t->plan, step, (size_t)block)->buffer;
            newest = of > newest ? of : newest;
        }
    }
    return newest;
}

static void renew_packed(table *t, const tr_plan_step *step, tr_place place) {
    bool backward = place == TR_PLACE_PACKED_BACKWARD;
    int *of = &t->packed_of[2 * step->unit + backward];
    int newest = newest_packed(t, step, place);
    if (*of >= 0 && *of != newest) {
        tr__stand_in_renew(&t->now, values_of(t)->packed[2 * step->unit + backward]);
    }
    *of = newest;
}

// Blocks of parameters come before what is packed of them.
static void use_program(table *t, tr_plan_step *step) {
    const tr_program *program = step->payload.program;
    for (size_t i = 0; i < program->block_count; i++) {
        tr_place place = program->blocks[i].place;
        tr_step_operand *block = tr__step_operand(t->plan, step, i);
        if (place == TR_PLACE_PACKED || place == TR_PLACE_PACKED_BACKWARD) {
            renew_packed(t, step, place);
        }
        block->buffer = tr__stand_in(&t->now, block->buffer);
    }
}

// What a wave has made; the next wave makes another.
static int take_made(table *t, int flat) {
    bool accumulates = tr__plan_accumulates(t->plan);
    int buffer = accumulates ? use_sum(t, flat) : grad_place(t, flat);
    tr__stand_in_renew(&t->now, accumulates ? sum_home(t, flat) : grad_home(t, flat));
    return buffer;
}

static void use_reduce(table *t, tr_plan_step *step) {
    if (!tr__flat_grads_pass(t->plan, step->unit)) {
        return; // in place, in what lives always
    }
    t->draft.buffer[TR_SLOT_INPUT] = take_made(t, step->unit);
    if (t->plan->flats[step->unit].offloaded || step->apart) {
        t->reduced[step->unit] = -1;
        t->draft.buffer[TR_SLOT_OUTPUT] = use_reduced(t, step->unit);
    }
}

static void use_evict(table *t, tr_plan_step *step) {
    if (step->apart) {
        t->evicted[step->unit] = -1;
        t->draft.buffer[TR_SLOT_OUTPUT] = use_evicted(t, step->unit);
    }
    if (tr__part_is_on_nvme(t->plan, TR_PART_GRAD)) {
        t->staged_grad[step->unit] = -1;
        t->draft.buffer[TR_SLOT_OUTPUT] =
            use_staged(t, t->staged_grad, TR_PART_GRAD, step->unit);
    }
    if (!tr__flat_grads_pass(t->plan, step->unit)) {
        return;
    }
    t->draft.buffer[TR_SLOT_INPUT] = tr__data_ranks(&t->plan->request) > 1
                                         ? use_reduced(t, step->unit)
                                         : take_made(t, step->unit);
}

// What is there already: reduced, or evicted; else, on the host, what has been made.
static void use_add(table *t, tr_plan_step *step) {
    if (step->stream == TR_STREAM_COMM) {
        t->draft.buffer[TR_SLOT_INPUT] = use_reduced(t, step->unit);
    } else if (t->plan->request.discrete) {
        t->draft.buffer[TR_SLOT_INPUT] = use_evicted(t, step->unit);
    } else {
        use_evict(t, step);
    }
}

// What is about to leave; on the host, what is there always.
static void use_square(table *t, tr_plan_step *step) {
    int32_t *input = &t->draft.buffer[TR_SLOT_INPUT];
    if (step->stream != TR_STREAM_HOST && tr__flat_grads_pass(t->plan, step->unit)) {
        *input = tr__data_ranks(&t->plan->request) > 1 ? use_reduced(t, step->unit)
                 : tr__plan_accumulates(t->plan)       ? use_sum(t, step->unit)
                                                       : grad_place(t, step->unit);
    }
}

// Into or out of staging; of an update's piece, into or out of its slot.
static void use_transfer(table *t, tr_plan_step *step) {
    bool read = step->kind == TR_STEP_read;
    int32_t *buffer = &t->draft.buffer[read ? TR_SLOT_OUTPUT : TR_SLOT_INPUT];
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
            t->draft.buffer[TR_SLOT_PART + part] =
                use_ring(t, step->slot, (tr_part)part);
        }
    }
}

// All of it with one rank, else this rank's part, to be gathered.
static void use_fetch(table *t, tr_plan_step *step) {
    bool whole = tr__data_ranks(&t->plan->request) == 1;
    tr_part used = tr__used_part(t->plan);
    if (tr__part_is_on_nvme(t->plan, used) && t->plan->flats[step->unit].count > 0) {
        t->draft.buffer[TR_SLOT_INPUT] =
            use_staged(t, t->staged_param, used, step->unit);
        t->staged_param[step->unit] = t->staged_later[step->unit];
        t->staged_later[step->unit] = -1;
    }
    if (t->plan->request.param_placement == TR_SPACE_DEVICE) {
        return;
    }
    if (whole) {
        tr__stand_in_renew(&t->now, param_home(t, step->unit));
    } else {
        t->part[step->unit] = -1;
    }
    t->draft.buffer[TR_SLOT_OUTPUT] =
        whole ? param_place(t, step->unit) : use_part(t, step->unit);
}

// What ranks measure, and the norms that it makes.
static int use_measured(table *t) {
    const tr_plan *plan = t->plan;
    int64_t ranks = tr__norms_ranks(plan);
    return use_in(t, tr__norms_space(plan), &values_of(t)->measured,
                  ranks > 1 ? TR_LEDGER_communication : TR_LEDGER_workspace,
                  plan->norms.parts * ranks * (int64_t)sizeof(tr_squares));
}

static int use_totals(table *t) {
    int64_t bytes = (int64_t)t->plan->param_count * (int64_t)sizeof(tr_squares);
    return t->plan->request.tensor_norms
               ? use_in(t, tr__norms_space(t->plan), &values_of(t)->totals,
                        TR_LEDGER_workspace, bytes)
               : -1;
}

static void use_total(table *t, tr_plan_step *step) {
    (void)step; // of all flat buffers
    t->draft.buffer[TR_SLOT_INPUT] = use_measured(t);
    t->draft.buffer[TR_SLOT_OUTPUT] = use_totals(t);
}

static void use_gather(table *t, tr_plan_step *step) {
    if (step->part == TR_PART_WAVE) {
        use_gather_wave(t, step);
        return;
    }
    if (step->part == TR_PART_NORMS) {
        t->draft.buffer[TR_SLOT_OUTPUT] = use_measured(t);
    }
    if (step->part != TR_PART_PARAM || tr__plan_params_stay(t->plan)) {
        return;
    }
    tr__stand_in_renew(&t->now, param_home(t, step->unit));
    t->draft.buffer[TR_SLOT_OUTPUT] = param_place(t, step->unit);
    if (t->plan->request.param_placement != TR_SPACE_DEVICE) {
        t->draft.buffer[TR_SLOT_INPUT] = use_part(t, step->unit);
    }
}

// Sums of another type, as f32, where who launches the step reaches them. Steps that
// follow each other share the memory for it: on the host's stream they are not done
// when the next one is issued.
static void use_convert(table *t, tr_plan_step *step) {
    bool square = step->kind == TR_STEP_gradient_squares,
         host = step->stream == TR_STREAM_HOST;
    bool alone = step->guard == TR_GUARD_DEFERRED || (square && !host);
    int none = -1,
        *shared = &values_of(t)->convert[host][square ? TR_STEP_norm : step->kind];
    tr_space space = host ? tr__plan_shared_space(t->plan) : TR_SPACE_DEVICE;
    if (tr__plan_accumulates(t->plan)) {
        t->draft.buffer[TR_SLOT_TEMP] =
            use_in(t, space, alone ? &none : shared, TR_LEDGER_workspace,
                   TR_CONVERT_ELEMENTS * (int64_t)sizeof(float));
    }
}

// ---- all kinds

static void use_clear(table *t, tr_plan_step *step) {
    if (step->part == TR_PART_GRAD) {
        t->draft.buffer[TR_SLOT_OUTPUT] = grad_place(t, step->unit);
    }
}

static void use_leaving_squares(table *t, tr_plan_step *step) {
    use_square(t, step);
    use_convert(t, step);
}

static void use_measure(table *t, tr_plan_step *step) {
    use_update(t, step);
    t->draft.buffer[TR_SLOT_NORMS] = use_measured(t);
    use_convert(t, step);
}

static void use_last_update(table *t, tr_plan_step *step) {
    use_update(t, step);
    t->draft.buffer[TR_SLOT_NORMS] = use_totals(t);
    use_convert(t, step);
}

// Kinds that have none name no buffers but those of their program.
static void (*const use_of[TR_STEP_KINDS])(table *, tr_plan_step *) = {
    [TR_STEP_pack] = use_pack,
    [TR_STEP_merge] = use_merge,
    [TR_STEP_clear] = use_clear,
    [TR_STEP_reduce] = use_reduce,
    [TR_STEP_evict] = use_evict,
    [TR_STEP_add] = use_add,
    [TR_STEP_fetch] = use_fetch,
    [TR_STEP_gather] = use_gather,
    [TR_STEP_read] = use_transfer,
    [TR_STEP_write] = use_transfer,
    [TR_STEP_gradient_squares] = use_leaving_squares,
    [TR_STEP_direction_norms] = use_measure,
    [TR_STEP_tensor_norms] = use_total,
    [TR_STEP_update] = use_last_update,
    [TR_STEP_norm] = use_convert,
};

tr_status tr__values_draft(tr_values *t, tr_step_draft *draft) {
    t->status = t->status == TR_OK ? t->now.status : t->status;
    if (t->status == TR_OK) {
        t->status = tr__lower_step(t->plan, t->kind, draft, t->err);
    }
    return t->status;
}

// Updates of what lives on NVMe are cut into pieces, which are made then (stage.c).
static bool is_cut_later(const table *t, const tr_plan_step *step) {
    bool updates =
        step->kind == TR_STEP_update || step->kind == TR_STEP_direction_norms;
    return updates && step->slot < 0 && tr__plan_uses_nvme(t->plan);
}

// A step that is there already goes on with what stands in for its values; a new one
// gets values, and its payload.
tr_status tr__values_step(tr_values *t, tr_plan_step *step) {
    if (step->made && step->payload.program &&
        tr__step_shape(step) == TR_STEP_IS_LAUNCH) {
        use_program(t, step);
    } else if (step->made) {
        tr__stand_in_step(&t->now, step);
    } else {
        t->draft.step = *step;
        memset(t->draft.buffer, -1, sizeof t->draft.buffer);
        if (use_of[step->kind]) {
            use_of[step->kind](t, step);
        }
        if (t->status == TR_OK && !is_cut_later(t, step)) {
            t->status = tr__lower_step(t->plan, t->kind, &t->draft, t->err);
            *step = t->draft.step;
        }
    }
    t->status = t->status == TR_OK ? t->now.status : t->status;
    return t->status;
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

static bool make_table(table *t) {
    size_t units = (size_t)t->plan->unit_count, flats = t->plan->flat_count;
    int *next = tr__calloc(2 * units + 6 * flats, sizeof *next);
    t->block = next;
    if (!next) {
        return false;
    }
    t->packed_of = take(&next, 2 * units);
    t->part = take(&next, flats);
    t->reduced = take(&next, flats);
    t->evicted = take(&next, flats);
    t->staged_param = take(&next, flats);
    t->staged_later = take(&next, flats);
    t->staged_grad = take(&next, flats);
    memset(t->ring, -1, sizeof t->ring);
    return true;
}

tr_status tr__values_begin(tr_plan *plan, tr_sequence_kind kind, tr_values **out,
                           tr_error *err) {
    table *t = tr__calloc(1, sizeof *t);
    *out = t;
    if (!t) {
        return tr_fail(err, TR_MEMORY, "no memory for the plan's buffers");
    }
    *t = (table){.plan = plan,
                 .kind = kind,
                 .err = err,
                 .gathered = -1,
                 .now = {.plan = plan, .err = err}};
    if (!make_table(t)) {
        return tr_fail(err, TR_MEMORY, "no memory for the plan's buffers");
    }
    return values_of(t)->boundary ? TR_OK : tr__unit_values_make(plan, kind, err);
}

tr_stand_ins *tr__values_now(tr_values *t) {
    return &t->now;
}

void tr__values_end(tr_values *t) {
    if (t) {
        tr__stand_ins_clear(&t->now);
        tr__free(t->block);
        tr__free(t);
    }
}

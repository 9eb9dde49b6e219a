// What small plans tell of large ones: the units' programs for one micro-batch, and
// what moves and lives always for one way to place and share things.
#include "base/checked.h"
#include "base/memory.h"
#include "models/models.h"
#include "plan/flow/passes.h"
#include "plan/passes/away.h"
#include "planner/planner.h"
#include "sim/simulate.h"

#include <math.h>
#include <string.h>

static tr_status no_memory(tr_error *err) {
    return tr_fail(err, TR_MEMORY, "no memory to choose a plan");
}

// The plan of `steps` micro-batches of m on each rank, with the point's
// recomputed_units.
static tr_plan_request small_of(const tr_point *point, int64_t m, int64_t steps,
                                int64_t ranks) {
    tr_plan_request r = point->plan;
    r.micro_batch = m;
    r.accumulation_steps = steps;
    r.mesh = tr__mesh_with_data(&point->plan.mesh, ranks);
    r.train_batch_size = m * steps * ranks;
    r.wave = 0;
    r.measure = TR_MEASURE_NEVER; // once a step, in some plans: no bound counts it
    tr__request_nothing_away(&r);
    return r;
}

static tr_status slice(const tr_search *search, const tr_point *point, tr_error *err) {
    tr_model *sliced = search->request->sliced;
    return sliced ? tr__model_slice(sliced, (int)point->slices, err) : TR_OK;
}

// ---- kernels

// What ranks exchange is no kernel.
static double piece_seconds(const tr_share *share, const tr_program *piece) {
    return piece->exchange ? 0 : tr__program_seconds(share, piece);
}

static double role_seconds(const tr_share *share, const tr_unit_program *unit,
                           tr_variant role) {
    double seconds = 0;
    for (int i = 0; i < tr__unit_pieces(unit, role); i++) {
        seconds += piece_seconds(share, tr__unit_piece(unit, role, i));
    }
    return seconds;
}

static bool any(const bool *flags) {
    for (int i = 0; i < TR_GRAPH_IO_MAX; i++) {
        if (flags[i]) {
            return true;
        }
    }
    return false;
}

static void read_unit(const tr_share share[2], const tr_plan_unit *unit, bool again,
                      tr_unit_figures *out) {
    const tr_unit_program *p = unit->program;
    *out = (tr_unit_figures){
        .saved = p->saved_bytes,
        .worth = unit->recomputed,
        .input = p->input_bytes,
        .output = p->output_grad_bytes,
        .backward = tr__unit_has_backward(p),
        .keeps_input = any(p->derived.reads_input),
        .keeps_output = any(p->derived.reads_output),
        .in_place = p->derived.in_place,
        .forward_cost = tr__unit_cost(p, TR_VARIANT_FORWARD),
        .backward_cost = tr__unit_cost(p, TR_VARIANT_BACKWARD),
        .cost = (again ? 2 : 1) * tr__unit_cost(p, TR_VARIANT_FORWARD) +
                tr__unit_cost(p, TR_VARIANT_BACKWARD),
    };
    for (int i = 0; i < tr__unit_pieces(p, TR_VARIANT_BACKWARD); i++) {
        const tr_program *piece = tr__unit_piece(p, TR_VARIANT_BACKWARD, i);
        out->backward_workspace = tr__max_i64(out->backward_workspace,
                                              piece->temp_bytes + piece->carried_bytes);
    }
    for (int i = 0; i < 2; i++) {
        tr_variant forward = again ? TR_VARIANT_SAVES_NOTHING : TR_VARIANT_FORWARD;
        out->forward[i] = role_seconds(&share[i], p, forward);
        out->backward_seconds[i] = role_seconds(&share[i], p, TR_VARIANT_BACKWARD);
        out->seconds[i] = out->forward[i] + out->backward_seconds[i];
        out->seconds[i] += again ? role_seconds(&share[i], p, TR_VARIANT_RECOMPUTE) : 0;
    }
}

// What ranks exchange between two pieces of a forward. (That of a backward may go on
// beside products of it.)
static void read_messages(const tr_share *share, const tr_plan *plan,
                          tr_unit_figures *units) {
    const tr_sequence *sequence = &plan->sequences[TR_SEQUENCE_TRAIN];
    bool forward = false;
    for (size_t i = 0; i < sequence->count; i++) {
        const tr_plan_step *step = &sequence->steps[i];
        tr_transfer transfer;
        if (tr__payload_program(step)) {
            forward = tr__step_is_forward(step);
            if (forward &&
                step->micro == 0) { // what was exchanged until now was not the last
                units[step->unit].messages_behind = 0;
            }
        } else if (forward && step->shape == TR_STEP_IS_EXCHANGE &&
                   step->of_micro_batch && step->micro == 0 &&
                   tr__step_transfer(plan, step, &transfer)) {
            double seconds = tr__transfer_seconds(share, &transfer);
            units[step->unit].messages += seconds;
            units[step->unit].messages_behind += seconds;
        }
    }
}

// [units] of a plan; with `again`, those that can be are recomputed.
static tr_status read_units(const tr_share share[2], const tr_plan *plan, bool again,
                            tr_unit_figures **out, tr_error *err) {
    int units = plan->unit_count;
    *out = tr__calloc((size_t)units, sizeof **out);
    for (int u = 0; *out && u < units; u++) {
        const tr_plan_unit *unit = &plan->units[u];
        bool twin = u > 0 && unit->program == plan->units[u - 1].program;
        if (twin) {
            (*out)[u] = (*out)[u - 1];
            (*out)[u].parameters = 0;
        } else {
            read_unit(share, unit, again, &(*out)[u]);
        }
        (*out)[u].worth = unit->recomputed;
        for (int i = 0; i < unit->program->flat_count; i++) {
            (*out)[u].parameters += plan->flats[unit->flats[i]].all;
        }
    }
    if (*out) {
        read_messages(&share[0], plan, *out);
    }
    return *out ? TR_OK : no_memory(err);
}

static tr_status sketch(const tr_search *search, const tr_point *point,
                        const tr_kernels *kernels, tr_plan **out, tr_error *err) {
    tr_plan_request small =
        small_of(point, kernels->micro_batch, kernels->many ? 2 : 1, 1);
    tr_status status = slice(search, point, err);
    return status == TR_OK ? tr__plan_sketch(&small, out, err) : status;
}

// Units that are recomputed make only what is cheap again within: then their programs
// may be others.
tr_status tr__kernels_make(const tr_search *search, const tr_point *point,
                           tr_kernels **out, tr_error *err) {
    const tr_machine *machine = search->request->machine;
    int64_t ranks = tr_mesh_ranks(&point->plan.mesh);
    tr_point alone = *point;
    tr_plan *plan = NULL;
    tr_share share[2] = {tr__machine_share(machine, ranks, INT64_C(1) << 60),
                         tr__machine_share(machine, ranks, 0)};
    tr_kernels *kernels = tr__calloc(1, sizeof *kernels);
    if (!kernels) {
        return no_memory(err);
    }
    *out = kernels;
    kernels->micro_batch = point->plan.micro_batch;
    kernels->many = point->plan.accumulation_steps > 1;
    kernels->slices = point->slices;
    kernels->tensor_ranks = point->plan.mesh.size[TR_AXIS_TENSOR];
    kernels->recomputed = point->plan.recomputed_ops;
    tr__request_one_stage(&alone.plan);
    alone.plan.stage = 0;
    alone.plan.optimizer_placement = alone.plan.param_placement =
        alone.plan.grad_placement = TR_SPACE_DEVICE;
    alone.plan.recomputed_units = -1;
    alone.plan.passes = 1;
    tr_status status = sketch(search, &alone, kernels, &plan, err);
    if (status == TR_OK) {
        kernels->slot = plan->slot_bytes;
        status = read_units(share, plan, true, &kernels->again, err);
    }
    if (status == TR_OK &&
        kernels->recomputed & TR_RECOMPUTE_ALL & ~TR_RECOMPUTE_DEFAULT) {
        tr_plan_destroy(plan);
        plan = NULL;
        alone.plan.recomputed_units = 0;
        status = sketch(search, &alone, kernels, &plan, err);
    }
    if (status == TR_OK) {
        status = read_units(share, plan, false, &kernels->units, err);
    }
    tr_plan_destroy(plan);
    return status;
}

static void read_turns(const tr_share share[2], const tr_unit_program *unit,
                       tr_turn_figures *out) {
    *out = (tr_turn_figures){.cost = {tr__unit_cost(unit, TR_VARIANT_FORWARD),
                                      tr__unit_cost(unit, TR_VARIANT_BACKWARD), 0}};
    for (int i = 0; i < tr__unit_pieces(unit, TR_VARIANT_BACKWARD); i++) {
        const tr_program *piece = tr__unit_piece(unit, TR_VARIANT_BACKWARD, i);
        tr_turn_kind kind = piece->weights ? TR_TURN_WEIGHTS : TR_TURN_BACKWARD;
        out->cost[TR_TURN_WEIGHTS] += piece->weights ? piece->cost.flops : 0;
        for (int k = 0; k < 2; k++) {
            out->seconds[k][kind] += piece_seconds(&share[k], piece);
        }
    }
    out->cost[TR_TURN_BACKWARD] -= out->cost[TR_TURN_WEIGHTS];
    for (int k = 0; k < 2; k++) {
        out->seconds[k][TR_TURN_FORWARD] =
            role_seconds(&share[k], unit, TR_VARIANT_FORWARD);
    }
}

// Of the first of two stages; its plan has the programs of all units.
static tr_status make_later(const tr_search *search, const tr_point *point,
                            tr_kernels *kernels, tr_error *err) {
    const tr_machine *machine = search->request->machine;
    tr_point two = *point;
    tr_plan *plan = NULL;
    int64_t ranks = tr_mesh_ranks(&point->plan.mesh);
    tr_share share[2] = {tr__machine_share(machine, ranks, INT64_C(1) << 60),
                         tr__machine_share(machine, ranks, 0)};
    two.plan.mesh.size[TR_AXIS_PIPELINE] = 2;
    two.plan.mesh.at[TR_AXIS_PIPELINE] = 0;
    two.plan.pipeline_order = TR_PIPELINE_ZERO_BUBBLE;
    two.plan.virtual_stages = 1;
    two.plan.stage = 0;
    two.plan.optimizer_placement = two.plan.param_placement = two.plan.grad_placement =
        TR_SPACE_DEVICE;
    two.plan.recomputed_units = 0;
    two.plan.passes = 1;
    tr_status status = sketch(search, &two, kernels, &plan, err);
    tr_turn_figures *later =
        status == TR_OK ? tr__calloc((size_t)plan->unit_count, sizeof *later) : NULL;
    for (int u = 0; later && u < plan->unit_count; u++) {
        const tr_unit_program *unit = plan->units[u].program;
        if (u > 0 && unit == plan->units[u - 1].program) {
            later[u] = later[u - 1];
        } else {
            read_turns(share, unit, &later[u]);
        }
    }
    tr_plan_destroy(plan);
    kernels->later = later;
    return status;
}

const tr_turn_figures *tr__kernels_later(const tr_search *search, const tr_point *point,
                                         tr_kernels *kernels) {
    tr_error why = {0};
    if (!kernels->later) {
        (void)make_later(search, point, kernels, &why);
    }
    return kernels->later;
}

void tr__kernels_destroy(tr_kernels *kernels) {
    for (size_t i = 0; i < kernels->cut_count; i++) {
        tr__free(kernels->cuts[i].of_unit);
    }
    tr__free(kernels->cuts);
    tr__free(kernels->later);
    tr__free(kernels->again);
    tr__free(kernels->units);
    tr__free(kernels);
}

// ---- classes

void tr__class_destroy(tr_class *class) {
    tr__free(class->own);
    tr__free(class->moved);
    tr__free(class);
}

// Does it follow from how parameters and gradients move, not from activations?
static bool is_moved(const tr_buffer *buffer) {
    return buffer->space == TR_SPACE_DEVICE && buffer->sequence == TR_SEQUENCE_TRAIN &&
           (buffer->category == TR_LEDGER_parameters ||
            buffer->category == TR_LEDGER_gradients);
}

static int64_t moved_at(const tr_plan *plan, int32_t step) {
    int64_t bytes = 0;
    for (size_t i = 0; i < plan->buffer_count; i++) {
        const tr_buffer *buffer = &plan->buffers[i];
        bool lives = buffer->first <= step && step <= buffer->last;
        bytes += lives && is_moved(buffer) ? buffer->bytes : 0;
    }
    return bytes;
}

// The most that passes on the device at once and does not go with what units keep and
// recompute.
static tr_status find_passing(const tr_plan *plan, int64_t *out, tr_error *err) {
    size_t steps = plan->sequences[TR_SEQUENCE_TRAIN].count;
    int64_t *change = tr__calloc(steps + 1, sizeof *change), bytes = 0;
    if (!change) {
        return no_memory(err);
    }
    for (size_t i = 0; i < plan->buffer_count; i++) {
        const tr_buffer *b = &plan->buffers[i];
        bool of_units = b->category == TR_LEDGER_activations ||
                        b->category == TR_LEDGER_boundary ||
                        b->category == TR_LEDGER_workspace;
        if (b->sequence == TR_SEQUENCE_TRAIN && b->space == TR_SPACE_DEVICE &&
            !of_units && 0 <= b->first && b->first <= b->last) {
            change[b->first] += b->bytes;
            change[b->last + 1] -= b->bytes;
        }
    }
    *out = 0;
    for (size_t i = 0; i < steps; i++) {
        bytes += change[i];
        *out = tr__max_i64(*out, bytes);
    }
    tr__free(change);
    return TR_OK;
}

static tr_status read_memory(const tr_plan *plan, tr_class *class, tr_error *err) {
    const tr_sequence *sequence = &plan->sequences[TR_SEQUENCE_TRAIN];
    for (int s = 0; s < TR_SPACES; s++) {
        class->always[s] = plan->persistent_bytes[s];
        class->passing[s] = plan->arena_bytes[s] - plan->persistent_bytes[s];
    }
    class->slot = plan->slot_bytes;
    for (int u = 0; u < plan->unit_count; u++) {
        class->moved[u] = INT64_MAX;
        class->own[u] = tr__chunk_stage(&plan->chunks, plan->units[u].chunk) == 0;
    }
    for (size_t i = 0; i < sequence->count; i++) {
        const tr_plan_step *step = &sequence->steps[i];
        if (tr__step_runs(step, TR_VARIANT_BACKWARD)) {
            class->moved[step->unit] =
                tr__min_i64(class->moved[step->unit], moved_at(plan, (int32_t)i));
        }
    }
    for (int u = 0; u < plan->unit_count; u++) { // one without a backward here
        class->moved[u] = class->moved[u] < INT64_MAX ? class->moved[u] : 0;
    }
    return find_passing(plan, &class->passing[TR_SPACE_DEVICE], err);
}

// Seconds at work of what is not a unit's program. Packing and merging are left out:
// with one micro-batch there may be none, and with more they do not grow by a launch
// for each of them, as a bound would take them to. So is what ranks exchange in units
// that are recomputed: others recompute fewer.
static void read_loads(const tr_search *search, const tr_plan *plan,
                       double load[TR_STREAMS]) {
    const tr_sequence *sequence = &plan->sequences[TR_SEQUENCE_TRAIN];
    tr_share share =
        tr__machine_share(search->request->machine, tr_mesh_ranks(&plan->request.mesh),
                          plan->ledger.total[TR_SPACE_DEVICE]);
    memset(load, 0, TR_STREAMS * sizeof *load);
    bool recomputing = false;
    for (size_t i = 0; i < sequence->count; i++) {
        const tr_plan_step *step = &sequence->steps[i];
        tr_transfer transfer;
        if (tr__payload_program(step)) {
            recomputing = tr__step_runs(step, TR_VARIANT_RECOMPUTE);
        }
        bool recomputes = recomputing && step->stream == TR_STREAM_TENSOR;
        if (step->guard ==
            TR_GUARD_DEFERRED) { // done here or at the end: counted there
            continue;
        }
        if (tr__stream_copies(step->stream) || step->stream == TR_STREAM_NVME) {
            load[step->stream] += tr__move_seconds(&share, plan, step);
        } else if (step->stream == TR_STREAM_HOST) {
            bool device = search->request->machine->host_is_device;
            load[device ? TR_STREAM_COMPUTE : TR_STREAM_HOST] +=
                tr__step_seconds(&share, plan, step);
        } else if (step->stream == TR_STREAM_COMM && step->shape == TR_STEP_IS_LAUNCH) {
            load[TR_STREAM_COMM] += tr__step_seconds(&share, plan, step);
        } else if (step->shape != TR_STEP_IS_EXCHANGE && !tr__step_is_of_wave(step) &&
                   !tr__payload_program(step)) {
            load[TR_STREAM_COMPUTE] += tr__step_seconds(&share, plan, step);
        }
        if (!recomputes && tr__step_transfer(plan, step, &transfer)) {
            load[step->stream] += tr__transfer_seconds(&share, &transfer);
        }
    }
}

static tr_status read_unit_load(const tr_search *search, const tr_plan *plan,
                                tr_class *class, tr_error *err) {
    const tr_sequence *sequence = &plan->sequences[TR_SEQUENCE_TRAIN];
    double *seconds = tr__calloc((size_t)plan->unit_count, sizeof *seconds);
    tr_share share = tr__machine_share(search->request->machine,
                                       tr_mesh_ranks(&plan->request.mesh), 0);
    for (size_t i = 0; seconds && i < sequence->count; i++) {
        const tr_plan_step *step = &sequence->steps[i];
        int u = step->unit;
        tr_transfer transfer;
        if (step->stream == TR_STREAM_COMM && u >= 0 && u < plan->unit_count &&
            tr__step_transfer(plan, step, &transfer)) {
            seconds[u] += tr__transfer_seconds(&share, &transfer);
            class->unit_load = fmax(class->unit_load, seconds[u]);
        }
    }
    tr__free(seconds);
    return seconds ? TR_OK : no_memory(err);
}

// Stages wait for each other's first wave, which a simulation of one stage does not
// show. Only an op over the whole batch, which no placement changes, is a reason for
// one wave.
static bool wants_small_waves(const tr_plan *plan) {
    const tr_plan_request *r = &plan->request;
    bool barrier = r->wave > 1;
    return tr__has_stages(r) && !barrier;
}

static tr_status read_class(const tr_search *search, const tr_point *point,
                            tr_class *class, tr_error *err) {
    double load[2][TR_STREAMS];
    tr_point least = *point;
    least.plan.recomputed_units = -1;
    least.plan.recomputed_ops = TR_RECOMPUTE_DEFAULT;
    // One micro-batch is always gone through in one pass.
    int waves = point->plan.passes > 1 ? 2 : 1;
    for (int i = 0; i < 2; i++) {
        tr_plan *plan = NULL;
        tr_plan_request small =
            small_of(&least, 1, waves + i, tr__data_ranks(&point->plan));
        tr_status status = slice(search, point, err);
        status = status == TR_OK ? tr__plan_draft(&small, &plan, err) : status;
        if (status != TR_OK) {
            return status;
        }
        status = tr__simulate_check(plan, search->request->machine, err);
        if (status == TR_OK && i == 0) {
            status = read_memory(plan, class, err);
        }
        if (status == TR_OK && i == 0) {
            status = read_unit_load(search, plan, class, err);
        }
        class->whole_wave = plan->request.wave > 1 && plan->request.passes < 2;
        class->single_wave = plan->hands_out || wants_small_waves(plan);
        read_loads(search, plan, load[i]);
        tr_plan_destroy(plan);
        if (status != TR_OK) {
            return status;
        }
    }
    for (int s = 0; s < TR_STREAMS; s++) {
        class->load[s][1] = fmax(0, load[1][s] - load[0][s]);
        class->load[s][0] = fmax(0, load[0][s] - (waves - 1) * class->load[s][1]);
    }
    class->possible = true;
    return TR_OK;
}

tr_status tr__class_make(const tr_search *search, const tr_point *point, tr_class **out,
                         tr_error *err) {
    tr_class *class = tr__calloc(1, sizeof *class);
    *out = class;
    if (!class) {
        return no_memory(err);
    }
    tr__point_values(point, class->value);
    size_t units = (size_t)point->plan.model->unit_count;
    class->moved = tr__calloc(units, sizeof *class->moved);
    class->own = tr__calloc(units, sizeof *class->own);
    return class->moved && class->own ? read_class(search, point, class, err)
                                      : no_memory(err);
}

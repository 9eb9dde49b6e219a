// Pass: flat buffers, the parameters in them, and the buffers that live always.
#include "base/checked.h"
#include "base/hash.h"
#include "base/memory.h"
#include "comm/comm.h"
#include "plan/flow/passes.h"
#include "plan/flow/plan.h"
#include "plan/flow/residency.h"
#include "plan/units/offsets.h"
#include "plan/units/own.h"

#include <string.h>

static int find_tied(const tr_plan *plan, const char *name) {
    for (size_t i = 0; i < plan->flat_count; i++) {
        if (plan->flats[i].tied && strcmp(plan->flats[i].name, name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static int add_flat(tr_plan *plan, tr_flat flat, tr_error *err) {
    if (!tr__grow((void **)&plan->flats, &plan->flat_capacity, plan->flat_count + 1,
                  sizeof *plan->flats)) {
        tr_fail(err, TR_MEMORY, "no memory for the plan's flat buffers");
        return -1;
    }
    flat.all = flat.count;
    tr__axes_split(&flat.axes, flat.split ? TR_ON_TENSOR : 0);
    tr__axes_sum(&flat.axes, flat.summed ? TR_ON_TENSOR : 0);
    if (flat.repeated) {
        tr__axes_repeat(&flat.axes);
        tr__axes_sum(&flat.axes, flat.frozen ? 0 : TR_ON_REPEATS);
    }
    plan->flats[plan->flat_count] = flat;
    return (int)plan->flat_count++;
}

// The first slice of the stored tensor, or else the parameter that is about to be.
static int first_slice(const tr_plan *plan, const char *stored) {
    for (size_t i = 0; i < plan->param_count; i++) {
        if (strcmp(plan->params[i].stored, stored) == 0) {
            return (int)i;
        }
    }
    return (int)plan->param_count;
}

static tr_status add_param(tr_plan *plan, const tr_param_info *info, const char *prefix,
                           int flat, int64_t offset, tr_error *err) {
    if (!tr__grow((void **)&plan->params, &plan->param_capacity, plan->param_count + 1,
                  sizeof *plan->params)) {
        return tr_fail(err, TR_MEMORY, "no memory for the plan's parameters");
    }
    char *name = tr__format("%s%s", prefix, info->name);
    if (!name) {
        return tr_fail(err, TR_MEMORY, "no memory for the plan's parameters");
    }
    const char *stored = info->whole ? info->whole : name;
    tr_flat *of = &plan->flats[flat];
    of->first_param = of->end_param > 0 ? of->first_param : plan->param_count;
    int tensor = info->whole ? first_slice(plan, stored) : (int)plan->param_count;
    of->end_param = plan->param_count + 1;
    plan->params[plan->param_count++] =
        (tr_plan_param){.name = name,
                        .hash = tr__hash_text(name),
                        .shape = info->shape,
                        .stored = stored,
                        .stored_shape = info->whole || info->split ? info->whole_shape
                                        : info->quantized          ? info->plain
                                                                   : info->shape,
                        .lies = info->lies,
                        .cut = info->cut,
                        .quantized = info->quantized,
                        .kept = info->kept,
                        .plain = info->plain,
                        .transposed = info->transposed,
                        .init = info->init,
                        .flat = flat,
                        .offset = offset,
                        .count = tr_shape_count(info->shape),
                        .place = of->param_count++,
                        .tensor = tensor};
    return TR_OK;
}

static tr_status check_tied(const tr_plan *plan, int flat, const tr_param_info *info,
                            tr_error *err) {
    tr_shape whole = info->whole || info->split ? info->whole_shape : info->shape;
    const tr_flat *of = &plan->flats[flat];
    for (size_t i = of->first_param; i < of->end_param; i++) {
        const tr_plan_param *param = &plan->params[i];
        if (param->flat == flat && (!tr_shape_equal(param->shape, info->shape) ||
                                    !tr_shape_equal(param->stored_shape, whole))) {
            return tr_fail(err, TR_USAGE, "tied tensor %s has two shapes", info->name);
        }
    }
    return TR_OK;
}

static tr_status use_tied(tr_plan *plan, int flat, int64_t stage, tr_error *err) {
    tr_flat *of = &plan->flats[flat];
    return tr__axes_add_stage(&of->axes, stage)
               ? TR_OK
               : tr_fail(err, TR_MEMORY, "no memory for the plan's flat buffers");
}

// A flat buffer of a unit's own parameters, and its name. The first has the unit's.
static int add_own_flat(tr_plan *plan, int u, tr_own own, tr_error *err) {
    const char *name = plan->request.model->units[u].name;
    const tr_unit_program *program = plan->units[u].program;
    const tr_own_row *row = &tr__own_rows[own];
    char *own_name =
        program->own[own] > 0 ? tr__own_name(&plan->request, name, own) : NULL;
    if (program->own[own] > 0 && !own_name) {
        tr_fail(err, TR_MEMORY, "no memory for the plan's flat buffers");
        return -1;
    }
    int64_t elements = program->own_elements[own];
    tr_flat flat = {.name = own_name ? own_name : name,
                    .axes = tr__axes_of_stage(tr__plan_stage_of(plan, u)),
                    .own_name = own_name,
                    .frozen = row->frozen,
                    .split = row->split,
                    .repeated = row->repeated,
                    .summed = row->summed,
                    .quantized = row->quantized,
                    .apart = row->apart,
                    .count = tr__round_up(elements, TR_FLAT_ELEMENTS)};
    int at = add_flat(plan, flat, err);
    if (at < 0) {
        tr__free(own_name);
    }
    return at;
}

// The unit's own flat buffers: one for each kind of what lies in them.
static tr_status add_own_flats(tr_plan *plan, int u, tr_error *err) {
    const tr_unit_program *program = plan->units[u].program;
    for (int own = 0; own < TR_OWN; own++) {
        if (program->own[own] >= 0) {
            int at = add_own_flat(plan, u, (tr_own)own, err);
            plan->units[u].flats[program->own[own]] = at;
            if (at < 0) {
                return TR_MEMORY;
            }
        }
    }
    return TR_OK;
}

// Ranks that have parts of the tensor have buffers of one size; behind all of it there
// is what the user asks for that asks for most.
static int64_t tied_elements(const tr_param_info *info, const tr_program_param *where) {
    int64_t elements = info->split ? info->room : tr_shape_count(info->shape);
    return tr__round_up(elements + where->padding, TR_FLAT_ELEMENTS);
}

static int add_tied_flat(tr_plan *plan, int u, const tr_param_info *info,
                         const tr_program_param *where, tr_error *err) {
    tr_flat flat = {.name = info->name,
                    .axes = tr__axes_of_stage(tr__plan_stage_of(plan, u)),
                    .tied = true,
                    .frozen = info->frozen,
                    .apart = info->apart,
                    .split = info->split,
                    .slice = info->whole != NULL,
                    .count = tied_elements(info, where)};
    return add_flat(plan, flat, err);
}

static tr_status add_unit(tr_plan *plan, int u, tr_error *err) {
    const tr_model_unit *unit = &plan->request.model->units[u];
    const tr_unit_program *program = plan->units[u].program;
    tr_status status = add_own_flats(plan, u, err);
    if (status != TR_OK) {
        return status;
    }
    for (size_t i = 0; i < program->graph->param_count; i++) {
        const tr_param_info *info = &program->graph->params[i];
        const tr_program_param *where = &program->params[i];
        if (!info->shared) {
            int own = plan->units[u].flats[where->flat];
            status = add_param(plan, info, unit->prefix, own, where->offset, err);
        } else if (find_tied(plan, info->name) >= 0) {
            int tied = find_tied(plan, info->name);
            plan->units[u].flats[where->flat] = tied;
            tr_flat *of = &plan->flats[tied];
            of->apart = of->apart || info->apart;
            of->all = of->count = tr__max_i64(of->all, tied_elements(info, where));
            status = check_tied(plan, tied, info, err);
            status = status == TR_OK
                         ? use_tied(plan, tied, tr__plan_stage_of(plan, u), err)
                         : status;
        } else {
            int tied = add_tied_flat(plan, u, info, where, err);
            plan->units[u].flats[where->flat] = tied;
            status = tied < 0 ? TR_MEMORY : add_param(plan, info, "", tied, 0, err);
        }
        if (status != TR_OK) {
            return status;
        }
    }
    return TR_OK;
}

static tr_status add_state(tr_plan *plan, int u, size_t index, tr_error *err) {
    const tr_unit_program *program = plan->units[u].program;
    const tr_state_info *info = &program->graph->states[index];
    if (!tr__grow((void **)&plan->states, &plan->state_capacity, plan->state_count + 1,
                  sizeof *plan->states)) {
        return tr_fail(err, TR_MEMORY, "no memory for the plan's states");
    }
    char *name = tr__format("%s%s", plan->request.model->units[u].prefix, info->name);
    if (!name) {
        return tr_fail(err, TR_MEMORY, "no memory for the plan's states");
    }
    plan->states[plan->state_count++] =
        (tr_plan_state){.name = name,
                        .desc = tr_graph_desc(program->graph, info->value),
                        .init = info->init,
                        .unit = u,
                        .offset = program->state_offset[index]};
    return TR_OK;
}

// A unit's states are one buffer, that every rank has whole.
static tr_status keep_states(tr_plan *plan, int u, tr_error *err) {
    const tr_unit_program *program = plan->units[u].program;
    tr_status status = TR_OK;
    if (program->state_bytes == 0) {
        return TR_OK;
    }
    plan->units[u].states =
        tr__plan_buffer(plan,
                        (tr_buffer){.category = TR_LEDGER_states,
                                    .space = tr__plan_shared_space(plan),
                                    .sequence = -1,
                                    .bytes = program->state_bytes},
                        err);
    if (plan->units[u].states < 0) {
        return TR_MEMORY;
    }
    for (size_t i = 0; i < program->graph->state_count && status == TR_OK; i++) {
        status = add_state(plan, u, i, err);
    }
    return status;
}

static tr_status keep_cache(tr_plan *plan, int u, tr_error *err) {
    tr_buffer buffer = {.category = TR_LEDGER_cache,
                        .sequence = -1,
                        .bytes = plan->units[u].program->cache_bytes};
    if (buffer.bytes == 0) {
        return TR_OK;
    }
    plan->units[u].cache = tr__plan_buffer(plan, buffer, err);
    return plan->units[u].cache < 0 ? TR_MEMORY : TR_OK;
}

// ---- who keeps what

// ZeRO (Rajbhandari et al., arXiv 1910.02054): stage 1 keeps only this rank's part of
// the optimizer state, stage 2 of the gradients too, stage 3 of the parameters too.
enum { SHARDS_STATE = 1, SHARDS_GRAD = 2, SHARDS_PARAM = 3 };

static void cut(const tr_plan *plan, tr_flat *flat) {
    int64_t ranks = tr__data_ranks(&plan->request);
    int64_t even = tr__round_up(tr__ceil_div(flat->all, ranks), TR_SHARD_ELEMENTS);
    flat->shard = ranks == 1 ? flat->all : even;
    tr__comm_part(flat->count, flat->shard, tr__data_rank(&plan->request), &flat->first,
                  &flat->own);
}

// A buffer of all of the flat, or of what every rank has room for of its part: plans
// of all ranks are alike. What is of 16 bits is whole lines of the cache, as all else
// is, since memory ends with its last buffer.
static tr_status keep(tr_plan *plan, const tr_flat *flat, bool sharded, tr_space space,
                      tr_ledger_category category, tr_block_size packing,
                      tr_flat_range *range, tr_error *err) {
    int64_t room = sharded ? tr__min_i64(flat->shard, flat->count) : flat->count;
    int64_t bytes = tr__packed_bytes(packing, room);
    int64_t unit = space == TR_SPACE_NVME ? TR_NVME_ALIGNMENT : TR_ALIGNMENT;
    tr_buffer buffer = {.category = category,
                        .space = space,
                        .sequence = -1,
                        .bytes = tr__round_up(bytes, unit)};
    range->first = sharded ? flat->first : 0;
    range->count = sharded ? flat->own : flat->count;
    range->buffer = tr__plan_buffer(plan, buffer, err);
    return range->buffer < 0 ? TR_MEMORY : TR_OK;
}

static tr_space optimizer_of(const tr_plan *plan, const tr_flat *flat) {
    return flat->offloaded ? plan->request.optimizer_placement : TR_SPACE_DEVICE;
}

// Where the f32 values are that 16 bits are rounded from; `placement`: of what is
// fetched. Nobody reads those of a frozen flat buffer but who saves them.
static tr_space masters_of(const tr_plan *plan, const tr_flat *flat,
                           tr_space placement) {
    const tr_plan_request *r = &plan->request;
    if (!tr__plan_is_half(plan) || flat->offloaded) {
        return placement;
    }
    bool away = r->param_placement != TR_SPACE_DEVICE;
    return !flat->frozen                               ? TR_SPACE_DEVICE
           : away                                      ? placement
           : r->optimizer_placement == TR_SPACE_DEVICE ? TR_SPACE_DEVICE
                                                       : TR_SPACE_HOST;
}

static tr_status keep_params(tr_plan *plan, tr_flat *flat, tr_error *err) {
    const tr_plan_request *r = &plan->request;
    int stage = tr__plan_stage(plan);
    bool away = r->param_placement != TR_SPACE_DEVICE;
    bool half = tr__plan_is_half(plan);
    // Of what is fetched, and of the masters, which are the same in f32.
    tr_space placement = away ? r->param_placement : optimizer_of(plan, flat);
    tr_space masters = masters_of(plan, flat, placement);
    // Ranks that have all of a frozen flat buffer never gather it.
    int masters_from = flat->frozen ? SHARDS_PARAM : SHARDS_STATE;
    tr_block_size element = tr__part_row(plan, flat, TR_PART_COPY)->packing;
    tr_block_size master = tr__part_row(plan, flat, TR_PART_PARAM)->packing;
    tr_status status = TR_OK;
    flat->param.buffer = -1;
    if (!away) {
        status = keep(plan, flat, stage >= SHARDS_PARAM, TR_SPACE_DEVICE,
                      TR_LEDGER_parameters, element, &flat->param, err);
    }
    flat->master = flat->param;
    bool alone = half && (flat->quantized || (flat->frozen && r->frozen_half));
    if (status == TR_OK && !alone && (masters != TR_SPACE_DEVICE || half)) {
        status = keep(plan, flat, stage >= masters_from, masters, TR_LEDGER_parameters,
                      master, &flat->master, err);
    }
    flat->copy = half ? flat->param : flat->master;
    if (status == TR_OK && placement != TR_SPACE_DEVICE && half) {
        status = keep(plan, flat, stage >= SHARDS_STATE, placement,
                      TR_LEDGER_parameters, element, &flat->copy, err);
    }
    if (alone) {
        flat->master = (tr_flat_range){-1, flat->copy.first, flat->copy.count};
    }
    return status;
}

static tr_status keep_gradients(tr_plan *plan, tr_flat *flat, tr_error *err) {
    const tr_plan_request *r = &plan->request;
    int stage = tr__plan_stage(plan);
    tr_block_size sum = tr__part_row(plan, flat, TR_PART_GRAD)->packing;
    tr_status status = TR_OK;
    flat->sums.buffer = -1;
    if (!flat->offloaded || !tr__plan_evicts_scopes(plan)) {
        status = keep(plan, flat, stage >= SHARDS_GRAD, TR_SPACE_DEVICE,
                      TR_LEDGER_gradients, sum, &flat->sums, err);
    }
    flat->grad = flat->sums;
    return status == TR_OK && flat->offloaded
               ? keep(plan, flat, stage >= SHARDS_STATE, r->grad_placement,
                      TR_LEDGER_gradients, sum, &flat->grad, err)
               : status;
}

static tr_status flat_buffers(tr_plan *plan, tr_flat *flat, tr_error *err) {
    const tr_plan_request *r = &plan->request;
    bool sharded = tr__plan_stage(plan) >= SHARDS_STATE;
    flat->sums.buffer = -1;
    for (int part = 0; part < TR_PARTS; part++) {
        flat->part[part].buffer = -1;
    }
    cut(plan, flat);
    tr_status status = keep_params(plan, flat, err);
    bool trained = !r->inference && !flat->frozen;
    if (status == TR_OK && trained) {
        status = keep_gradients(plan, flat, err);
    }
    int end = tr__flat_parts(plan, flat);
    for (int i = TR_PART_STATE; status == TR_OK && trained && i < end; i++) {
        tr_block_size packing = tr__part_row(plan, flat, (tr_part)i)->packing;
        status = keep(plan, flat, sharded, optimizer_of(plan, flat),
                      TR_LEDGER_optimizer, packing, &flat->part[i], err);
    }
    return status;
}

// Of flat buffers whose users are on other stages this rank has no elements.
static void leave_out(tr_plan *plan) {
    int64_t stage = plan->request.mesh.at[TR_AXIS_PIPELINE];
    for (size_t f = 0; f < plan->flat_count; f++) {
        tr_flat *flat = &plan->flats[f];
        flat->count = tr__stage_has(&flat->axes, stage) ? flat->all : 0;
    }
}

// What stays are the first that have room in its share: forwards, which begin with
// them, need not wait until they are back. Ranks of several stages, or of the tensor
// axis, sum gradients where they are made, so these stay, too.
static void choose_leaving(tr_plan *plan) {
    const tr_plan_request *r = &plan->request;
    int64_t all = tr__plan_trained(plan);
    int64_t room = (int64_t)(r->optimizer_stays * (double)all);
    for (size_t f = 0; f < plan->flat_count; f++) {
        tr_flat *flat = &plan->flats[f];
        flat->offloaded = r->optimizer_placement != TR_SPACE_DEVICE &&
                          flat->count > room && !flat->frozen && flat->axes.summed == 0;
        room -= flat->offloaded || flat->frozen ? 0 : flat->count;
    }
}

// Ranks of the tensor axis share something.
static tr_status check_split(const tr_plan *plan, tr_error *err) {
    const tr_plan_request *r = &plan->request;
    bool some = r->mesh.size[TR_AXIS_TENSOR] == 1 || r->tensor_ranks_alike;
    for (size_t f = 0; f < plan->flat_count; f++) {
        some = some || plan->flats[f].split;
    }
    return some
               ? TR_OK
               : tr_fail(err, TR_USAGE,
                         "tensor_parallel.size is %lld, and no layer of this model can "
                         "be cut in so many parts: heads and widths have to be "
                         "multiples of it%s",
                         (long long)r->mesh.size[TR_AXIS_TENSOR],
                         r->quantization
                             ? ", and with quantization.base their parts multiples "
                               "of a block (64 in \"nf4\", 32 in \"q8_0\")"
                             : "");
}

tr_status tr__pass_partition(tr_plan *plan, tr_error *err) {
    for (int u = 0; u < plan->unit_count; u++) {
        tr_status status = add_unit(plan, u, err);
        bool runs = tr__plan_runs(plan, u);
        plan->units[u].states = plan->units[u].cache = -1;
        if (status == TR_OK && runs) {
            status = keep_states(plan, u, err);
        }
        if (status == TR_OK && runs) {
            status = keep_cache(plan, u, err);
        }
        if (status != TR_OK) {
            return status;
        }
    }
    tr_status named = check_split(plan, err);
    named = named == TR_OK ? tr__plan_check_names(plan, err) : named;
    if (named != TR_OK) {
        return named;
    }
    tr_status sliced = tr__plan_check_slices(plan, err);
    if (sliced != TR_OK) {
        return sliced;
    }
    leave_out(plan);
    choose_leaving(plan);
    for (size_t i = 0; i < plan->flat_count; i++) {
        tr_status status = flat_buffers(plan, &plan->flats[i], err);
        if (status != TR_OK) {
            return status;
        }
    }
    return TR_OK;
}

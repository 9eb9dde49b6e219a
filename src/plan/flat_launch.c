#include "plan/flat_launch.h"

#include "backend/backend.h"
#include "base/checked.h"
#include "ops/accumulate/accumulate.h"
#include "ops/gradient_squares/gradient_squares.h"
#include "ops/merge/merge.h"
#include "ops/optimizer_measure.h"
#include "ops/update/update.h"
#include "ops/zero/zero.h"
#include "plan/residency.h"
#include "plan/wave.h"

#include <string.h>

static const tr_location nowhere = {-1, 0};

static tr_tensor_desc vector(tr_dtype dtype, int64_t count) {
    return (tr_tensor_desc){dtype, TR_SHAPE1(count)};
}

// ---- operands

static void add_input(tr_flat_launch *launch, tr_tensor_desc desc, tr_location at) {
    int i = launch->desc.in_count++;
    launch->desc.in[i] = desc;
    launch->in[i] = at;
}

static void set_result(tr_flat_launch *launch, int i, tr_tensor_desc desc,
                       tr_location at) {
    launch->desc.out[i] = at.buffer < 0 ? (tr_tensor_desc){TR_NONE, {0}} : desc;
    launch->out[i] = at;
    launch->desc.out_count =
        i >= launch->desc.out_count ? i + 1 : launch->desc.out_count;
    launch->desc.fresh |= 1u << i;
}

static void set_added(tr_flat_launch *launch, int i, tr_tensor_desc desc,
                      tr_location at) {
    set_result(launch, i, desc, at);
    launch->desc.fresh &= ~(1u << i);
    launch->desc.accumulate |= 1u << i;
}

static tr_flat_launch begin(const tr_plan *plan, const tr_step_draft *draft,
                            const tr_op *op) {
    tr_flat_launch launch = {
        .desc = {.op = op,
                 .target =
                     draft->step.stream == TR_STREAM_HOST ? plan->host : plan->target},
        .workspace = {draft->buffer[TR_SLOT_TEMP], 0},
    };
    for (int i = 0; i < TR_OP_IN_MAX; i++) {
        launch.in[i] = nowhere;
    }
    for (int i = 0; i < TR_OP_OUT_MAX; i++) {
        launch.out[i] = nowhere;
    }
    return launch;
}

// The reference where it is asked for, but of 16 bits, which no reference here has:
// kernels that need nothing prepared.
// (kernels.c looks whether there is one.)
static bool finish(tr_flat_launch *launch) {
    tr_op_desc desc = launch->desc;
    const tr_kernel *reference = desc.op->reference;
    bool plain = desc.target.level < 0 && reference->supports(&desc);
    desc.target.level = desc.target.level < 0 ? 0 : desc.target.level;
    launch->kernel = plain ? reference : tr__kernel_find(&desc);
    return true;
}

// Double `at` of this rank's statistics of the step.
static tr_location in_statistics(const tr_plan *plan, int64_t at) {
    int64_t own = tr_mesh_rank(&plan->request.mesh) * plan->statistics.doubles;
    return (tr_location){plan->statistics.buffer, (own + at) * (int64_t)sizeof(double)};
}

// Element `first` of a flat buffer, in what is kept of a part.
static tr_location in_range(const tr_flat_range *range, int64_t first,
                            int64_t element_bytes) {
    return (tr_location){range->buffer, (first - range->first) * element_bytes};
}

static const tr_flat *flat_of(const tr_plan *plan, const tr_step_draft *draft) {
    return &plan->flats[draft->step.unit];
}

// ---- gradients

static bool accumulate(const tr_plan *plan, const tr_step_draft *draft,
                       tr_flat_launch *out) {
    const tr_flat *flat = flat_of(plan, draft);
    int32_t to = draft->buffer[TR_SLOT_OUTPUT];
    tr_dtype type = plan->request.sums;
    tr_accumulate_attr attr = {(int32_t)type};
    tr_location sums = {to < 0 ? flat->sums.buffer : to, 0};
    *out = begin(plan, draft, &tr__op_accumulate);
    memcpy(out->desc.attr, &attr, sizeof attr);
    add_input(out, vector(TR_F32, flat->count),
              (tr_location){draft->buffer[TR_SLOT_INPUT], 0});
    set_added(out, 0, vector(type, flat->count), sums);
    out->desc.fresh |= 1;
    out->contributes[0] = true;
    if (type == TR_I64) {
        set_added(out, 1, vector(TR_F64, TR_ACCUMULATE_COUNTS),
                  in_statistics(plan, TR_STATISTICS_TOO_LARGE));
    }
    return finish(out);
}

// What further waves have made: on its way from the device, integers; or what devices
// have reduced of it, this rank's part.
static bool add_sums(const tr_plan *plan, const tr_step_draft *draft,
                     tr_flat_launch *out) {
    const tr_flat *flat = flat_of(plan, draft);
    tr_dtype type = plan->request.sums;
    tr_accumulate_attr attr = {(int32_t)type};
    bool reduced = draft->step.stream == TR_STREAM_COMM;
    int64_t count = reduced ? flat->own : flat->grad.count;
    tr_location sums = reduced ? in_range(&flat->sums, flat->first, tr__sum_bytes(plan))
                               : (tr_location){flat->grad.buffer, 0};
    *out = begin(plan, draft, &tr__op_accumulate);
    memcpy(out->desc.attr, &attr, sizeof attr);
    add_input(out, vector(type, count), (tr_location){draft->buffer[TR_SLOT_INPUT], 0});
    set_added(out, 0, vector(type, count), sums);
    return finish(out);
}

// This rank's gradients of a flat buffer, by blocks into its statistics.
static bool squares(const tr_plan *plan, const tr_step_draft *draft,
                    const tr_flat *flat, tr_location sums, tr_flat_launch *out) {
    *out = begin(plan, draft, &tr__op_gradient_squares);
    add_input(out, vector(plan->request.sums, flat->own), sums);
    set_result(out, 0, vector(TR_F64, tr__ceil_div(flat->own, TR_NORM_BLOCK)),
               in_statistics(plan, plan->statistics.partials + flat->squares));
    return finish(out);
}

// Of gradients that are on the host; or of what leaves: this rank's part, or what lies
// in the sums that stay.
static bool squares_of_one(const tr_plan *plan, const tr_step_draft *draft,
                           tr_flat_launch *out) {
    const tr_flat *flat = flat_of(plan, draft);
    int32_t from = draft->buffer[TR_SLOT_INPUT];
    if (draft->step.stream == TR_STREAM_HOST) {
        return squares(plan, draft, flat,
                       in_range(&flat->grad, flat->first, tr__sum_bytes(plan)), out);
    }
    tr_location sums = from < 0
                           ? in_range(&flat->sums, flat->first, tr__sum_bytes(plan))
                           : (tr_location){from, 0};
    return squares(plan, draft, flat, sums, out);
}

// Those of all flat buffers that stay on the device.
static bool squares_of_all(const tr_plan *plan, const tr_step_draft *draft,
                           size_t *next, tr_flat_launch *out) {
    while (*next < plan->flat_count) {
        const tr_flat *flat = &plan->flats[(*next)++];
        tr_location sums = in_range(&flat->grad, flat->first, tr__sum_bytes(plan));
        bool here = !flat->offloaded && !flat->frozen;
        if (here && squares(plan, draft, flat, sums, out)) {
            return true;
        }
    }
    return false;
}

// Of gradients that stay as a backward made them, into one number of the statistics.
static bool sum_squares(const tr_plan *plan, const tr_step_draft *draft, int64_t count,
                        tr_location grads, tr_statistics_flag to, tr_flat_launch *out) {
    *out = begin(plan, draft, &tr__op_sum_of_squares);
    add_input(out, vector(TR_F32, count), grads);
    set_added(out, 0, vector(TR_F64, 1), in_statistics(plan, to));
    return finish(out);
}

static bool squares_of_tied(const tr_plan *plan, const tr_step_draft *draft,
                            tr_flat_launch *out) {
    const tr_flat *flat = flat_of(plan, draft);
    int32_t from = draft->buffer[TR_SLOT_INPUT];
    tr_location grads = {from < 0 ? flat->sums.buffer : from, 0};
    return sum_squares(plan, draft, flat->count, grads, TR_STATISTICS_TIED_SQUARES,
                       out);
}

// One parameter's gradient with each call.
static bool squares_of_first(const tr_plan *plan, const tr_step_draft *draft,
                             size_t *next, tr_flat_launch *out) {
    const tr_unit_program *unit = plan->units[draft->step.unit].program;
    int64_t count;
    const tr_operand *operand =
        tr__unit_gradient(unit, draft->step.segment, next, &count);
    if (!operand) {
        return false;
    }
    tr_location grads = {draft->buffer[TR_SLOT_INPUT], operand->offset};
    return sum_squares(plan, draft, count, grads, TR_STATISTICS_SQUARES, out);
}

// ---- clears

static bool zero(const tr_plan *plan, const tr_step_draft *draft, tr_dtype dtype,
                 int64_t count, tr_location at, tr_flat_launch *out) {
    tr_zero_attr attr = {count, (int32_t)dtype};
    *out = begin(plan, draft, &tr__op_zero);
    memcpy(out->desc.attr, &attr, sizeof attr);
    set_result(out, 0, vector(dtype, count), at);
    return finish(out);
}

static bool zero_gradients(const tr_plan *plan, const tr_step_draft *draft,
                           int64_t from, int64_t to, tr_flat_launch *out) {
    tr_location at = {draft->buffer[TR_SLOT_OUTPUT], from * (int64_t)sizeof(float)};
    return from < to && zero(plan, draft, TR_F32, to - from, at, out);
}

// Where a flat buffer's parameters among the plan's first `end` end.
static int64_t end_of(const tr_plan *plan, const tr_step_draft *draft, size_t end) {
    for (size_t i = end; i-- > flat_of(plan, draft)->first_param;) {
        if (plan->params[i].flat == draft->step.unit) {
            return plan->params[i].offset + plan->params[i].count;
        }
    }
    return 0;
}

// What lies between the parameters' gradients, one gap with each call; or all
// in one. *next: the parameters passed.
static bool clear_gradients(const tr_plan *plan, const tr_step_draft *draft,
                            size_t *next, tr_flat_launch *out) {
    const tr_flat *flat = flat_of(plan, draft);
    if (draft->step.whole) {
        return (*next)++ == 0 && zero_gradients(plan, draft, 0, flat->count, out);
    }
    for (size_t i; (i = flat->first_param + *next) <= flat->end_param;) {
        const tr_plan_param *param = &plan->params[i];
        bool last = i == flat->end_param;
        *next += 1;
        if ((last || param->flat == draft->step.unit) &&
            zero_gradients(plan, draft, end_of(plan, draft, i),
                           last ? flat->count : param->offset, out)) {
            return true;
        }
    }
    return false;
}

static bool clear(const tr_plan *plan, const tr_step_draft *draft, size_t *next,
                  tr_flat_launch *out) {
    if (draft->step.part == TR_PART_GRAD) {
        return clear_gradients(plan, draft, next, out);
    }
    // Squares are written, never added to.
    return (*next)++ == 0 && zero(plan, draft, TR_F64, plan->statistics.partials,
                                  in_statistics(plan, 0), out);
}

// ---- wave tensors

static int64_t wave_bytes(const tr_plan *plan, const tr_step_draft *draft) {
    return plan->units[draft->step.unit].program->wave_bytes;
}

// A block of so many rows, each of so many bytes.
static tr_tensor_desc block(tr_dtype dtype, int64_t rows, int64_t bytes) {
    return (tr_tensor_desc){dtype,
                            TR_SHAPE2(rows, bytes / (int64_t)tr_dtype_bytes(dtype))};
}

// This rank's parts go to their place among those of all ranks, in words of 8 bytes.
static bool pack(const tr_plan *plan, const tr_step_draft *draft, tr_flat_launch *out) {
    const int64_t word = sizeof(int64_t);
    int64_t parts = tr__wave_parts(plan, TR_SEQUENCE_TRAIN);
    tr_wave_range range = tr__wave_range(plan, &draft->step);
    tr_pack_attr attr = {range.offset / word, range.bytes / word};
    tr_location own = {draft->buffer[TR_SLOT_OUTPUT],
                       tr__data_rank(&plan->request) *
                           tr__wave_sent(plan, &draft->step)};
    *out = begin(plan, draft, &tr__op_pack);
    memcpy(out->desc.attr, &attr, sizeof attr);
    add_input(out, block(TR_I64, parts, wave_bytes(plan, draft)),
              (tr_location){tr__draft_wave(draft), 0});
    set_result(out, 0, block(TR_I64, parts, range.bytes), own);
    return finish(out);
}

// From the parts of all ranks, the first of which is written.
static void merge_ranks(const tr_plan *plan, const tr_step_draft *draft,
                        const tr_wave_tensor *tensor, tr_flat_launch *out) {
    int64_t parts =
        tr__wave_parts(plan, TR_SEQUENCE_TRAIN) * tr__data_ranks(&plan->request);
    add_input(
        out, block(tensor->desc.dtype, parts, tr__wave_range(plan, &draft->step).bytes),
        (tr_location){draft->buffer[TR_SLOT_INPUT], 0});
    set_result(out, 0, tensor->desc,
               (tr_location){tr__draft_wave(draft), tensor->offset});
}

// To this rank's first part, from its others.
static void merge_own(const tr_plan *plan, const tr_step_draft *draft,
                      const tr_wave_tensor *tensor, tr_flat_launch *out) {
    int64_t parts = tr__wave_parts(plan, TR_SEQUENCE_TRAIN);
    int64_t bytes = wave_bytes(plan, draft);
    int32_t buffer = tr__draft_wave(draft);
    add_input(out, block(tensor->desc.dtype, parts - 1, bytes),
              (tr_location){buffer, bytes});
    set_added(out, 0, tensor->desc, (tr_location){buffer, tensor->offset});
}

// One tensor with each call. Ranks have runs of micro-batches: by rank and then by part
// is by micro-batch.
static bool merge(const tr_plan *plan, const tr_step_draft *draft, size_t *next,
                  tr_flat_launch *out) {
    tr_wave_tensor tensor;
    do {
        if (!tr__wave_next(plan, &draft->step, next, &tensor)) {
            return false;
        }
    } while (!tr__wave_is_merged(plan, &tensor));
    bool exchanged = tr__wave_is_exchanged(plan, &tensor);
    int64_t row = exchanged ? tr__wave_range(plan, &draft->step).offset : 0;
    tr_merge_attr attr = {.of = tensor.op,
                          .first = (tensor.offset - row) /
                                   (int64_t)tr_dtype_bytes(tensor.desc.dtype),
                          .shape = tensor.desc.shape};
    *out = begin(plan, draft, &tr__op_merge);
    memcpy(out->desc.attr, &attr, sizeof attr);
    (exchanged ? merge_ranks : merge_own)(plan, draft, &tensor, out);
    return finish(out);
}

// ---- updates

// Where an update finds a part of its elements: in its place, or staged.
static tr_location part_of(const tr_plan *plan, const tr_step_draft *draft,
                           tr_part part) {
    const tr_flat_range *range = tr__flat_range(flat_of(plan, draft), part);
    return tr__is_on_nvme(plan, range)
               ? (tr_location){draft->buffer[TR_SLOT_PART + part], 0}
               : in_range(range, draft->step.first, tr__part_bytes(plan, part));
}

static void add_states(const tr_plan *plan, const tr_step_draft *draft,
                       tr_flat_launch *out) {
    for (int s = 0; s < plan->request.optimizer_states; s++) {
        set_added(out, TR_UPDATE_STATE + s, vector(TR_F32, draft->step.count),
                  part_of(plan, draft, (tr_part)(TR_PART_STATE + s)));
    }
}

// The first element of the flat buffer whose parts this rank measures.
static int64_t measured_from(const tr_plan *plan, const tr_flat *flat) {
    return tr__norms_ranks(plan) > 1 ? flat->first : 0;
}

static tr_flat_launch begin_update(const tr_plan *plan, const tr_step_draft *draft,
                                   const tr_op *op) {
    tr_update_attr attr = {.first = draft->step.first,
                           .origin = measured_from(plan, flat_of(plan, draft)),
                           .flat = draft->step.unit};
    tr_flat_launch launch = begin(plan, draft, op);
    memcpy(launch.desc.attr, &attr, sizeof attr);
    add_input(&launch, vector(plan->request.sums, draft->step.count),
              part_of(plan, draft, TR_PART_GRAD));
    return launch;
}

// A unit of no parameters of its own has nothing to update.
static bool update(const tr_plan *plan, const tr_step_draft *draft,
                   tr_flat_launch *out) {
    if (draft->step.count == 0) {
        return false;
    }
    tr_location tensors = {draft->buffer[TR_SLOT_NORMS], 0};
    *out = begin_update(plan, draft, &tr__op_update);
    if (tensors.buffer >= 0) {
        add_input(out, vector(TR_F64, 2 * (int64_t)plan->param_count), tensors);
    }
    set_added(out, 0, vector(TR_F32, draft->step.count),
              part_of(plan, draft, TR_PART_PARAM));
    if (tr__plan_is_half(plan)) {
        set_result(out, TR_UPDATE_COPY,
                   vector(plan->request.compute, draft->step.count),
                   part_of(plan, draft, TR_PART_COPY));
    }
    add_states(plan, draft, out);
    return finish(out);
}

static bool direction_squares(const tr_plan *plan, const tr_step_draft *draft,
                              tr_flat_launch *out) {
    const tr_flat *flat = flat_of(plan, draft);
    int64_t rank = tr__norms_ranks(plan) > 1 ? tr__data_rank(&plan->request) : 0;
    int64_t first = rank * plan->norms.parts + flat->parts;
    tr_location parts = {draft->buffer[TR_SLOT_NORMS],
                         first * (int64_t)sizeof(tr_squares)};
    *out = begin_update(plan, draft, &tr__op_direction_squares);
    add_input(out, vector(TR_F32, draft->step.count),
              part_of(plan, draft, TR_PART_PARAM));
    set_added(out, 0, vector(TR_F64, 2 * tr__norms_parts(plan, flat)), parts);
    add_states(plan, draft, out);
    return finish(out);
}

static bool tensor_squares(const tr_plan *plan, const tr_step_draft *draft,
                           tr_flat_launch *out) {
    int64_t parts = plan->norms.parts * tr__norms_ranks(plan);
    tr_tensor_squares_attr attr = {plan->norms.runs, plan->norms.run_count};
    *out = begin(plan, draft, &tr__op_tensor_squares);
    memcpy(out->desc.attr, &attr, sizeof attr);
    add_input(out, vector(TR_F64, 2 * parts),
              (tr_location){draft->buffer[TR_SLOT_INPUT], 0});
    set_result(out, 0, vector(TR_F64, 2 * (int64_t)plan->param_count),
               (tr_location){draft->buffer[TR_SLOT_OUTPUT], 0});
    return finish(out);
}

bool tr__flat_launch_next(const tr_plan *plan, const tr_step_draft *draft, size_t *next,
                          tr_flat_launch *out) {
    switch (draft->step.kind) {
    case TR_STEP_clear:
        return clear(plan, draft, next, out);
    case TR_STEP_norm:
        return squares_of_all(plan, draft, next, out);
    case TR_STEP_micro_norm:
        return squares_of_first(plan, draft, next, out);
    case TR_STEP_merge:
        return merge(plan, draft, next, out);
    default: // one launch at most
        break;
    }
    if ((*next)++ > 0) {
        return false;
    }
    switch (draft->step.kind) {
    case TR_STEP_pack:
        return pack(plan, draft, out);
    case TR_STEP_accumulate:
        return accumulate(plan, draft, out);
    case TR_STEP_add:
        return add_sums(plan, draft, out);
    case TR_STEP_gradient_squares:
        return squares_of_one(plan, draft, out);
    case TR_STEP_micro_norm_tied:
        return squares_of_tied(plan, draft, out);
    case TR_STEP_direction_norms:
        return direction_squares(plan, draft, out);
    case TR_STEP_tensor_norms:
        return tensor_squares(plan, draft, out);
    case TR_STEP_update:
        return update(plan, draft, out);
    default:
        return false;
    }
}

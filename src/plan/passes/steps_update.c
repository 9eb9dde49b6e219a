#include "plan/passes/steps_update.h"

#include "base/checked.h"
#include "ops/flat/exact_sums/exact_sums.h"
#include "ops/flat/orthogonal/orthogonal.h"
#include "ops/flat/update/update.h"
#include "ops/optimizers/optimizer_measure.h"
#include "plan/flow/prepared.h"
#include "plan/flow/residency.h"
#include "plan/units/offsets.h"

#include <string.h>

tr_staged tr__nothing_staged(void) {
    tr_staged none;
    for (int part = 0; part < TR_PARTS; part++) {
        none.value[part] = TR_STAGED_NOT;
    }
    return none;
}

// ---- norms of tensors

// The entry's value, which is made when a step first names it.
static int32_t norms_value(tr_editor *editor, int32_t *entry,
                           tr_ledger_category category, int64_t bytes) {
    if (*entry < 0) {
        *entry = tr__edit_value(editor, category, tr__norms_space(editor->plan), bytes);
    }
    return *entry;
}

static int32_t measured(tr_editor *editor) {
    tr_plan *plan = editor->plan;
    return norms_value(editor, &plan->unit_values[editor->kind].measured,
                       TR_LEDGER_workspace,
                       plan->norms.parts * (int64_t)sizeof(tr_squares));
}

// Two of each parameter of the plan, at the index of its tensor
// (tr_plan_param.tensor): of the parameter, and of its direction.
static int64_t totals_of(const tr_plan *plan) {
    return 2 * (int64_t)plan->param_count;
}

tr_region tr__edit_tensor_sums(tr_editor *editor) {
    tr_plan *plan = editor->plan;
    int64_t bytes = totals_of(plan) * TR_EXACT_WORDS * (int64_t)sizeof(int64_t);
    bool exchanged = tr__norms_group(plan) != 0;
    int32_t value =
        norms_value(editor, &plan->unit_values[editor->kind].tensor_sums,
                    exchanged ? TR_LEDGER_communication : TR_LEDGER_workspace, bytes);
    return tr__region(value, bytes);
}

static int32_t totals(tr_editor *editor) {
    tr_plan *plan = editor->plan;
    return plan->request.tensor_norms
               ? norms_value(editor, &plan->unit_values[editor->kind].totals,
                             TR_LEDGER_workspace,
                             totals_of(plan) * (int64_t)sizeof(double))
               : -1;
}

int32_t tr__put_tensor_sums(tr_editor *editor, tr_plan_step step) {
    const tr_plan *plan = editor->plan;
    tr_exact_sums_attr attr = {plan->norms.runs, plan->norms.run_count, 2};
    tr_op_draft op =
        tr__op_draft(plan, step.stream, &tr__op_exact_sums, &attr, sizeof attr);
    tr__op_input(&op, tr__vector(TR_F64, 2 * plan->norms.parts),
                 (tr_location){measured(editor), 0});
    tr__op_writes(&op, 0, tr__vector(TR_I64, totals_of(plan) * TR_EXACT_WORDS),
                  tr__location(tr__edit_tensor_sums(editor)));
    return tr__make_one(editor, step, -1, &op);
}

int32_t tr__put_tensor_norms(tr_editor *editor, tr_plan_step step) {
    const tr_plan *plan = editor->plan;
    tr_op_draft op = tr__op_draft(plan, step.stream, &tr__op_exact_values, NULL, 0);
    tr__op_input(&op, tr__vector(TR_I64, totals_of(plan) * TR_EXACT_WORDS),
                 tr__location(tr__edit_tensor_sums(editor)));
    tr__op_writes(&op, 0, tr__vector(TR_F64, totals_of(plan)),
                  (tr_location){totals(editor), 0});
    return tr__make_one(editor, step, -1, &op);
}

// ---- updates

// An update that is being made.
typedef struct update {
    const tr_plan *plan;
    const tr_plan_step *step;
    const tr_flat *flat;
    const tr_staged *staged;
} update;

static tr_location part_of(const update *u, tr_part part) {
    const tr_flat_range *range = &u->flat->part[part];
    int32_t staged = u->staged->value[part];
    int64_t before =
        tr__part_bytes(u->plan, u->flat, part, u->step->first - range->first);
    return staged == TR_STAGED_NOT ? (tr_location){range->buffer, before}
                                   : (tr_location){staged, 0};
}

static void add_states(const update *u, tr_op_draft *op) {
    for (int s = 0; s < tr__flat_states(u->plan, u->flat); s++) {
        tr_part part = (tr_part)(TR_PART_STATE + s);
        tr__op_adds(op, TR_UPDATE_STATE + s,
                    tr__part_desc(u->plan, u->flat, part, u->step->count),
                    part_of(u, part));
    }
}

static tr_op_draft begin(const update *u, const tr_op *of) {
    // The first element of the flat buffer whose parts this rank measures.
    int64_t origin, end;
    tr__norms_range(u->plan, u->flat, &origin, &end);
    tr_update_attr attr = {
        .first = u->step->first, .origin = origin, .flat = u->step->unit};
    tr_op_draft op = tr__op_draft(u->plan, u->step->stream, of, &attr, sizeof attr);
    tr__op_input(&op, tr__vector(u->plan->request.sums, u->step->count),
                 part_of(u, TR_PART_GRAD));
    return op;
}

static tr_op_draft last_phase(const update *u, int32_t norms) {
    const tr_plan *plan = u->plan;
    tr_op_draft op = begin(u, &tr__op_update);
    if (norms >= 0) {
        tr__op_input(&op, tr__vector(TR_F64, totals_of(plan)), (tr_location){norms, 0});
    }
    tr__op_adds(&op, 0, tr__vector(TR_F32, u->step->count), part_of(u, TR_PART_PARAM));
    if (tr__plan_is_half(plan)) {
        tr__op_writes(&op, TR_UPDATE_COPY,
                      tr__vector(plan->request.compute, u->step->count),
                      part_of(u, TR_PART_COPY));
    }
    add_states(u, &op);
    return op;
}

static tr_op_draft first_phase(const update *u, int32_t measured) {
    const tr_plan *plan = u->plan;
    int64_t first = u->flat->parts;
    tr_op_draft op = begin(u, &tr__op_direction_squares);
    tr__op_input(&op, tr__vector(TR_F32, u->step->count), part_of(u, TR_PART_PARAM));
    tr__op_adds(&op, 0, tr__vector(TR_F64, 2 * tr__norms_parts(plan, u->flat)),
                (tr_location){measured, first * (int64_t)sizeof(tr_squares)});
    add_states(u, &op);
    return op;
}

int32_t tr__put_update(tr_editor *editor, tr_plan_step step, const tr_staged *staged) {
    bool measures = step.mark == TR_MARK_MEASURE;
    step.label.verb = measures ? TR_VERB_direction_norms : TR_VERB_update;
    step.subject = TR_OF_FLAT;
    update u = {editor->plan, &step, &editor->plan->flats[step.unit], staged};
    int32_t norms = measures ? measured(editor) : totals(editor);
    int32_t work = tr__edit_convert(editor, &step,
                                    measures ? TR_CONVERT_MEASURE : TR_CONVERT_UPDATE,
                                    step.guard != TR_GUARD_DEFERRED);
    tr_step_maker m = tr__make_launch(editor, step, work);
    if (measures) {
        tr_op_draft op = first_phase(&u, norms);
        tr__make_op(&m, &op);
    } else if (step.count > 0) { // a unit may have no parameters of its own
        tr_op_draft op = last_phase(&u, norms);
        tr__make_op(&m, &op);
    }
    return tr__make_end(&m);
}

// ---- matrices as wholes

// Ranks that share the flat buffer's matrices, and where this one's directions begin in
// those of all.
static int64_t sharers_of(const tr_plan *plan, const tr_flat *flat) {
    return flat->split ? plan->request.mesh.size[TR_AXIS_TENSOR] : 1;
}
static int64_t own_directions(const tr_plan *plan, const tr_flat *flat) {
    return flat->split ? plan->request.mesh.at[TR_AXIS_TENSOR] * flat->count : 0;
}

static tr_op_draft direct(const update *u, int32_t directions) {
    int64_t first = own_directions(u->plan, u->flat) + u->step->first;
    tr_update_attr attr = {.first = u->step->first, .flat = u->step->unit};
    tr_op_draft op =
        tr__op_draft(u->plan, u->step->stream, &tr__op_direction, &attr, sizeof attr);
    tr__op_input(&op, tr__vector(u->plan->request.sums, u->step->count),
                 part_of(u, TR_PART_GRAD));
    tr__op_writes(&op, 0, tr__vector(TR_F32, u->step->count),
                  (tr_location){directions, first * (int64_t)sizeof(float)});
    add_states(u, &op);
    return op;
}

// The matrices of which the step updates elements: their operations, and the one that
// needs the most working memory, in the op's attributes. *work: bytes of that.
static tr_orthogonal_attr measure_matrices(const update *u, const tr_op_draft *op,
                                           int64_t *work) {
    const tr_plan_step *step = u->step;
    tr_orthogonal_attr most = {.update = {.first = step->first, .flat = step->unit},
                               .shared = u->flat->split};
    const tr_kernel *kernel = tr__prepared_kernel(&op->desc);
    *work = 0;
    for (size_t i = u->flat->first_param; i < u->flat->end_param; i++) {
        const tr_plan_param *param = &u->plan->params[i];
        bool here = param->flat == step->unit &&
                    param->offset < step->first + step->count &&
                    param->offset + param->count > step->first;
        if (!here || !kernel || !kernel->workspace) {
            continue;
        }
        tr_op_desc desc = op->desc;
        tr_orthogonal_attr one = most;
        tr_shape shape = u->flat->split ? param->stored_shape : param->shape;
        one.rows = shape.dim[0];
        one.columns = shape.dim[1];
        memcpy(desc.attr, &one, sizeof one);
        int64_t bytes = (int64_t)kernel->workspace(&desc, NULL);
        most = bytes > *work ? one : most;
        *work = bytes > *work ? bytes : *work;
        enum { USUAL = 5 }; // iterations
        most.flops += USUAL * tr__orthogonal_flops(one.rows, one.columns);
    }
    return most;
}

static tr_op_draft orthogonal(const update *u, int32_t directions, int64_t *work) {
    tr_orthogonal_attr attr = {.update = {.first = u->step->first}};
    tr_op_draft op =
        tr__op_draft(u->plan, u->step->stream, &tr__op_orthogonal, &attr, sizeof attr);
    int64_t all = u->flat->count * sharers_of(u->plan, u->flat);
    tr__op_input(&op, tr__vector(TR_F32, all), (tr_location){directions, 0});
    tr__op_adds(&op, 0, tr__vector(TR_F32, u->step->count), part_of(u, TR_PART_PARAM));
    if (tr__plan_is_half(u->plan)) {
        tr__op_writes(&op, TR_UPDATE_COPY,
                      tr__vector(u->plan->request.compute, u->step->count),
                      part_of(u, TR_PART_COPY));
    }
    attr = measure_matrices(u, &op, work);
    memcpy(op.desc.attr, &attr, sizeof attr);
    return op;
}

// What each rank of the group has of these directions, `shard` of the elements.
static void gather_directions(const update *u, tr_editor *editor, tr_axes group,
                              tr_region all, int64_t shard, tr_space space) {
    tr_plan_step step = {.label = tr__label_of_part(TR_VERB_gather, TR_PART_DIRECTION),
                         .stream = tr__exchange_stream(u->plan, space),
                         .guard = TR_GUARD_APPLIED,
                         .subject = TR_OF_FLAT,
                         .unit = u->step->unit};
    tr_exchange exchange = {.part = TR_PART_DIRECTION,
                            .kind = TR_COMM_GATHER,
                            .type = TR_COMM_F32,
                            .group = group,
                            .in_place = true,
                            .count = (all.end - all.first) / (int64_t)sizeof(float),
                            .shard = shard};
    tr__make_exchange(editor, step, exchange, all, all, false);
}

// Data ranks have parts of what this rank has of the matrices, and tensor ranks share
// these.
static void gather_all_directions(const update *u, tr_editor *editor,
                                  int32_t directions, tr_space space) {
    const tr_flat *flat = u->flat;
    int64_t element = (int64_t)sizeof(float), own = flat->count * element;
    int64_t sharers = sharers_of(u->plan, flat);
    int64_t first = own_directions(u->plan, flat) * element;
    if (tr__plan_stage(u->plan) > 0 && flat->count > 0) {
        gather_directions(u, editor, TR_ON_DATA,
                          (tr_region){directions, first, first + own}, flat->shard,
                          space);
    }
    if (sharers > 1 && flat->count > 0) {
        gather_directions(u, editor, TR_ON_TENSOR,
                          tr__region(directions, own * sharers), flat->count, space);
    }
}

int32_t tr__put_matrices(tr_editor *editor, tr_plan_step step,
                         const tr_staged *staged) {
    const tr_plan *plan = editor->plan;
    const tr_flat *flat = &plan->flats[step.unit];
    tr_space space =
        step.stream == TR_STREAM_HOST ? tr__plan_shared_space(plan) : TR_SPACE_DEVICE;
    int32_t directions = tr__edit_value(
        editor, TR_LEDGER_workspace, space,
        tr__round_up(flat->count * sharers_of(plan, flat) * (int64_t)sizeof(float),
                     TR_ALIGNMENT));
    step.subject = TR_OF_FLAT;
    tr_plan_step first = step;
    first.label.verb = TR_VERB_direction;
    first.mark = TR_MARK_DIRECT;
    step.label.verb = TR_VERB_update;
    update u = {plan, &first, flat, staged};
    if (step.count > 0) {
        int32_t convert = tr__edit_convert(editor, &first, TR_CONVERT_MEASURE, true);
        tr_op_draft op = direct(&u, directions);
        tr__make_one(editor, first, convert, &op);
    }
    gather_all_directions(&u, editor, directions, space);
    if (step.count == 0) {
        return tr__put_update(editor, step, staged);
    }
    int64_t work = 0;
    u.step = &step;
    tr_op_draft op = orthogonal(&u, directions, &work);
    int32_t memory = work > 0 ? tr__edit_value(editor, TR_LEDGER_workspace, space,
                                               tr__round_up(work, TR_ALIGNMENT))
                              : -1;
    return tr__make_one(editor, step, memory, &op);
}

// ---- where they are

size_t tr__first_update(const tr_sequence *sequence) {
    size_t i = sequence->count;
    while (i > 0 && sequence->steps[i - 1].mark == TR_MARK_UPDATE) {
        i--;
    }
    return i;
}

// Matrices that are updated as wholes and of which each rank of the tensor axis has a
// part: where the ranks' parts lie, in what all have told of their directions, and
// which elements of the matrix they are. It follows from how the rank's own part is
// cut.
#include "base/memory.h"
#include "ops/operand.h"
#include "train/engine.h"

// How a tensor is cut, in parts in the order of ranks, and how often it has such a
// dimension.
typedef struct division {
    const tr_division *of;
    int64_t times;
    int64_t parts, sharers; // of each part, ranks that have it alike
} division;

static bool is_shared(const tr_plan *plan, const tr_plan_param *param) {
    return plan->flats[param->flat].split;
}

static division divide(const tr_plan *plan, const tr_plan_param *param) {
    const tr_mesh *mesh = &plan->request.mesh;
    int64_t sharers = plan->flats[param->flat].repeated ? mesh->repeats : 1;
    return (division){.of = &param->cut,
                      .times = tr_shape_count(param->stored_shape) /
                               tr__division_all(&param->cut),
                      .parts = mesh->size[TR_AXIS_TENSOR] / sharers,
                      .sharers = sharers};
}

static int64_t count_of(const division *d, int64_t part) {
    return d->times * tr__division_part(d->of, d->parts, part);
}

// Where part `part` of the parameter begins in its rank's flat buffer. Stacked
// parameters lie right behind each other, so those before it move it; what does not is
// set apart alike on all ranks.
static int64_t offset_of(const tr_plan *plan, const tr_plan_param *param,
                         int64_t rank) {
    const tr_plan_param *first = param;
    int64_t before = 0;
    while (first->place > 0 && first > plan->params) {
        const tr_plan_param *last = first - 1;
        if (last->flat != first->flat || last->offset + last->count != first->offset) {
            break;
        }
        division d = divide(plan, last);
        before += count_of(&d, rank / d.sharers);
        first = last;
    }
    return first->offset + before;
}

static void note_parts(const tr_plan *plan, const tr_plan_param *param,
                       const division *d, tr_matrix_part *parts) {
    for (int64_t p = 0; p < d->parts; p++) {
        int64_t rank = p * d->sharers;
        parts[p] = (tr_matrix_part){.offset = rank * plan->flats[param->flat].count +
                                              offset_of(plan, param, rank),
                                    .count = count_of(d, p),
                                    .lies = tr__division_lies(d->of, d->parts, p)};
    }
}

static const tr_plan_param *param_of(const tr_plan *plan,
                                     const tr_update_range *range) {
    const tr_flat *flat = &plan->flats[range->flat];
    for (size_t i = flat->first_param; i < flat->end_param; i++) {
        if (plan->params[i].flat == range->flat &&
            plan->params[i].offset == range->offset) {
            return &plan->params[i];
        }
    }
    return NULL;
}

tr_status tr__engine_matrices(tr_engine *engine, tr_error *err) {
    const tr_plan *plan = engine->plan;
    int64_t ranks = plan->request.mesh.size[TR_AXIS_TENSOR];
    size_t most = engine->range_count * (size_t)ranks, count = 0;
    engine->matrix_parts = tr__calloc(most + 1, sizeof *engine->matrix_parts);
    if (!engine->matrix_parts) {
        return tr_fail(err, TR_MEMORY, "no memory for the parts of matrices");
    }
    for (size_t i = 0; i < engine->range_count; i++) {
        tr_update_range *range = &engine->ranges[i];
        const tr_plan_param *param = param_of(plan, range);
        if (range->apart || !param || !is_shared(plan, param)) {
            continue;
        }
        division d = divide(plan, param);
        tr_matrix_part *parts = engine->matrix_parts + count;
        note_parts(plan, param, &d, parts);
        range->rows = param->stored_shape.dim[0];
        range->columns = param->stored_shape.dim[1];
        range->parts = parts;
        range->part_count = (int)d.parts;
        range->lies = param->lies;
        count += (size_t)d.parts;
    }
    return TR_OK;
}

// Which values of a setting the planner tries. See planner/settings.c.
#include "planner/values.h"
#include "base/checked.h"
#include "models/models.h"
#include "planner/planner.h"

// More micro-batches than this, times units, make a plan too long to look at.
enum { UNROLLED_MAX = 1 << 20, PROBES = 4, PER_OCTAVE = 2, SLICES_MAX = 16 };

// Of some sizes from `low` to twice that, those that leave no row of the share empty,
// else the one that leaves the fewest. Returns how many.
static size_t best_of_octave(int64_t share, int64_t low, int64_t out[PER_OCTAVE]) {
    int64_t least = INT64_MAX, last = 0;
    size_t count = 0;
    for (int i = 0; i < PROBES; i++) {
        int64_t steps = tr__ceil_div(share, low + low * i / PROBES);
        int64_t m = tr__ceil_div(share, steps), empty = m * steps - share;
        if (m < low || m == last || empty > least) {
            continue;
        }
        count = empty < least || least > 0 ? 0 : count;
        least = empty;
        if (count < PER_OCTAVE) {
            out[count++] = m;
        }
        last = m;
    }
    return count;
}

size_t tr__values_micro_batch(const tr_planner_request *request, const tr_point *point,
                              int64_t *values) {
    const tr_plan_request *r = &request->plan;
    int64_t share = tr__ceil_div(r->train_batch_size, tr__data_ranks(&point->plan));
    int64_t least = tr__ceil_div(share, UNROLLED_MAX / r->model->unit_count);
    size_t count = 0;
    for (int64_t low = 1; low < share; low *= 2) {
        int64_t best[PER_OCTAVE];
        size_t found = best_of_octave(share, low, best);
        for (size_t i = 0; i < found; i++) {
            if (best[i] >= least && best[i] < share) {
                values[count++] = best[i];
            }
        }
    }
    values[count++] = share;
    return count;
}

// One rank has nothing to share out.
size_t tr__values_stage(const tr_planner_request *request, const tr_point *point,
                        int64_t *values) {
    (void)request;
    if (tr__data_ranks(&point->plan) == 1) {
        values[0] = 0;
        return 1;
    }
    for (int stage = 0; stage <= 3; stage++) {
        values[stage] = stage;
    }
    return 4;
}

size_t tr__values_optimizer_placement(const tr_planner_request *request,
                                      const tr_point *point, int64_t *values) {
    size_t count = 0;
    (void)point;
    for (int space = 0; space < TR_SPACES; space++) {
        if (space == TR_SPACE_DEVICE || request->budget[space] > 0) {
            values[count++] = space;
        }
    }
    return count;
}

size_t tr__values_grad_placement(const tr_planner_request *request,
                                 const tr_point *point, int64_t *values) {
    (void)request;
    values[0] = 0;
    values[1] = 1;
    return point->plan.optimizer_placement == TR_SPACE_NVME ? 2 : 1;
}

// The optimizer goes first, where it may: there is more of it, and it is used once a
// step.
size_t tr__values_param_placement(const tr_planner_request *request,
                                  const tr_point *point, int64_t *values) {
    bool open = request->free >> TR_DIMENSION_optimizer_placement & 1;
    if (open && point->plan.optimizer_placement == TR_SPACE_DEVICE) {
        values[0] = TR_SPACE_DEVICE;
        return 1;
    }
    return tr__values_optimizer_placement(request, point, values);
}

// Only where parameters come and go is it of use to have fewer of them at once.
size_t tr__values_vocabulary_slices(const tr_planner_request *request,
                                    const tr_point *point, int64_t *values) {
    bool pass = point->plan.param_placement != TR_SPACE_DEVICE ||
                (tr__data_ranks(&point->plan) > 1 && point->plan.stage == 3);
    size_t count = 0;
    for (int64_t n = 1; n <= SLICES_MAX; n *= 2) {
        bool possible = n == 1 || (pass && n <= request->plan.model->classes);
        if (possible && (request->sliced || n == request->vocabulary_slices)) {
            values[count++] = n;
        }
    }
    return count;
}

// Activations that may stay are made once. What is not of groups of texts has no loss
// over all micro-batches.
size_t tr__values_passes(const tr_planner_request *request, const tr_point *point,
                         int64_t *values) {
    bool groups = request->sliced && tr__model_group(request->sliced) > 0;
    values[0] = 1;
    values[1] = 2;
    return groups && point->plan.accumulation_steps > 1 ? 2 : 1;
}

size_t tr__values_wave(const tr_planner_request *request, const tr_point *point,
                       int64_t *values) {
    int64_t g = point->plan.accumulation_steps;
    size_t count = 0;
    (void)request;
    for (int64_t wave = 1; wave < g; wave *= 2) {
        values[count++] = wave;
    }
    values[count++] = g;
    return count;
}

// Fewer take less memory. No more take turns than a wave has.
size_t tr__values_alternating(const tr_planner_request *request, const tr_point *point,
                              int64_t *values) {
    const tr_plan_request *r = &point->plan;
    bool some = r->mesh.size[TR_AXIS_TENSOR] > 1 && r->wave > 1;
    size_t count = 0;
    (void)request;
    values[count++] = TR_ALTERNATING_MOST;
    for (int64_t n = TR_ALTERNATING_MOST / 2; n > 0 && some; n /= 2) {
        if (n < r->wave) {
            values[count++] = n;
        }
    }
    return count;
}

size_t tr__values_recomputed_ops(const tr_planner_request *request,
                                 const tr_point *point, int64_t *values) {
    for (int i = 0; i < request->recompute_choice_count; i++) {
        values[i] = request->recompute_choices[i];
    }
    if (request->recompute_choice_count == 0) {
        values[0] = point->plan.recomputed_ops ? point->plan.recomputed_ops
                                               : TR_RECOMPUTE_DEFAULT;
        return 1;
    }
    return (size_t)request->recompute_choice_count;
}

size_t tr__values_boundary_placement(const tr_planner_request *request,
                                     const tr_point *point, int64_t *values) {
    bool units = request->free >> TR_DIMENSION_recomputed_units & 1 ||
                 point->plan.recomputed_units != 0;
    values[0] = 0;
    values[1] = 1;
    return units && request->budget[TR_SPACE_HOST] > 0 ? 2 : 1;
}

size_t tr__values_saved_placement(const tr_planner_request *request,
                                  const tr_point *point, int64_t *values) {
    (void)point;
    values[0] = 0;
    values[1] = 1;
    return request->budget[TR_SPACE_HOST] > 0 ? 2 : 1;
}

// All but the last unit, which is turned around at once; of many units not every
// number.
size_t tr__values_recomputed_units(const tr_planner_request *request,
                                   const tr_point *point, int64_t *values) {
    int64_t most = request->plan.model->unit_count - 1;
    int64_t step = tr__ceil_div(most + 1, TR_VALUES_MAX - 1);
    size_t count = 0;
    (void)point;
    for (int64_t n = 0; n < most; n += step) {
        values[count++] = n;
    }
    values[count++] = most;
    return count;
}

// The points of a search, by groups: all but how many units are recomputed.
#include "base/memory.h"
#include "planner/planner.h"

#include <string.h>

static tr_status no_memory(tr_error *err) {
    return tr_fail(err, TR_MEMORY, "no memory to choose a plan");
}

// A part that cannot be is kept as such, and the reason of the first.
static tr_status settle(tr_search *search, tr_status status, const tr_error *why,
                        tr_error *err) {
    if (status == TR_USAGE) {
        search->why = search->why.status == TR_OK ? *why : search->why;
        return TR_OK;
    }
    return status == TR_OK ? TR_OK : tr_fail(err, status, "%s", why->message);
}

static tr_status find_kernels(tr_search *search, const tr_point *point,
                              tr_kernels **out, tr_error *err) {
    for (size_t i = 0; i < search->kernel_count; i++) {
        *out = search->kernels[i];
        if ((*out)->micro_batch == point->plan.micro_batch &&
            (*out)->many == (point->plan.accumulation_steps > 1) &&
            (*out)->recomputed == point->plan.recomputed_ops &&
            (*out)->tensor_ranks == point->plan.mesh.size[TR_AXIS_TENSOR] &&
            (*out)->slices == point->slices) {
            return TR_OK;
        }
    }
    tr_error why = {0};
    if (!tr__grow((void **)&search->kernels, &search->kernel_capacity,
                  search->kernel_count + 1, sizeof(tr_kernels *))) {
        return no_memory(err);
    }
    tr_status status =
        tr__kernels_make(search, point, &search->kernels[search->kernel_count], &why);
    *out = search->kernels[search->kernel_count];
    search->kernel_count += *out != NULL;
    return settle(search, status, &why, err);
}

static bool is_of_class(const tr_class *class, const int64_t *value) {
    for (int d = 0; d < TR_DIMENSIONS; d++) {
        if (tr__plan_settings[d].in_class && class->value[d] != value[d]) {
            return false;
        }
    }
    return true;
}

static tr_status find_class(tr_search *search, const tr_point *point, tr_class **out,
                            tr_error *err) {
    int64_t value[TR_DIMENSIONS];
    tr__point_values(point, value);
    for (size_t i = 0; i < search->class_count; i++) {
        *out = search->classes[i];
        if (is_of_class(*out, value)) {
            return TR_OK;
        }
    }
    tr_error why = {0};
    if (!tr__grow((void **)&search->classes, &search->class_capacity,
                  search->class_count + 1, sizeof(tr_class *))) {
        return no_memory(err);
    }
    tr_status status =
        tr__class_make(search, point, &search->classes[search->class_count], &why);
    *out = search->classes[search->class_count];
    search->class_count += *out != NULL;
    return settle(search, status, &why, err);
}

// Where waves must be whole, or of one micro-batch, others are no choice.
static bool has_wave(const tr_search *search, const tr_group *group) {
    const tr_plan_request *r = &group->point.plan;
    bool chosen = search->request->free >> TR_DIMENSION_wave & 1;
    bool whole = !group->class->whole_wave || r->wave == r->accumulation_steps;
    bool single = !group->class->single_wave || r->wave <= 1;
    return !chosen || (whole && single);
}

static tr_status add_group(tr_search *search, const tr_point *point, tr_error *err) {
    tr_group group = {.point = *point};
    tr_status status = find_class(search, point, &group.class, err);
    if (status == TR_OK && group.class->possible) {
        status = find_kernels(search, point, &group.kernels, err);
    }
    bool possible = status == TR_OK && group.class->possible && group.kernels->units &&
                    has_wave(search, &group);
    if (!possible) {
        return status;
    }
    if (!tr__grow((void **)&search->groups, &search->group_capacity,
                  search->group_count + 1, sizeof *search->groups)) {
        return no_memory(err);
    }
    search->groups[search->group_count++] = group;
    return TR_OK;
}

// Every combination of the dimensions from `d` on.
static tr_status add_groups(tr_search *search, int d, const tr_point *point,
                            tr_error *err) {
    tr_status status = TR_OK;
    if (d == TR_DIMENSION_recomputed_units) {
        return add_group(search, point, err);
    }
    int64_t *values = tr__calloc(TR_VALUES_MAX, sizeof *values);
    if (!values) {
        return no_memory(err);
    }
    size_t count =
        tr__dimension_values(search->request, (tr_dimension_name)d, point, values);
    for (size_t i = 0; i < count && status == TR_OK; i++) {
        tr_point next = *point;
        tr__plan_settings[d].set(&next, values[i]);
        status = add_groups(search, d + 1, &next, err);
    }
    tr__free(values);
    return status;
}

tr_status tr__search_begin(const tr_planner_request *request, unsigned free,
                           tr_search **out, tr_error *err) {
    tr_search *search = tr__calloc(1, sizeof *search);
    if (!search) {
        return no_memory(err);
    }
    *out = search;
    search->own = *request;
    search->own.free = free;
    search->request = &search->own;
    search->ladder = tr__calloc(TR_VALUES_MAX, sizeof *search->ladder);
    if (!search->ladder) {
        return no_memory(err);
    }
    tr_status status = tr__planner_find_recompute_choices(&search->own, err);
    if (status != TR_OK) {
        return status;
    }
    tr_point start = tr__planner_start(request);
    search->ladder_count = tr__dimension_values(
        search->request, TR_DIMENSION_recomputed_units, &start, search->ladder);
    return add_groups(search, 0, &start, err);
}

void tr__search_end(tr_search *search) {
    if (!search) {
        return;
    }
    for (size_t i = 0; i < search->kernel_count; i++) {
        tr__kernels_destroy(search->kernels[i]);
    }
    for (size_t i = 0; i < search->class_count; i++) {
        tr__class_destroy(search->classes[i]);
    }
    for (size_t i = 0; i < search->group_count; i++) {
        tr__free(search->groups[i].close);
    }
    tr__free(search->kernels);
    tr__free(search->classes);
    tr__free(search->groups);
    tr__free(search->ladder);
    tr__free(search->made);
    tr__free(search);
}

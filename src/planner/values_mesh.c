// Which meshes the planner tries: all that share out the ranks, whatever the plan then
// says of them (heads that do not divide, optimizers that do not know parts of
// tensors).
#include "plan/schedules/schedule.h"
#include "planner/values.h"

enum { VIRTUAL_MOST = 8 };

// Divisors of `ranks`, at most `most`.
static size_t divisors(int64_t ranks, int64_t most, int64_t *values) {
    size_t count = 0;
    for (int64_t n = 1; n <= ranks && n <= most && count < TR_VALUES_MAX; n++) {
        if (ranks % n == 0) {
            values[count++] = n;
        }
    }
    return count;
}

size_t tr__values_tensor_ranks(const tr_planner_request *request, const tr_point *point,
                               int64_t *values) {
    bool open = request->free >> TR_DIMENSION_pipeline_stages & 1;
    const tr_mesh *mesh = &point->plan.mesh;
    int64_t stages = open ? 1 : mesh->size[TR_AXIS_PIPELINE];
    return divisors(tr_mesh_ranks(mesh) / stages, INT64_MAX, values);
}

size_t tr__values_pipeline_stages(const tr_planner_request *request,
                                  const tr_point *point, int64_t *values) {
    const tr_mesh *mesh = &point->plan.mesh;
    (void)request;
    return divisors(tr_mesh_ranks(mesh) / mesh->size[TR_AXIS_TENSOR],
                    point->plan.model->unit_count, values);
}

// Does the schedule go with so many parts of the model on each stage?
static bool goes_with(const tr_pipeline_schedule *schedule, int64_t each) {
    return schedule->least <= each && (schedule->most == 0 || each <= schedule->most);
}

size_t tr__values_pipeline_order(const tr_planner_request *request,
                                 const tr_point *point, int64_t *values) {
    bool open = request->free >> TR_DIMENSION_virtual_stages & 1;
    int64_t each = point->plan.virtual_stages > 1 ? point->plan.virtual_stages : 1;
    size_t count = 0;
    for (int i = 0; tr__pipeline_names[i]; i++) {
        const tr_pipeline_schedule *schedule =
            tr__pipeline_schedule((tr_pipeline_order)i);
        bool alone = point->plan.mesh.size[TR_AXIS_PIPELINE] == 1;
        if (alone ? i == TR_PIPELINE_1F1B : open || goes_with(schedule, each)) {
            values[count++] = i;
        }
    }
    return count;
}

size_t tr__values_virtual_stages(const tr_planner_request *request,
                                 const tr_point *point, int64_t *values) {
    const tr_pipeline_schedule *schedule =
        tr__pipeline_schedule(point->plan.pipeline_order);
    int64_t stages = point->plan.mesh.size[TR_AXIS_PIPELINE];
    int64_t most = stages == 1 ? 1 : point->plan.model->unit_count / stages;
    size_t count = 0;
    (void)request;
    for (int64_t each = 1; each <= most && each <= VIRTUAL_MOST; each *= 2) {
        if (goes_with(schedule, each)) {
            values[count++] = each;
        }
    }
    return count;
}

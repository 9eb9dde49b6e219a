#include "planner/settings_mesh.h"

#include "base/checked.h"
#include "comm/mesh.h"
#include "plan/schedules/schedule.h"

#include <inttypes.h>
#include <stdio.h>

int64_t tr__get_tensor_ranks(const tr_point *p) {
    return p->plan.mesh.size[TR_AXIS_TENSOR];
}

int64_t tr__get_pipeline_stages(const tr_point *p) {
    return p->plan.mesh.size[TR_AXIS_PIPELINE];
}

// The mesh of the same ranks with so many on the tensor and the pipeline axis. A
// micro-batch stays as large as it is.
static void set_mesh(tr_point *p, int64_t tensor, int64_t stages) {
    tr_plan_request *r = &p->plan;
    int64_t ranks = tr_mesh_ranks(&r->mesh), rank = tr_mesh_rank(&r->mesh);
    const tr_mesh mesh = {
        .size = {tr__max_i64(1, ranks / (tensor * stages)), tensor, stages}};
    if (tensor == tr__get_tensor_ranks(p) && stages == tr__get_pipeline_stages(p)) {
        return;
    }
    r->mesh = tr__mesh_of_rank(&mesh, rank);
    r->accumulation_steps =
        tr__ceil_div(r->train_batch_size, r->micro_batch * tr__data_ranks(r));
}

void tr__set_tensor_ranks(tr_point *p, int64_t value) {
    set_mesh(p, value, tr__get_pipeline_stages(p));
}

// With one stage there is no order, and the model is one part.
void tr__set_pipeline_stages(tr_point *p, int64_t value) {
    set_mesh(p, tr__get_tensor_ranks(p), value);
    if (value == 1) {
        p->plan.pipeline_order = TR_PIPELINE_1F1B;
        p->plan.virtual_stages = 0;
    }
}

int64_t tr__get_pipeline_order(const tr_point *p) {
    return p->plan.pipeline_order;
}

void tr__set_pipeline_order(tr_point *p, int64_t value) {
    p->plan.pipeline_order = (tr_pipeline_order)value;
}

int64_t tr__get_virtual_stages(const tr_point *p) {
    return tr__max_i64(p->plan.virtual_stages, 1);
}

void tr__set_virtual_stages(tr_point *p, int64_t value) {
    p->plan.virtual_stages = value;
}

void tr__say_tensor_ranks(const tr_point *p, char *dst, size_t size) {
    int64_t ranks = tr__get_tensor_ranks(p);
    if (ranks > 1) {
        snprintf(dst, size, "%" PRId64 " tensor ranks", ranks);
    }
}

void tr__say_pipeline_stages(const tr_point *p, char *dst, size_t size) {
    int64_t stages = tr__get_pipeline_stages(p);
    if (stages > 1) {
        snprintf(dst, size, "%" PRId64 " stages", stages);
    } else if (tr__get_tensor_ranks(p) == 1 && tr__data_ranks(&p->plan) > 1) {
        snprintf(dst, size, "data ranks alone");
    }
}

void tr__say_pipeline_order(const tr_point *p, char *dst, size_t size) {
    if (tr__get_pipeline_stages(p) > 1) {
        snprintf(dst, size, "%s", tr__pipeline_names[p->plan.pipeline_order]);
    }
}

void tr__say_virtual_stages(const tr_point *p, char *dst, size_t size) {
    if (tr__get_virtual_stages(p) > 1) {
        snprintf(dst, size, "%" PRId64 " virtual stages", tr__get_virtual_stages(p));
    }
}

#include "plan/flow/owners.h"

static int first_unit(const tr_mesh *mesh, int units, int64_t stage) {
    return (int)(stage * units / mesh->size[TR_AXIS_PIPELINE]);
}

tr_unit_range tr__stage_units(const tr_mesh *mesh, int units) {
    int64_t stage = mesh->at[TR_AXIS_PIPELINE];
    return (tr_unit_range){first_unit(mesh, units, stage),
                           first_unit(mesh, units, stage + 1)};
}

int64_t tr__stage_of_unit(const tr_mesh *mesh, int units, int unit) {
    return ((unit + 1) * mesh->size[TR_AXIS_PIPELINE] - 1) / units;
}

tr_param_axes tr__axes_of_stage(int64_t stage) {
    return (tr_param_axes){.replicated = TR_ON_DATA | TR_ON_TENSOR,
                           .owner = {[TR_AXIS_PIPELINE] = stage}};
}

void tr__axes_split(tr_param_axes *axes, tr_axes split) {
    axes->split |= split;
    axes->replicated &= ~split;
}

void tr__axes_add_stage(tr_param_axes *axes, int64_t stage) {
    if (stage != axes->owner[TR_AXIS_PIPELINE]) {
        axes->replicated |= TR_ON_PIPELINE;
    }
}

bool tr__owns(const tr_param_axes *axes, const tr_mesh *at) {
    bool owns = true;
    for (int axis = 0; axis < TR_AXES; axis++) {
        bool apart = axis == TR_AXIS_DATA || (axes->split >> axis & 1);
        owns = owns && (apart || at->at[axis] == axes->owner[axis]);
    }
    return owns;
}

int64_t tr__loss_rank(const tr_mesh *mesh, int64_t data) {
    tr_mesh loss = *mesh;
    loss.at[TR_AXIS_DATA] = data;
    loss.at[TR_AXIS_TENSOR] = 0;
    loss.at[TR_AXIS_PIPELINE] = mesh->size[TR_AXIS_PIPELINE] - 1;
    return tr_mesh_rank(&loss);
}

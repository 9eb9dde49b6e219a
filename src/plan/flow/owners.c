#include "plan/flow/owners.h"

#include "base/memory.h"

tr_param_axes tr__axes_of_stage(int64_t stage) {
    return (tr_param_axes){.replicated = TR_ON_DATA | TR_ON_TENSOR,
                           .owner = {[TR_AXIS_PIPELINE] = stage}};
}

void tr__axes_split(tr_param_axes *axes, tr_axes split) {
    axes->split |= split;
    axes->replicated &= ~split;
}

void tr__axes_repeat(tr_param_axes *axes) {
    axes->replicated |= TR_ON_REPEATS;
}

void tr__axes_sum(tr_param_axes *axes, tr_axes summed) {
    axes->summed |= summed;
}

bool tr__axes_add_stage(tr_param_axes *axes, int64_t stage) {
    if (tr__stage_has(axes, stage)) {
        return true;
    }
    if (!tr__grow((void **)&axes->others, &axes->other_room,
                  (size_t)axes->other_count + 1, sizeof *axes->others)) {
        return false;
    }
    axes->replicated |= TR_ON_PIPELINE;
    axes->summed |= TR_ON_PIPELINE;
    axes->others[axes->other_count++] = stage;
    return true;
}

void tr__axes_clear(tr_param_axes *axes) {
    tr__free(axes->others);
}

bool tr__stage_has(const tr_param_axes *axes, int64_t stage) {
    int64_t number = 0;
    while (number < tr__stages_with(axes) && tr__stage_with(axes, number) != stage) {
        number++;
    }
    return number < tr__stages_with(axes);
}

int64_t tr__stages_with(const tr_param_axes *axes) {
    return 1 + axes->other_count;
}

int64_t tr__stage_with(const tr_param_axes *axes, int64_t number) {
    return number == 0 ? axes->owner[TR_AXIS_PIPELINE] : axes->others[number - 1];
}

bool tr__owns_repeated(const tr_param_axes *axes, const tr_mesh *at) {
    return !(axes->replicated & TR_ON_REPEATS) ||
           tr__mesh_member(at, TR_ON_REPEATS) == 0;
}

static bool owns_beside(const tr_param_axes *axes, const tr_mesh *at, tr_axes apart) {
    bool owns = tr__owns_repeated(axes, at);
    for (int axis = 0; axis < TR_AXES; axis++) {
        owns = owns && ((apart >> axis & 1) || at->at[axis] == axes->owner[axis]);
    }
    return owns;
}

bool tr__owns(const tr_param_axes *axes, const tr_mesh *at) {
    return owns_beside(axes, at, TR_ON_DATA | axes->split);
}

bool tr__owns_of_stage(const tr_param_axes *axes, const tr_mesh *at) {
    return owns_beside(axes, at, TR_ON_DATA | TR_ON_PIPELINE | axes->split);
}

int64_t tr__loss_rank(const tr_mesh *mesh, int64_t last, int64_t data) {
    tr_mesh loss = *mesh;
    loss.at[TR_AXIS_DATA] = data;
    loss.at[TR_AXIS_TENSOR] = 0;
    loss.at[TR_AXIS_PIPELINE] = last;
    return tr_mesh_rank(&loss);
}

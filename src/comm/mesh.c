#include "comm/mesh.h"

#include "base/checked.h"

#include <string.h>

// What a rank's number is made up of, from what neighbours differ in to what they do
// last. The tensor axis is two: ranks with the same heads, and these together.
typedef struct digit {
    tr_axes of; // is it of a set with any of these?
    tr_axis axis;
    int64_t size, stride; // on its axis
} digit;

enum { DIGITS = TR_AXES + 1 };

static void find_digits(const tr_mesh *mesh, digit out[DIGITS]) {
    const int64_t *size = mesh->size;
    int64_t same = mesh->repeats > 1 ? mesh->repeats : 1;
    out[0] = (digit){TR_ON_TENSOR | TR_ON_REPEATS, TR_AXIS_TENSOR, same, 1};
    out[1] = (digit){TR_ON_TENSOR, TR_AXIS_TENSOR, size[TR_AXIS_TENSOR] / same, same};
    out[2] = (digit){TR_ON_DATA, TR_AXIS_DATA, size[TR_AXIS_DATA], 1};
    out[3] = (digit){TR_ON_PIPELINE, TR_AXIS_PIPELINE, size[TR_AXIS_PIPELINE], 1};
}

static int64_t value_of(const tr_mesh *mesh, const digit *d) {
    return d->size > 0 ? mesh->at[d->axis] / d->stride % d->size : 0;
}

tr_mesh tr_mesh_of_data(int64_t ranks, int64_t rank) {
    return (tr_mesh){
        .size = {[TR_AXIS_DATA] = ranks, [TR_AXIS_TENSOR] = 1, [TR_AXIS_PIPELINE] = 1},
        .at = {[TR_AXIS_DATA] = rank}};
}

const char *tr_axis_name(tr_axis axis) {
    static const char *const names[TR_AXES] = {
        [TR_AXIS_DATA] = "data",
        [TR_AXIS_TENSOR] = "tensor",
        [TR_AXIS_PIPELINE] = "pipeline",
    };
    return axis >= 0 && axis < TR_AXES ? names[axis] : "";
}

const char *tr__axes_name(tr_axes axes) {
    static const char *const names[TR_AXES_SETS] = {
        [0] = "none",
        [TR_ON_DATA] = "data",
        [TR_ON_TENSOR] = "tensor",
        [TR_ON_PIPELINE] = "pipeline",
        [TR_ON_DATA | TR_ON_TENSOR] = "data and tensor",
        [TR_ON_DATA | TR_ON_PIPELINE] = "data and pipeline",
        [TR_ON_TENSOR | TR_ON_PIPELINE] = "tensor and pipeline",
        [TR_ON_ALL] = "all",
        [TR_ON_REPEATS] = "repeats",
    };
    const char *name = axes < TR_AXES_SETS ? names[axes] : NULL;
    return name ? name : "several";
}

tr_status tr__mesh_check(const tr_mesh *mesh, tr_error *err) {
    int64_t ranks = 1;
    for (int axis = 0; axis < TR_AXES; axis++) {
        int64_t size = mesh->size[axis], at = mesh->at[axis];
        bool counts = size >= 1 && tr__mul_i64(ranks, size, &ranks);
        if (!counts || ranks > TR_MESH_RANKS_MAX) {
            return tr_fail(err, TR_USAGE,
                           "%lld ranks on the %s axis of the mesh; possible are 1 to "
                           "%d ranks on all axes together",
                           (long long)size, tr_axis_name((tr_axis)axis),
                           TR_MESH_RANKS_MAX);
        }
        if (at < 0 || at >= size) {
            return tr_fail(err, TR_USAGE,
                           "rank %lld of %lld on the %s axis of the mesh; the first "
                           "is 0",
                           (long long)at, (long long)size, tr_axis_name((tr_axis)axis));
        }
    }
    return TR_OK;
}

// ---- numbers of ranks

// By the coordinates on these axes alone.
static int64_t number(const tr_mesh *mesh, tr_axes axes) {
    int64_t number = 0, stride = 1;
    digit digits[DIGITS];
    find_digits(mesh, digits);
    for (int i = 0; i < DIGITS; i++) {
        if (axes & digits[i].of) {
            number += stride * value_of(mesh, &digits[i]);
            stride *= digits[i].size;
        }
    }
    return number;
}

int64_t tr__mesh_members(const tr_mesh *mesh, tr_axes axes) {
    int64_t members = 1;
    digit digits[DIGITS];
    find_digits(mesh, digits);
    for (int i = 0; i < DIGITS; i++) {
        members *= axes & digits[i].of ? digits[i].size : 1;
    }
    return members;
}

int64_t tr__mesh_member(const tr_mesh *mesh, tr_axes axes) {
    return number(mesh, axes);
}

int64_t tr_mesh_ranks(const tr_mesh *mesh) {
    return tr__mesh_members(mesh, TR_ON_ALL);
}

int64_t tr_mesh_rank(const tr_mesh *mesh) {
    return number(mesh, TR_ON_ALL);
}

static tr_mesh at_member(const tr_mesh *mesh, tr_axes axes, int64_t member) {
    tr_mesh other = *mesh;
    digit digits[DIGITS];
    find_digits(mesh, digits);
    for (int i = 0; i < DIGITS; i++) {
        const digit *d = &digits[i];
        if (axes & d->of) {
            int64_t more = member % d->size - value_of(mesh, d);
            other.at[d->axis] += d->stride * more;
            member /= d->size;
        }
    }
    return other;
}

tr_mesh tr__mesh_with_data(const tr_mesh *mesh, int64_t ranks) {
    tr_mesh other = {.repeats = 0};
    memcpy(other.size, mesh->size, sizeof other.size);
    other.size[TR_AXIS_DATA] = ranks;
    return other;
}

tr_mesh tr__mesh_of_rank(const tr_mesh *mesh, int64_t rank) {
    return at_member(mesh, TR_ON_ALL, rank);
}

int64_t tr__mesh_rank_of(const tr_mesh *mesh, tr_axes axes, int64_t member) {
    tr_mesh other = at_member(mesh, axes, member);
    return tr_mesh_rank(&other);
}

int64_t tr__mesh_stride(const tr_mesh *mesh, tr_axes axes) {
    return tr__mesh_members(mesh, axes) > 1
               ? tr__mesh_rank_of(mesh, axes, 1) - tr__mesh_rank_of(mesh, axes, 0)
               : 1;
}

// Groups of these axes begin at multiples of their extent, and so of a node's.
int64_t tr__mesh_near(const tr_mesh *mesh, tr_axes axes, int64_t node_ranks) {
    int64_t members = tr__mesh_members(mesh, axes);
    int64_t stride = tr__mesh_stride(mesh, axes);
    int64_t near = node_ranks > 0 ? node_ranks / stride : members;
    bool even =
        tr__mesh_rank_of(mesh, axes, members - 1) - tr__mesh_rank_of(mesh, axes, 0) ==
        stride * (members - 1);
    if (node_ranks > 0 && node_ranks % stride != 0) {
        return 1;
    }
    return near >= members                           ? members
           : even && near > 1 && members % near == 0 ? near
                                                     : 1;
}

bool tr__mesh_has_nodes(const tr_mesh *mesh, int64_t node_ranks) {
    for (tr_axes axes = 1; axes <= TR_ON_ALL; axes++) {
        int64_t near = tr__mesh_near(mesh, axes, node_ranks);
        if (near > 1 && near < tr__mesh_members(mesh, axes)) {
            return true;
        }
    }
    return false;
}

tr_status tr__mesh_group(const tr_mesh *mesh, tr_axes axes, tr_comm_group *group,
                         tr_error *err) {
    int64_t members = tr__mesh_members(mesh, axes);
    int64_t first = tr__mesh_rank_of(mesh, axes, 0);
    int64_t stride = tr__mesh_stride(mesh, axes);
    if (tr__mesh_rank_of(mesh, axes, members - 1) != first + stride * (members - 1)) {
        return tr_fail(err, TR_USAGE,
                       "ranks on the axes %s of a mesh of %lld x %lld x %lld (data, "
                       "tensor, pipeline) are not evenly apart",
                       tr__axes_name(axes), (long long)mesh->size[TR_AXIS_DATA],
                       (long long)mesh->size[TR_AXIS_TENSOR],
                       (long long)mesh->size[TR_AXIS_PIPELINE]);
    }
    *group = (tr_comm_group){(int)first, (int)stride, (int)members};
    return TR_OK;
}

tr_comm_group tr__mesh_pair(const tr_mesh *mesh, tr_axes axes, int64_t from,
                            int64_t to) {
    int64_t first = tr__mesh_rank_of(mesh, axes, from),
            second = tr__mesh_rank_of(mesh, axes, to);
    return (tr_comm_group){(int)first, (int)(second - first), 2};
}

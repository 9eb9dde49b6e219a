// Groups of ranks in a mesh: those that differ on some of its axes only.
#ifndef TR_COMM_MESH_H
#define TR_COMM_MESH_H

#include "comm/comm.h"

#include <tranche/extend/mesh.h>

enum { TR_MESH_RANKS_MAX = 1 << 20 };

// A set of axes: a bit for each. A bit more stands for a part of the tensor axis: those
// of its ranks that have the same heads of keys (tr_mesh.repeats).
typedef uint32_t tr_axes;

enum {
    TR_ON_DATA = 1 << TR_AXIS_DATA,
    TR_ON_TENSOR = 1 << TR_AXIS_TENSOR,
    TR_ON_PIPELINE = 1 << TR_AXIS_PIPELINE,
    TR_ON_ALL = (1 << TR_AXES) - 1,
    TR_ON_REPEATS = 1 << TR_AXES,
    TR_AXES_SETS = 2 << TR_AXES, // how many sets there are
};

// Is it a mesh, and this rank in it? TR_USAGE names the axis.
tr_status tr__mesh_check(const tr_mesh *mesh, tr_error *err);
// The same mesh, as another rank of it (0 .. ranks - 1) has it.
tr_mesh tr__mesh_of_rank(const tr_mesh *mesh, int64_t rank);

// One with another number of ranks along the data axis, as its first rank has it.
tr_mesh tr__mesh_with_data(const tr_mesh *mesh, int64_t ranks);

// The group of a rank and axes: the ranks that have its coordinates on all other axes.
// Its members are numbered by rank.
int64_t tr__mesh_members(const tr_mesh *mesh, tr_axes axes);
int64_t tr__mesh_member(const tr_mesh *mesh, tr_axes axes); // this rank's number in it
int64_t tr__mesh_rank_of(const tr_mesh *mesh, tr_axes axes, int64_t member);
// By how much the ranks of its first two members differ; 1: it has one.
int64_t tr__mesh_stride(const tr_mesh *mesh, tr_axes axes);
// Its members that are near each other, on one node of so many ranks each (0: all ranks
// are on one node): they follow each other, and all nodes have as many. 1: it is not
// so.
int64_t tr__mesh_near(const tr_mesh *mesh, tr_axes axes, int64_t node_ranks);
// Are there groups of several nodes, each with several members that are near?
bool tr__mesh_has_nodes(const tr_mesh *mesh, int64_t node_ranks);
// The same for comm. TR_USAGE: its ranks are not evenly apart (of the tensor and the
// pipeline axis together, where there are several ranks on each of all three).
tr_status tr__mesh_group(const tr_mesh *mesh, tr_axes axes, tr_comm_group *group,
                         tr_error *err);

// Two members of the group on these axes, as a group: `from` is its first.
tr_comm_group tr__mesh_pair(const tr_mesh *mesh, tr_axes axes, int64_t from,
                            int64_t to);

// "data", "data and tensor", "all".
const char *tr__axes_name(tr_axes axes);

#endif

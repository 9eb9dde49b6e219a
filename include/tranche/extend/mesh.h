// The mesh of a run's ranks: who works on the same data, on the same parameters, on the
// same units.
//
// For those who write ops, models of ops in C, planners or backends. It may change with
// every version of the library: compile again what includes it (extend/version.h).
#ifndef TRANCHE_EXTEND_MESH_H
#define TRANCHE_EXTEND_MESH_H

#include <tranche/api.h>

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Ranks that differ in their coordinate on one axis only
typedef enum tr_axis {
    TR_AXIS_DATA,     // take other micro-batches of the same step
    TR_AXIS_TENSOR,   // have other parts of the same tensors
    TR_AXIS_PIPELINE, // have other units of the model
    TR_AXES
} tr_axis;

// A rank's place in the mesh. Ranks are numbered as in Megatron-LM: first along the
// tensor axis, then along the data axis, then along the pipeline axis:
//     rank = tensor + tensor_size * (data + data_size * pipeline)
typedef struct tr_mesh {
    int64_t size[TR_AXES]; // ranks along each axis, 1 or more
    int64_t at[TR_AXES];   // this rank's coordinates, 0 .. size - 1
    // Where a model has fewer heads of keys than the tensor axis has ranks: so many of
    // these ranks that follow each other have the same head; 0, 1: each has its own. A
    // plan finds it out; nobody asks for it.
    int64_t repeats;
} tr_mesh;

// All ranks lie along the data axis: the rank's coordinate on it is its number.
TR_API tr_mesh tr_mesh_of_data(int64_t ranks, int64_t rank);
TR_API int64_t tr_mesh_ranks(const tr_mesh *mesh); // of all axes
TR_API int64_t tr_mesh_rank(const tr_mesh *mesh);  // this rank's number: 0 .. ranks - 1
TR_API const char *tr_axis_name(tr_axis axis);     // "data"

#ifdef __cplusplus
}
#endif
#endif

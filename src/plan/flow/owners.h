// Owners: which ranks of the mesh count what several of them have.
//
// A parameter is split along some axes of the mesh, whose ranks have other elements of
// it, and replicated along others, whose ranks have the same elements with the same
// values. Whatever adds up over ranks (the squares of gradients, the noise scale, what
// goes into a checkpoint) takes each element once, from its owner: of ranks that have
// the same elements the one with the owner's coordinates. Along the data axis every
// rank owns its shard of the flat buffer, whoever keeps the rest as well.
#ifndef TR_PLAN_FLOW_OWNERS_H
#define TR_PLAN_FLOW_OWNERS_H

#include "comm/mesh.h"

#include <tranche/extend/plan.h>

#include <stdbool.h>

// The same for all parameters of a flat buffer.
typedef struct tr_param_axes {
    tr_axes split, replicated;
    // Of the latter: each rank makes a part of the gradient, and they sum it before the
    // norm: where several stages use the parameter, or ranks their own tokens, or where
    // a head of keys is repeated. One axis.
    tr_axes summed;
    int64_t owner[TR_AXES]; // coordinates; not used of split axes and the data axis
    // The stages beside the owner's that have them, too: the users of a tied tensor
    // need be neither neighbours nor evenly apart.
    int64_t *others; // [other_count] in the order of their first users
    int64_t other_count;
    size_t other_room;
} tr_param_axes;

// Of tensors of a unit that runs on that stage alone, split along no axis yet.
tr_param_axes tr__axes_of_stage(int64_t stage);
// The ranks on these axes have other elements of the tensors.
void tr__axes_split(tr_param_axes *axes, tr_axes split);
// Ranks that follow each other on the tensor axis, along which it is split, have the
// same elements (tr_mesh.repeats).
void tr__axes_repeat(tr_param_axes *axes);
// The ranks on this axis each make a part of the gradient.
void tr__axes_sum(tr_param_axes *axes, tr_axes summed);
// A user of the tensor runs on that stage: its ranks have the tensor as well. false:
// there is no memory to note it.
bool tr__axes_add_stage(tr_param_axes *axes, int64_t stage);
void tr__axes_clear(tr_param_axes *axes);
// Do ranks of the stage have what its parameters are?
bool tr__stage_has(const tr_param_axes *axes, int64_t stage);
// How many stages have it, and which: the owner's is number 0.
int64_t tr__stages_with(const tr_param_axes *axes);
int64_t tr__stage_with(const tr_param_axes *axes, int64_t number);
// Does the rank at these coordinates own what it has of the parameters?
bool tr__owns(const tr_param_axes *axes, const tr_mesh *at);
// Does it count for its heads, of those that have the same?
bool tr__owns_repeated(const tr_param_axes *axes, const tr_mesh *at);
// Of the ranks of one stage.
bool tr__owns_of_stage(const tr_param_axes *axes, const tr_mesh *at);
// The rank whose sums of the loss count for micro-batches of data rank `data`: on
// stage `last`, which has the model's last unit.
int64_t tr__loss_rank(const tr_mesh *mesh, int64_t last, int64_t data);

#endif

// What the CUDA kernels of updates share: how they go through their pieces, and how an
// optimizer's kernels are launched for one.
#ifndef TR_OPS_FLAT_UPDATE_CUDA_PIECES_H
#define TR_OPS_FLAT_UPDATE_CUDA_PIECES_H

#include "ops/flat/cast/cuda_cast.h"
#include "ops/flat/update/cuda_part.h"
#include "ops/flat/update/pieces.h"

// The pieces of the elements that result 0 or input 0 has, whichever is of elements.
// param: of the first; or NULL.
void tr__cuda_update_pieces(const tr_op_desc *desc, const tr_launch *launch,
                            float *param, void (*visit)(const tr_update_piece *));

typedef enum tr_cuda_update_phase {
    TR_CUDA_MEASURE, // the first phase of a rate that follows norms
    TR_CUDA_DIRECT,  // that of an update of matrices: update->param gets directions
    TR_CUDA_UPDATE
} tr_cuda_update_phase;

// Launches the optimizer's kernel of the phase. norms: as the optimizer's `args` says;
// NULL: none.
void tr__cuda_update_piece(const tr_update_piece *piece, const tr_update *update,
                           tr_cuda_update_phase phase, const tr_cuda_norms *norms);
// The parameters, result 0, rounded to the copy, if there is one: with what lies
// between the tensors.
void tr__cuda_round_params(const tr_op_desc *desc, const tr_launch *launch);

#endif

// The ops that update parameters: ranges of flat buffers that lie in one place each.
//
//     update      in[0]   f32, bf16, f16 or i64 [n]   sums of gradients
//                 in[1]   f64 [2 * tensors], left out: no norms are needed
//                 out[0]  f32 [n]                     parameters; read, too
//                 out[1]  bf16 or f16 [n], left out: none: the parameters, rounded
//                 out[2..] f32 or bf16 [n], or u8     the optimizer's states; read, too
//                          (packed_state.h)
//     direction_squares
//                 in[0]   as above
//                 in[1]   f32 [n]                     parameters
//                 out[0]  f64 [2 * parts]             of parameters and of directions
//                         (ops/optimizers/optimizer_measure.h)
//                 out[2..] f32 [n]                    the optimizer's states; read, too
//
// The operands hold elements [first, first + n) of a flat buffer. What an element is
// updated with follows from the order of the step (tr_run_context.update): its range,
// that range's group, that group's numbers.
#ifndef TR_OPS_FLAT_UPDATE_UPDATE_H
#define TR_OPS_FLAT_UPDATE_UPDATE_H

#include "base/stride.h"
#include "ops/optimizers/optimizer.h"

#include <tranche/extend/op.h>

// Of a matrix that ranks share: what one of them has, in what all have of its flat
// buffer (ops/flat/orthogonal).
typedef struct tr_matrix_part {
    int64_t offset, count;
    tr_stride lies; // which elements of the matrix
} tr_matrix_part;

// A run of parameters of one flat buffer that share their hyper-parameters; one
// parameter where the update needs the norms of tensors.
typedef struct tr_update_range {
    int flat;
    int64_t offset, count; // elements
    int group;             // index into tr_update_order.hyper
    int place;             // its parts in a flat buffer's squares are this much further
    int tensor;            // index of its norms among all tensors'
    int64_t rows, columns; // of a matrix that is updated as a whole
    // Where ranks share the matrix: what makes it up, [part_count], and which elements
    // of it the range has. part_count 0: all of them.
    const tr_matrix_part *parts;
    int part_count;
    tr_stride lies;
    bool apart;     // it is the optimizer's that has what is apart
    bool adapts;    // its rate follows its tensor's norms
    bool undecayed; // without its group's weight decay
} tr_update_range;

// What all updates of one optimizer step share.
typedef struct tr_update_order {
    const tr_optimizer *optimizer;
    const tr_update_range *ranges; // [range_count], by flat buffer and offset
    size_t range_count;
    const tr_hyper *hyper; // by the groups of ranges
    double grad_scale;
    int64_t number;           // of the update, from 1
    const double (*power)[2]; // by these, products of the betas of updates 1..number
} tr_update_order;

enum { TR_UPDATE_COPY = 1, TR_UPDATE_STATE = 2 }; // results

// Without padding, as descriptions of launches are told apart byte by byte.
typedef struct tr_update_attr {
    int64_t first;  // element of its flat buffer
    int64_t origin; // direction_squares: the first that this rank updates
    int64_t flat;
} tr_update_attr;

extern const tr_op tr__op_update, tr__op_direction_squares;

#endif

// Steps on gradients that several passes insert.
#ifndef TR_PLAN_PASSES_STEPS_GRADIENTS_H
#define TR_PLAN_PASSES_STEPS_GRADIENTS_H

#include "plan/flow/maker.h"

// Zeros where a backward makes no gradient of the flat buffer: between the parameters,
// or, if `whole`, everywhere.
void tr__put_clear_gradients(tr_editor *editor, int flat, bool whole);
// Before these pieces of the unit's backward run on a micro-batch: zeros between the
// parameters of each flat buffer whose gradients pass, where they are the first of its
// scope to make them. begun: [flats] 1 + the last scope that was begun.
void tr__put_clear_gaps(tr_editor *editor, int64_t *begun, int unit,
                        tr_piece_range pieces, int64_t micro);
// Squares, by blocks into the statistics: this rank's gradients of a flat buffer, from
// `at` on; those of all flat buffers that stay on the device. `step` says where and
// when.
int32_t tr__put_squares(tr_editor *editor, tr_plan_step step, int flat, tr_location at);
int32_t tr__put_norm(tr_editor *editor, tr_plan_step step);
// Adds up exactly the squares of all gradients that this rank owns.
int32_t tr__put_square_sums(tr_editor *editor, tr_plan_step step);
// Adds `count` elements of the type of the sums, from `from`, to those at `to`.
int32_t tr__put_addition(tr_editor *editor, tr_plan_step step, int64_t count,
                         tr_location from, tr_location to);

#endif

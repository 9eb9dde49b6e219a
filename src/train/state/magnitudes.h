// DoRA's magnitudes, which begin as the lengths of the rows of the base's weights.
#ifndef TR_TRAIN_STATE_MAGNITUDES_H
#define TR_TRAIN_STATE_MAGNITUDES_H

#include "exec/executor.h"
#include "files/safetensors/tensor_set.h"

// A base's whole tensor as products have it: through the bits in which the plan's
// parameter `param` keeps it, unless it is stored in these. param NULL: as it is. The
// caller frees *out with tr__free. TR_IO, TR_MEMORY.
tr_status tr__read_as_kept(const tr_tensor_set *set, const tr_stored_tensor *tensor,
                           const tr_plan_param *param, float **out, tr_error *err);

// squares[o] += the squares of output o's weights. w: [rows, columns]; in_out: outputs
// are columns.
void tr__add_squares(const float *w, int64_t rows, int64_t columns, bool in_out,
                     double *squares);

// Fills what this rank holds of all magnitudes. set: the base. TR_IO, TR_MEMORY.
tr_status tr__begin_magnitudes(const tr_tensor_set *set, const tr_plan *plan,
                               tr_executor *executor, tr_error *err);

#endif

// The sums of gradients as the host sees them between two steps, wherever they live.
#ifndef TR_EXEC_STORE_GRADIENTS_H
#define TR_EXEC_STORE_GRADIENTS_H

#include "exec/executor.h"

// The piece of a parameter's sums that this rank has complete after a step. The pieces
// of all ranks together are the whole tensor, each element once.
tr_piece tr__executor_own_sums(const tr_executor *executor, int param);
// Do the sums stay anywhere after a step? (Those of frozen parameters do not.)
bool tr__executor_has_sums(const tr_executor *executor, int param);

// Reads elements of a piece, or of a part of one, as values = scale * sums, into values
// [piece->count]. TR_IO.
tr_status tr__executor_read_sums(tr_executor *executor, const tr_piece *piece,
                                 double scale, float *values, tr_error *err);
// Writes sums = values / scale. TR_IO.
tr_status tr__executor_write_sums(tr_executor *executor, const tr_piece *piece,
                                  double scale, const float *values, tr_error *err);

#endif

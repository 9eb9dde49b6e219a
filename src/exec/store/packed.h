// States of the optimizer that are kept in other types than f32, as those see them who
// begin, save and resume a run: as f32, in the exchange (tr_plan.exchange).
#ifndef TR_EXEC_STORE_PACKED_H
#define TR_EXEC_STORE_PACKED_H

#include "exec/store/pieces.h"

// As tr__executor_borrow and tr__executor_return.
tr_status tr__packed_borrow(const tr_executor *ex, const tr_piece *piece, int64_t at,
                            tr_piece *run, tr_error *err);
tr_status tr__packed_return(const tr_executor *ex, const tr_piece *run, tr_error *err);

#endif

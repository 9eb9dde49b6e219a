// The ops that a model has beside the library's, for a check.
#ifndef TR_CHECK_CHECK_OPS_H
#define TR_CHECK_CHECK_OPS_H

#include <tranche/engine.h>

// Tries each once (tr_op_check), and adds what it found to the check. *right: none is
// wrong. TR_MEMORY; errors of the units' functions.
tr_status tr__check_ops(const tr_model *model, tr_check *check, bool *right,
                        tr_error *err);

#endif

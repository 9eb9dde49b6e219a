// Is there memory for a plan?
#ifndef TR_TRAIN_MEMORY_CHECK_H
#define TR_TRAIN_MEMORY_CHECK_H

#include <tranche/plan.h>

// TR_BUDGET: `what` ("evaluating this model") needs more memory than this machine has.
tr_status tr__memory_check(const tr_plan *plan, const char *what, tr_error *err);

#endif

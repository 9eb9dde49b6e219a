// The table of tranche plan --compare.
#ifndef TR_CLI_PLAN_COMPARE_H
#define TR_CLI_PLAN_COMPARE_H

#include <tranche/run.h>

// Prints to standard output what a rank needs at each ZeRO stage with each way of
// offloading and in waves of one micro-batch and of all, everything else as in the
// run's own request; which of them are over the memory of the machine (NULL: this one),
// and how long a step takes on it (NULL: not told). Errors as of tr_run_compare.
tr_status cli_plan_compare(tr_run *run, const tr_machine *machine, bool json,
                           tr_error *err);

#endif

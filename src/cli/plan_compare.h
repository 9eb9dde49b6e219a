// The table of tranche plan --compare.
#ifndef TR_CLI_PLAN_COMPARE_H
#define TR_CLI_PLAN_COMPARE_H

#include <tranche/planner.h>

// Prints to standard output what a rank needs at each ZeRO stage with each way of
// offloading, everything else as in the run's own request, and how long a step takes on
// the machine (NULL: not known). Collective: no. TR_MEMORY.
tr_status cli_plan_compare(const tr_plan_request *run, const tr_machine *machine,
                           const char *machine_name, bool json, tr_error *err);

#endif

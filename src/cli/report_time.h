// The time of a step for a report: as it is simulated, and as a run has traced it.
#ifndef TR_CLI_REPORT_TIME_H
#define TR_CLI_REPORT_TIME_H

#include "report/timeline.h"

#include <tranche/plan.h>

// The caller frees *out, also after an error. Errors of tr_simulate; TR_MEMORY.
tr_status cli_report_simulate(const tr_plan *plan, const tr_machine *machine,
                              timeline *out, tr_error *err);
// Of a file that tranche train --trace has written. TR_IO, TR_DATA: the message names
// it; TR_MEMORY.
tr_status cli_report_trace(const char *path, timeline *out, tr_error *err);

#endif

// What a plan may be asked for.
#ifndef TR_PLAN_FLOW_REQUEST_H
#define TR_PLAN_FLOW_REQUEST_H

#include "plan/flow/plan.h"

// TR_USAGE: what cannot be, or is not yet supported, with the key that says it.
tr_status tr__request_check(const tr_plan_request *request, tr_error *err);
// What a request's kernels are for: its backend, its limits, and what this machine has
// for what it leaves open.
tr_target tr__request_target(const tr_plan_request *request);
// The same of what is computed on the host.
tr_target tr__request_host(const tr_plan_request *request);
// Bytes that the process takes beside the plan.
int64_t tr__request_process(const tr_plan_request *request);

#endif

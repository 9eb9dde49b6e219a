// How many threads are worth their trouble for a model's work.
#ifndef TR_PLAN_THREADS_H
#define TR_PLAN_THREADS_H

#include "plan/flow/plan.h"

// Threads for the request's model and micro-batch on so many cores, at least 1: a
// function of these and the compute type alone, so no other cut of the batch, no
// placement and no recomputation changes it. Errors as tr_plan_make's.
tr_status tr__threads_that_pay(const tr_plan_request *request, int cores, int *threads,
                               tr_error *err);

#endif

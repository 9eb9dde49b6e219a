// What is printed of a run's plan.
#ifndef TR_RUN_SAY_PRINT_H
#define TR_RUN_SAY_PRINT_H

#include "run/run.h"

#include <stdio.h>

typedef struct tr_run_print {
    const tr_run *run; // resolved
    const tr_plan *plan;
} tr_run_print;

// The plan as text, with the planner's choice. what: a tr_run_print.
tr_status tr__run_print(const void *what, FILE *to, tr_error *err);

#endif

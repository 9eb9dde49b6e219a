// A run, its plan and its engine, opened together; any error fails the test with its
// message.
#ifndef TESTS_TRAIN_TRIAL_H
#define TESTS_TRAIN_TRIAL_H

#include "opening.h"
#include "train/engine.h"

#include <tranche/engine.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

typedef struct trial {
    tr_run *run;
    tr_plan *plan;
    tr_engine *engine;
} trial;

// Fails the test with the message of an error unless `status` is TR_OK.
void trial_ok(tr_status status, const tr_error *err);

void trial_open(trial *t, const run_options *options);
// With kernels of less than this processor's instruction set (tr_plan_request).
void trial_open_kernels(trial *t, const run_options *options, int isa_limit,
                        bool reference);
// A run file's text on data of the test's own; nothing is resumed.
void trial_open_text(trial *t, const char *text, tr_dataset *train,
                     tr_dataset *validation);
// Saves a checkpoint of the new weights of a run file's text, on sequences of 8 tokens
// of that vocabulary.
void trial_save_new(const char *text, int64_t vocabulary);
void trial_close(trial *t);
// Checks the run (tr_check_run).
tr_status trial_check(const run_options *options, double tolerance, tr_check **out,
                      tr_error *err);

// results: [count], may be NULL.
void trial_steps(trial *t, int64_t count, tr_step_result *results);

// Each arena is there as the ledger says, and its high-water mark is the ledger's
// total.
void trial_check_arenas(const trial *t);

#endif

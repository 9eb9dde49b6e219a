// The data as a run file names them.
#ifndef TR_RUN_RESOLVE_DATA_OPTIONS_H
#define TR_RUN_RESOLVE_DATA_OPTIONS_H

#include "data/encoder/groups.h"
#include "data/encoder/labels.h"
#include "run/run.h"

// The labels of the training records, where they make those of the model: before it is
// known what its samples are. TR_USAGE: the run file names no records.
tr_status tr__run_survey_labels(tr_run *run, tr_label_kind kind, tr_label_survey *out,
                                tr_error *err);

// How many texts groups have (data/encoder/groups.h): 2 where the data do not say.
tr_status tr__run_survey_groups(tr_run *run, int64_t *texts, tr_error *err);

#endif

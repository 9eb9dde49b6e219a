// The labels of texts in records.
#ifndef TR_DATA_ENCODER_LABELS_H
#define TR_DATA_ENCODER_LABELS_H

#include "data/sources/joined.h"

#include <tranche/data.h>

#include <jansson.h>

// What a record calls its label.
const char *tr__label_field(const tr_data_options *options);

// The label of a record, by options->label_kind: a class goes to class[0] (TR_NO_TARGET
// where it is missing and labels are optional), else number [label_count] gets numbers,
// NAN likewise. TR_DATA: the label is missing, or none of the model's.
tr_status tr__label_parse(const tr_data_options *options, const json_t *record,
                          int32_t *class, float *number, tr_error *err);

// What the labels of data are. names [count] in byte order; NULL: they are numbers.
typedef struct tr_label_survey {
    tr_label_kind kind;
    int64_t count;
    char **names;
} tr_label_survey;

// Reads the labels of all records of the training files (format jsonl). kind: theirs,
// where it is known, else TR_LABELS_NONE. The caller releases *out. TR_USAGE, TR_DATA.
tr_status tr__label_survey(const tr_data_options *options, tr_label_kind kind,
                           tr_label_survey *out, tr_error *err);
void tr__label_survey_release(tr_label_survey *survey);

#endif

// The object behind tr_dataset: a source and its users.
#ifndef TR_DATA_DATASET_H
#define TR_DATA_DATASET_H

#include <tranche/data.h>

// A dataset with one user. On failure the source's user object is destroyed, so that
// a format hands it over and is done.
tr_status tr__dataset_create(const tr_dataset_source *source, tr_dataset **out,
                             tr_error *err);
// One more user; each tr_dataset_destroy takes one away.
tr_dataset *tr__dataset_retain(tr_dataset *dataset);

// Bytes of one sample's input and target.
int64_t tr__sample_input_bytes(tr_sample_desc sample);
int64_t tr__sample_target_bytes(tr_sample_desc sample);

// Descriptions of the two kinds of samples that the formats have.
tr_sample_desc tr__sample_text(int64_t length);
tr_sample_desc tr__sample_features(int64_t features);
// The same, or the image that the options say, where it has as many values.
tr_sample_desc tr__sample_of(const tr_data_options *options, int64_t features);

#endif

// The object behind tr_dataset: a source and its users.
#ifndef TR_DATA_SOURCES_DATASET_H
#define TR_DATA_SOURCES_DATASET_H

#include <tranche/data.h>

// What a dataset may have at most: sums of two such numbers do not overflow.
#define TR_SAMPLES_MAX ((int64_t)1 << 62)

// A dataset with one user. On failure the source's user object is destroyed, so that
// a format hands it over and is done.
tr_status tr__dataset_create(const tr_dataset_source *source, tr_dataset **out,
                             tr_error *err);
// One more user; each tr_dataset_destroy takes one away.
tr_dataset *tr__dataset_retain(tr_dataset *dataset);

// What a dataset is known by, beside tr_dataset_hash.
typedef struct tr_data_identity {
    uint64_t whole; // the hash of all of which this is a part; of a whole: its own
    int64_t held;   // samples of that which are set aside for validation
    uint64_t names; // what tr_dataset_hash was before content was hashed: over names
                    // and sizes. Checkpoints of then have it
} tr_data_identity;

const tr_data_identity *tr__dataset_identity(const tr_dataset *dataset);
// Its samples are conversations.
void tr__dataset_mark_chats(tr_dataset *dataset);
bool tr__dataset_has_chats(const tr_dataset *dataset);
// Its samples are others in each epoch: in epoch e sample i is read as e * samples + i.
void tr__dataset_mark_epochs(tr_dataset *dataset);
bool tr__dataset_has_epochs(const tr_dataset *dataset);
// Its tensor TR_LOSS_WEIGHTS (base/batch.h) is to be filled by what reads whole steps
// (data/order/loss_weights.h).
void tr__dataset_mark_weights(tr_dataset *dataset);
bool tr__dataset_has_weights(const tr_dataset *dataset);
// Formats tell the hash of names; without this it is the dataset's own hash.
void tr__dataset_names(tr_dataset *dataset, uint64_t names);
void tr__dataset_identify(tr_dataset *dataset, const tr_data_identity *identity);

// Is its source to be asked on the caller's thread alone?
bool tr__dataset_asks_caller(const tr_dataset *dataset);

// The source's user object, for formats that look at another data set of their own.
const void *tr__dataset_user(const tr_dataset *dataset);

// The tensors of rows of `features` values: an image where the options say one, and
// else features. Where the values are not as many as the image has, they stay a row.
tr_batch_tensors tr__tensors_of(const tr_data_options *options, int64_t features);
// Values of one sample's first input.
int64_t tr__dataset_features(const tr_dataset *dataset);
// Moves each of rows [count of `tensors`] on by so many rows.
void tr__rows_move(const tr_batch_tensors *tensors, int64_t by, void *const *rows,
                   void *out[TR_BATCH_TENSORS_MAX]);

#endif

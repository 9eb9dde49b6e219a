// Ids and labels that kernels trust: they index rows with them.
#ifndef TR_DATA_SOURCES_IDS_H
#define TR_DATA_SOURCES_IDS_H

#include <tranche/data.h>
#include <tranche/model.h>

// The samples index[0 .. count). index NULL: rows that a caller hands over, by their
// numbers from 0.
typedef struct tr_sample_list {
    const int64_t *index;
    int64_t count;
} tr_sample_list;

// rows: [samples, ...] of the tensor. Ids lie in [0, bound), or are of targets
// TR_NO_TARGET; bound 0: any. A place is 0, or one more than the one before. Numbers
// may be any. TR_DATA names the sample and the element.
tr_status tr__rows_check(const tr_batch_tensor *tensor, const void *rows, int64_t bound,
                         tr_sample_list samples, tr_error *err);

// What the data set does not bound itself, against the model's classes. The targets of
// a model that embeds are numbers of texts, which nothing is indexed with. rows[i]
// [samples, ...] is of the data set's tensor i. TR_DATA as above.
tr_status tr__ids_check_rows(const tr_dataset *dataset, const tr_model *model,
                             void *const *rows, tr_sample_list samples, tr_error *err);

#endif

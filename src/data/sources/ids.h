// Ids and labels that kernels trust: they index rows with them.
#ifndef TR_DATA_SOURCES_IDS_H
#define TR_DATA_SOURCES_IDS_H

#include <tranche/data.h>
#include <tranche/model.h>

// The samples index[0 .. count).
typedef struct tr_sample_list {
    const int64_t *index;
    int64_t count;
} tr_sample_list;

// ids: [samples, ...] of the tensor, in [0, bound), or of targets TR_NO_TARGET; bound
// 0: any. TR_DATA names the sample and the element.
tr_status tr__ids_check(const tr_batch_tensor *tensor, const int32_t *ids,
                        int64_t bound, tr_sample_list samples, tr_error *err);

// What the data set does not bound itself, against the model's classes. The targets of
// a model that embeds are numbers of texts, which nothing is indexed with. rows[i]
// [samples, ...] is of the data set's tensor i. TR_DATA as above.
tr_status tr__ids_check_rows(const tr_dataset *dataset, const tr_model *model,
                             void *const *rows, tr_sample_list samples, tr_error *err);

#endif

#include "data/sources/ids.h"

#include <stdint.h>
#include <stdio.h>

enum { SAMPLE_TEXT = 32 };

// "sample 17", "row 3"
static const char *sample_name(tr_sample_list samples, int64_t i, char *text) {
    bool known = samples.index != NULL;
    snprintf(text, SAMPLE_TEXT, "%s %lld", known ? "sample" : "row",
             (long long)(known ? samples.index[i] : i));
    return text;
}

// ids: [samples, ...] of the tensor.
static tr_status check_ids(const tr_batch_tensor *tensor, const int32_t *ids,
                           int64_t bound, tr_sample_list samples, tr_error *err) {
    int64_t each = tr_shape_count(tensor->desc.shape);
    char sample[SAMPLE_TEXT];
    for (int64_t i = 0; bound > 0 && i < samples.count * each; i++) {
        bool lacks = tensor->role == TR_ROLE_TARGET && ids[i] == TR_NO_TARGET;
        if (!lacks && (ids[i] < 0 || ids[i] >= bound)) {
            return tr_fail(err, TR_DATA,
                           "%s: %s: %d at element %lld is not in [0, %lld)",
                           sample_name(samples, i / each, sample), tensor->name, ids[i],
                           (long long)(i % each), (long long)bound);
        }
    }
    return TR_OK;
}

// place: [samples, S]. Kernels look as many places back as a place says.
static tr_status check_places(const tr_batch_tensor *tensor, const int32_t *place,
                              tr_sample_list samples, tr_error *err) {
    int64_t each = tr_shape_count(tensor->desc.shape);
    char sample[SAMPLE_TEXT];
    for (int64_t i = 0; i < samples.count * each; i++) {
        bool goes_on = i % each > 0 && place[i] == place[i - 1] + 1;
        if (place[i] != 0 && !goes_on) {
            return tr_fail(err, TR_DATA,
                           "%s: %s: %d at element %lld is neither 0, where a "
                           "document begins, nor one more than before",
                           sample_name(samples, i / each, sample), tensor->name,
                           place[i], (long long)(i % each));
        }
    }
    return TR_OK;
}

tr_status tr__rows_check(const tr_batch_tensor *tensor, const void *rows, int64_t bound,
                         tr_sample_list samples, tr_error *err) {
    if (tensor->desc.dtype != TR_I32) {
        return TR_OK;
    }
    return tensor->role == TR_ROLE_POSITION
               ? check_places(tensor, rows, samples, err)
               : check_ids(tensor, rows, bound, samples, err);
}

tr_status tr__ids_check_rows(const tr_dataset *dataset, const tr_model *model,
                             void *const *rows, tr_sample_list samples, tr_error *err) {
    const tr_batch_tensors *tensors = tr_dataset_tensors(dataset);
    bool inputs = tr_dataset_vocabulary(dataset) == 0;
    bool targets = tr_dataset_classes(dataset) == 0 && model->embedding_width == 0;
    tr_status status = TR_OK;
    for (int i = 0; i < tensors->count && status == TR_OK; i++) {
        const tr_batch_tensor *tensor = &tensors->tensor[i];
        bool unbounded = tensor->role == TR_ROLE_TARGET  ? targets
                         : tensor->role == TR_ROLE_INPUT ? inputs
                                                         : false;
        if (unbounded && tensor->desc.dtype == TR_I32) {
            bool any = model->classes == INT32_MAX;
            status = check_ids(tensor, rows[i], any ? 0 : model->classes, samples, err);
        }
    }
    return status;
}

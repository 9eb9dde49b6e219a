#include "data/sources/ids.h"

tr_status tr__ids_check(const tr_batch_tensor *tensor, const int32_t *ids,
                        int64_t bound, tr_sample_list samples, tr_error *err) {
    int64_t each = tr_shape_count(tensor->desc.shape);
    for (int64_t i = 0; bound > 0 && i < samples.count * each; i++) {
        bool lacks = tensor->role == TR_ROLE_TARGET && ids[i] == TR_NO_TARGET;
        if (!lacks && (ids[i] < 0 || ids[i] >= bound)) {
            return tr_fail(err, TR_DATA,
                           "sample %lld: %s: %d at element %lld is not in [0, %lld)",
                           (long long)samples.index[i / each], tensor->name, ids[i],
                           (long long)(i % each), (long long)bound);
        }
    }
    return TR_OK;
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
            status = tr__ids_check(tensor, rows[i], model->classes, samples, err);
        }
    }
    return status;
}

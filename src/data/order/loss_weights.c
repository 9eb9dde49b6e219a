#include "data/order/loss_weights.h"

#include "base/batch.h"
#include "base/memory.h"

tr_status tr__loss_weights_begin(tr_dataset *dataset, tr_loss_weights *out,
                                 tr_error *err) {
    const tr_batch_tensors *tensors = tr_dataset_tensors(dataset);
    *out = (tr_loss_weights){0};
    if (!tr__dataset_has_weights(dataset)) {
        return TR_OK;
    }
    out->row = tr__calloc((size_t)tr__batch_offset(tensors, 1, tensors->count), 1);
    if (!out->row) {
        return tr_fail(err, TR_MEMORY, "no memory for a sample");
    }
    out->dataset = dataset;
    out->target = (int)(tr_batch_target(tensors) - tensors->tensor);
    out->weights = tr_batch_find(tensors, TR_LOSS_WEIGHTS);
    return TR_OK;
}

void tr__loss_weights_end(tr_loss_weights *weights) {
    tr__free(weights->row);
    *weights = (tr_loss_weights){0};
}

tr_status tr__loss_weights_count(const tr_loss_weights *w, int64_t sample,
                                 int64_t *count, tr_error *err) {
    const tr_batch_tensors *tensors = tr_dataset_tensors(w->dataset);
    void *rows[TR_BATCH_TENSORS_MAX];
    tr__batch_rows(tensors, tensors, w->row, 1, 0, rows);
    tr_status status = tr_dataset_read(w->dataset, &sample, 1, rows, err);
    const int32_t *targets = rows[w->target];
    int64_t most = tr_shape_count(tensors->tensor[w->target].desc.shape);
    for (int64_t i = 0; status == TR_OK && i < most; i++) {
        *count += targets[i] != TR_NO_TARGET;
    }
    return status;
}

void tr__loss_weights_put(const tr_loss_weights *w, float weight, int64_t count,
                          void *const *rows) {
    const tr_batch_tensors *tensors = tr_dataset_tensors(w->dataset);
    int64_t each = tr_shape_count(tensors->tensor[w->weights].desc.shape);
    float *to = rows[w->weights];
    for (int64_t i = 0; i < count * each; i++) {
        to[i] = weight;
    }
}

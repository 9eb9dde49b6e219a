#include "base/batch.h"

#include "base/checked.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- the library's own lists

static tr_batch_tensor tensor_of(const char *name, tr_batch_role role, tr_dtype dtype,
                                 tr_shape shape) {
    tr_batch_tensor tensor = {.role = role, .desc = {dtype, shape}};
    snprintf(tensor.name, sizeof tensor.name, "%s", name);
    return tensor;
}

static tr_batch_tensors pair(tr_batch_tensor input, tr_shape target) {
    return (tr_batch_tensors){
        .count = 2,
        .tensor = {input, tensor_of("labels", TR_ROLE_TARGET, TR_I32, target)}};
}

tr_batch_tensors tr_batch_tokens(int64_t length) {
    tr_shape shape = TR_SHAPE1(length);
    return pair(tensor_of("input_ids", TR_ROLE_INPUT, TR_I32, shape), shape);
}

tr_batch_tensors tr_batch_packed(int64_t length) {
    tr_batch_tensors batch = tr_batch_tokens(length);
    batch.tensor[batch.count++] =
        tensor_of("position_ids", TR_ROLE_POSITION, TR_I32, TR_SHAPE1(length));
    return batch;
}

tr_batch_tensors tr_batch_texts(int64_t length, int64_t texts) {
    tr_shape shape = TR_SHAPE1(length);
    return (tr_batch_tensors){
        .count = 4,
        .tensor = {tensor_of("input_ids", TR_ROLE_INPUT, TR_I32, shape),
                   tensor_of("token_type_ids", TR_ROLE_INPUT, TR_I32, shape),
                   tensor_of("position_ids", TR_ROLE_POSITION, TR_I32, shape),
                   tensor_of("labels", TR_ROLE_TARGET, TR_I32, TR_SHAPE1(texts))}};
}

tr_batch_tensors tr_batch_labelled(int64_t length, int64_t texts, bool types,
                                   tr_label_kind kind, int64_t labels) {
    tr_batch_tensors batch = tr_batch_texts(length, texts);
    if (kind == TR_LABELS_SET || kind == TR_LABELS_VALUE) {
        batch.tensor[3].desc = (tr_tensor_desc){TR_F32, TR_SHAPE2(texts, labels)};
    }
    if (!types) {
        batch.tensor[1] = batch.tensor[2];
        batch.tensor[2] = batch.tensor[3];
        batch.count--;
    }
    return batch;
}

tr_batch_tensors tr_batch_masked(int64_t length) {
    tr_batch_tensors batch = tr_batch_texts(length, length);
    return batch;
}

tr_batch_tensors tr__batch_masked_pairs(int64_t length) {
    tr_batch_tensors batch = tr_batch_masked(length);
    batch.tensor[batch.count++] =
        tensor_of("next_sentence_label", TR_ROLE_TARGET, TR_I32, TR_SHAPE1(1));
    batch.tensor[batch.count++] =
        tensor_of(TR_LOSS_WEIGHTS, TR_ROLE_TARGET, TR_F32, TR_SHAPE1(1));
    return batch;
}

tr_batch_tensors tr_batch_features(int64_t features) {
    return pair(tensor_of("features", TR_ROLE_INPUT, TR_F32, TR_SHAPE1(features)),
                (tr_shape){0});
}

tr_batch_tensors tr_batch_images(int64_t height, int64_t width, int64_t channels) {
    tr_shape shape = TR_SHAPE3(height, width, channels);
    return pair(tensor_of("pixel_values", TR_ROLE_INPUT, TR_F32, shape), (tr_shape){0});
}

// ---- asking

int tr_batch_find(const tr_batch_tensors *batch, const char *name) {
    for (int i = 0; batch && name && i < batch->count; i++) {
        if (strncmp(batch->tensor[i].name, name, TR_BATCH_NAME_MAX) == 0) {
            return i;
        }
    }
    return -1;
}

static const tr_batch_tensor *first_of(const tr_batch_tensors *batch,
                                       tr_batch_role role) {
    for (int i = 0; batch && i < batch->count; i++) {
        if (batch->tensor[i].role == role) {
            return &batch->tensor[i];
        }
    }
    return NULL;
}

const tr_batch_tensor *tr_batch_input(const tr_batch_tensors *batch) {
    return first_of(batch, TR_ROLE_INPUT);
}

const tr_batch_tensor *tr_batch_target(const tr_batch_tensors *batch) {
    return first_of(batch, TR_ROLE_TARGET);
}

const tr_batch_tensor *tr_batch_positions(const tr_batch_tensors *batch) {
    return first_of(batch, TR_ROLE_POSITION);
}

tr_batch_tensors tr__batch_narrow(const tr_batch_tensors *batch) {
    tr_batch_tensors out = *batch;
    for (int i = 0; i < out.count && i < TR_BATCH_TENSORS_MAX; i++) {
        if (out.tensor[i].desc.dtype == TR_I64) {
            out.tensor[i].desc.dtype = TR_I32;
        }
    }
    return out;
}

// ---- checks

static tr_status check_name(const tr_batch_tensors *batch, int index, const char *owner,
                            tr_error *err) {
    const char *name = batch->tensor[index].name;
    if (name[0] == '\0' || !memchr(name, '\0', TR_BATCH_NAME_MAX)) {
        return tr_fail(err, TR_USAGE,
                       "%s: tensor %d of the batch needs a name of 1 to %d characters",
                       owner, index, TR_BATCH_NAME_MAX - 1);
    }
    if (tr_batch_find(batch, name) != index) {
        return tr_fail(err, TR_USAGE, "%s: two tensors of the batch have the name %s",
                       owner, name);
    }
    return TR_OK;
}

static tr_status check_type(const tr_batch_tensor *tensor, const char *owner,
                            tr_error *err) {
    bool position = tensor->role == TR_ROLE_POSITION;
    if (tensor->desc.dtype == TR_I32 || (!position && tensor->desc.dtype == TR_F32)) {
        return TR_OK;
    }
    return tr_fail(err, TR_USAGE, "%s: tensor %s of the batch has the type %s; %s",
                   owner, tensor->name, tr_dtype_name(tensor->desc.dtype),
                   position ? "positions are I32"
                            : "inputs and targets are F32 or I32");
}

static tr_status check_shape(const tr_batch_tensor *tensor, const char *owner,
                             tr_error *err) {
    int rank = tensor->desc.shape.rank;
    if (rank < 0 || rank >= TR_RANK_MAX || tr_tensor_bytes(tensor->desc) <= 0) {
        return tr_fail(err, TR_USAGE,
                       "%s: tensor %s of the batch needs a shape of at most %d "
                       "dimensions, each at least 1, without that of the batch",
                       owner, tensor->name, TR_RANK_MAX - 1);
    }
    return TR_OK;
}

static tr_status check_roles(const tr_batch_tensors *batch, const char *owner,
                             tr_error *err) {
    int count[TR_ROLE_POSITION + 1] = {0};
    for (int i = 0; i < batch->count; i++) {
        count[batch->tensor[i].role]++;
    }
    if (count[TR_ROLE_INPUT] < 1) {
        return tr_fail(err, TR_USAGE, "%s: a batch has at least one input", owner);
    }
    if (count[TR_ROLE_POSITION] > 1) {
        return tr_fail(err, TR_USAGE,
                       "%s: a batch has at most one tensor of positions, not %d", owner,
                       count[TR_ROLE_POSITION]);
    }
    return TR_OK;
}

tr_status tr__batch_check(const tr_batch_tensors *batch, const char *owner,
                          tr_error *err) {
    if (batch->count < 1 || batch->count > TR_BATCH_TENSORS_MAX) {
        return tr_fail(err, TR_USAGE, "%s: a batch of %d tensors; it has 1 to %d",
                       owner, batch->count, TR_BATCH_TENSORS_MAX);
    }
    tr_status status = TR_OK;
    for (int i = 0; i < batch->count && status == TR_OK; i++) {
        const tr_batch_tensor *tensor = &batch->tensor[i];
        status = check_name(batch, i, owner, err);
        status = status == TR_OK ? check_type(tensor, owner, err) : status;
        status = status == TR_OK ? check_shape(tensor, owner, err) : status;
    }
    return status == TR_OK ? check_roles(batch, owner, err) : status;
}

// ---- slots

tr_tensor_desc tr__batch_desc(const tr_batch_tensor *tensor) {
    tr_tensor_desc desc = {tensor->desc.dtype,
                           {tensor->desc.shape.rank + 1, {TR_BATCH}}};
    memcpy(desc.shape.dim + 1, tensor->desc.shape.dim,
           (size_t)tensor->desc.shape.rank * sizeof *desc.shape.dim);
    return desc;
}

int64_t tr__batch_offset(const tr_batch_tensors *batch, int64_t rows, int index) {
    int64_t offset = 0;
    for (int i = 0; i < index; i++) {
        int64_t bytes = tr_tensor_bytes(batch->tensor[i].desc);
        if (bytes < 0 || rows < 0 || !tr__mul_i64(bytes, rows, &bytes) ||
            bytes > INT64_MAX - TR_SLOT_ALIGNMENT ||
            !tr__add_i64(offset, tr__round_up(bytes, TR_SLOT_ALIGNMENT), &offset)) {
            return -1;
        }
    }
    return offset;
}

static char *row_at(const tr_batch_tensors *batch, void *slot, int64_t rows, int index,
                    int64_t row) {
    return (char *)slot + tr__batch_offset(batch, rows, index) +
           row * tr_tensor_bytes(batch->tensor[index].desc);
}

void tr__batch_rows(const tr_batch_tensors *data, const tr_batch_tensors *model,
                    void *slot, int64_t rows, int64_t row,
                    void *out[TR_BATCH_TENSORS_MAX]) {
    for (int i = 0; i < data->count; i++) {
        int index = tr_batch_find(model, data->tensor[i].name);
        out[i] = row_at(model, slot, rows, index, row);
    }
}

static void set_no_target(tr_dtype dtype, void *rows, int64_t count) {
    int32_t *class = rows;
    float *number = rows;
    for (int64_t i = 0; i < count; i++) {
        if (dtype == TR_F32) {
            number[i] = NAN;
        } else {
            class[i] = TR_NO_TARGET;
        }
    }
}

void tr__batch_pad(const tr_batch_tensors *batch, void *slot, int64_t rows,
                   int64_t first) {
    for (int i = 0; i < batch->count; i++) {
        const tr_batch_tensor *tensor = &batch->tensor[i];
        char *row = row_at(batch, slot, rows, i, first);
        int64_t bytes = (rows - first) * tr_tensor_bytes(tensor->desc);
        memset(row, 0, (size_t)bytes);
        if (tensor->role == TR_ROLE_TARGET) {
            set_no_target(tensor->desc.dtype, row, bytes / (int64_t)sizeof(int32_t));
        }
    }
}

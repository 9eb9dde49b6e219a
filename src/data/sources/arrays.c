// Datasets over arrays that a program has in memory.
#include "base/arguments.h"
#include "base/batch.h"
#include "base/hash.h"
#include "base/memory.h"

#include <tranche/data.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char own_name[] = "tr_dataset_create_arrays";

typedef struct array_source {
    tr_batch_tensors tensors;
    const void *array[TR_BATCH_TENSORS_MAX]; // the caller's: [samples, ...]
} array_source;

static tr_status read_arrays(void *user, const int64_t *index, int64_t count,
                             void *const *rows, tr_error *err) {
    const array_source *self = user;
    (void)err;
    for (int i = 0; i < self->tensors.count; i++) {
        size_t each = (size_t)tr_tensor_bytes(self->tensors.tensor[i].desc);
        for (int64_t k = 0; k < count; k++) {
            memcpy((char *)rows[i] + (size_t)k * each,
                   (const char *)self->array[i] + (size_t)index[k] * each, each);
        }
    }
    return TR_OK;
}

static void destroy_arrays(void *user) {
    tr__free(user);
}

static tr_status check(const tr_batch_tensors *tensors, int64_t samples,
                       const void *const *array, tr_error *err) {
    const tr_batch_tensors narrow = tr__batch_narrow(tensors);
    tr_status status = tr__batch_check(&narrow, "a dataset", err);
    if (status == TR_OK && samples <= 0) {
        status = tr_fail(err, TR_USAGE, "%s: %lld samples; give at least one", own_name,
                         (long long)samples);
    }
    for (int i = 0; i < narrow.count && status == TR_OK; i++) {
        if (!array[i]) {
            status = tr_fail(err, TR_USAGE, "%s: the array of \"%s\" is NULL", own_name,
                             tensors->tensor[i].name);
        }
    }
    return status;
}

// Of names, shapes and all elements.
static uint64_t hash_of(const array_source *self, int64_t samples) {
    uint64_t hash = tr__hash_more(0, &samples, sizeof samples);
    for (int i = 0; i < self->tensors.count; i++) {
        const tr_batch_tensor *tensor = &self->tensors.tensor[i];
        size_t each = (size_t)tr_tensor_bytes(tensor->desc);
        uint64_t name = tr__hash_text(tensor->name);
        hash = tr__hash_more(hash, &name, sizeof name);
        hash = tr__hash_more(hash, &each, sizeof each);
        hash = tr__hash_more(hash, self->array[i], (size_t)samples * each);
    }
    return hash;
}

tr_status tr_dataset_create_arrays(const tr_batch_tensors *tensors, int64_t samples,
                                   const void *const *arrays, tr_dataset **out,
                                   tr_error *err) {
    tr_status status = tr__need(tensors, own_name, "tensors", err);
    status = status == TR_OK ? tr__need(arrays, own_name, "arrays", err) : status;
    status = status == TR_OK ? tr__need(out, own_name, "out", err) : status;
    status = status == TR_OK ? check(tensors, samples, arrays, err) : status;
    if (status != TR_OK) {
        return status;
    }
    array_source *self = tr__calloc(1, sizeof *self);
    if (!self) {
        return tr_fail(err, TR_MEMORY, "no memory for a dataset");
    }
    self->tensors = *tensors;
    memcpy(self->array, arrays, (size_t)tensors->count * sizeof *arrays);
    char about[64];
    snprintf(about, sizeof about, "%" PRId64 " samples in arrays", samples);
    tr_dataset_source source = {.size = sizeof source,
                                .about = about,
                                .samples = samples,
                                .tensors = *tensors,
                                .hash = hash_of(self, samples),
                                .read = read_arrays,
                                .destroy = destroy_arrays,
                                .user = self};
    status = tr_dataset_create_callback(&source, out, err);
    if (status != TR_OK) {
        destroy_arrays(self);
    }
    return status;
}

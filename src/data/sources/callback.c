// Datasets of a program's own: its source behind a check of what it delivers, because
// kernels trust ids and labels.
#include "data/sources/dataset.h"

#include "base/batch.h"
#include "base/memory.h"

typedef struct checked_source {
    tr_dataset_source inner;
} checked_source;

// The samples index[0 .. count).
typedef struct sample_list {
    const int64_t *index;
    int64_t count;
} sample_list;

// id: [samples, ...], in [0, bound); 0: any.
static tr_status check_ids(const tr_batch_tensor *tensor, const int32_t *id,
                           int64_t bound, sample_list samples, tr_error *err) {
    int64_t each = tr_shape_count(tensor->desc.shape);
    for (int64_t i = 0; bound > 0 && i < samples.count * each; i++) {
        bool lacks = tensor->role == TR_ROLE_TARGET && id[i] == TR_NO_TARGET;
        if (!lacks && (id[i] < 0 || id[i] >= bound)) {
            return tr_fail(err, TR_DATA,
                           "sample %lld: %s: %d at element %lld is not in [0, %lld)",
                           (long long)samples.index[i / each], tensor->name, id[i],
                           (long long)(i % each), (long long)bound);
        }
    }
    return TR_OK;
}

// place: [samples, S]. Kernels look as many places back as a place says.
static tr_status check_places(const tr_batch_tensor *tensor, const int32_t *place,
                              sample_list samples, tr_error *err) {
    int64_t each = tr_shape_count(tensor->desc.shape);
    for (int64_t i = 0; i < samples.count * each; i++) {
        bool goes_on = i % each > 0 && place[i] == place[i - 1] + 1;
        if (place[i] != 0 && !goes_on) {
            return tr_fail(err, TR_DATA,
                           "sample %lld: %s: %d at element %lld is neither 0, where a "
                           "document begins, nor one more than before",
                           (long long)samples.index[i / each], tensor->name, place[i],
                           (long long)(i % each));
        }
    }
    return TR_OK;
}

static tr_status check_tensor(const tr_dataset_source *source, int index,
                              const void *rows, sample_list samples, tr_error *err) {
    const tr_batch_tensor *tensor = &source->tensors.tensor[index];
    if (tensor->desc.dtype != TR_I32) {
        return TR_OK;
    }
    if (tensor->role == TR_ROLE_POSITION) {
        return check_places(tensor, rows, samples, err);
    }
    bool target = tensor->role == TR_ROLE_TARGET;
    int64_t bound = target ? source->classes : source->vocabulary;
    return check_ids(tensor, rows, bound, samples, err);
}

static tr_status read_checked(void *user, const int64_t *index, int64_t count,
                              void *const *rows, tr_error *err) {
    const checked_source *self = user;
    const tr_dataset_source *inner = &self->inner;
    tr_status status = inner->read(inner->user, index, count, rows, err);
    if (status != TR_OK) { // a source may return no message of its own
        return tr_fail(err, status, "%s: reading failed",
                       inner->about ? inner->about : "callback");
    }
    for (int i = 0; status == TR_OK && i < inner->tensors.count; i++) {
        status = check_tensor(inner, i, rows[i], (sample_list){index, count}, err);
    }
    return status;
}

static void destroy_checked(void *user) {
    checked_source *self = user;
    if (self->inner.destroy) {
        self->inner.destroy(self->inner.user);
    }
    tr__free(self);
}

static tr_status check_source(const tr_dataset_source *source, tr_error *err) {
    if (!source->read) {
        return tr_fail(err, TR_USAGE, "a dataset needs a function to read with");
    }
    if (source->samples <= 0 || source->vocabulary < 0 || source->classes < 0 ||
        source->bytes < 0) {
        return tr_fail(err, TR_USAGE,
                       "a dataset of %lld samples, vocabulary %lld, %lld classes, "
                       "%lld bytes",
                       (long long)source->samples, (long long)source->vocabulary,
                       (long long)source->classes, (long long)source->bytes);
    }
    return tr__batch_check(&source->tensors, "a dataset", err);
}

tr_status tr_dataset_create_callback(const tr_dataset_source *source, tr_dataset **out,
                                     tr_error *err) {
    *out = NULL;
    tr_status status = check_source(source, err);
    if (status != TR_OK) {
        return status;
    }
    checked_source *self = tr__calloc(1, sizeof *self);
    if (!self) {
        return tr_fail(err, TR_MEMORY, "no memory to open a dataset");
    }
    self->inner = *source;
    self->inner.destroy = NULL; // not ours until all has gone well
    self->inner.about = NULL;
    tr_dataset_source checked = *source;
    checked.read = read_checked;
    checked.destroy = destroy_checked;
    checked.user = self;
    status = tr__dataset_create(&checked, out, err);
    if (status == TR_OK) {
        self->inner.destroy = source->destroy;
        self->inner.about = tr_dataset_about(*out);
    }
    return status;
}

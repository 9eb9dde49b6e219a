// Datasets of a program's own: its source behind a check of what it delivers, because
// kernels trust ids and labels.
#include "data/sources/dataset.h"

#include "base/arguments.h"
#include "base/batch.h"
#include "base/checked.h"
#include "base/memory.h"
#include "data/sources/ids.h"

enum { PIECE = 16 }; // samples that are read at a time where they are converted

typedef struct checked_source {
    tr_dataset_source inner;
    tr_batch_tensors tensors; // the dataset's: I32 where the source says I64
    // [PIECE, ...] of a tensor that the source reads as I64; NULL: it is of the
    // dataset's type.
    int64_t *wide[TR_BATCH_TENSORS_MAX];
    bool converts;
} checked_source;

// place: [samples, S]. Kernels look as many places back as a place says.
static tr_status check_places(const tr_batch_tensor *tensor, const int32_t *place,
                              tr_sample_list samples, tr_error *err) {
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

static tr_status check_tensor(const checked_source *self, int index, const void *rows,
                              tr_sample_list samples, tr_error *err) {
    const tr_dataset_source *source = &self->inner;
    const tr_batch_tensor *tensor = &self->tensors.tensor[index];
    if (tensor->desc.dtype != TR_I32) {
        return TR_OK;
    }
    if (tensor->role == TR_ROLE_POSITION) {
        return check_places(tensor, rows, samples, err);
    }
    bool target = tensor->role == TR_ROLE_TARGET;
    int64_t bound = target ? source->classes : source->vocabulary;
    return tr__ids_check(tensor, rows, bound, samples, err);
}

// ---- reading

// from, to: [samples, ...]
static tr_status narrow(const tr_batch_tensor *tensor, const int64_t *from, int32_t *to,
                        tr_sample_list samples, tr_error *err) {
    int64_t each = tr_shape_count(tensor->desc.shape);
    for (int64_t i = 0; i < samples.count * each; i++) {
        if (from[i] < INT32_MIN || from[i] > INT32_MAX) {
            return tr_fail(err, TR_DATA,
                           "sample %lld: %s: %lld at element %lld does not fit into 32 "
                           "bits",
                           (long long)samples.index[i / each], tensor->name,
                           (long long)from[i], (long long)(i % each));
        }
        to[i] = (int32_t)from[i];
    }
    return TR_OK;
}

static tr_status read_piece(const checked_source *self, tr_sample_list samples,
                            void *const *rows, tr_error *err) {
    const tr_dataset_source *inner = &self->inner;
    void *own[TR_BATCH_TENSORS_MAX];
    for (int i = 0; i < self->tensors.count; i++) {
        own[i] = self->wide[i] ? self->wide[i] : rows[i];
    }
    tr_status status = inner->read(inner->user, samples.index, samples.count, own, err);
    if (status != TR_OK) { // a source may return no message of its own
        return tr_fail(err, status, "%s: reading failed",
                       inner->about ? inner->about : "callback");
    }
    for (int i = 0; status == TR_OK && i < self->tensors.count; i++) {
        if (self->wide[i]) {
            status =
                narrow(&self->tensors.tensor[i], self->wide[i], rows[i], samples, err);
        }
        status =
            status == TR_OK ? check_tensor(self, i, rows[i], samples, err) : status;
    }
    return status;
}

static tr_status read_checked(void *user, const int64_t *index, int64_t count,
                              void *const *rows, tr_error *err) {
    const checked_source *self = user;
    int64_t piece = self->converts ? PIECE : count;
    tr_status status = TR_OK;
    for (int64_t at = 0; at < count && status == TR_OK; at += piece) {
        void *out[TR_BATCH_TENSORS_MAX];
        tr__rows_move(&self->tensors, at, rows, out);
        const tr_sample_list samples = {index + at, tr__min_i64(piece, count - at)};
        status = read_piece(self, samples, out, err);
    }
    return status;
}

// ---- beginning and end

static void free_checked(checked_source *self) {
    for (int i = 0; i < TR_BATCH_TENSORS_MAX; i++) {
        tr__free(self->wide[i]);
    }
    tr__free(self);
}

static void destroy_checked(void *user) {
    checked_source *self = user;
    if (self->inner.destroy) {
        self->inner.destroy(self->inner.user);
    }
    free_checked(self);
}

// Memory for what is converted. Shapes have been checked.
static bool make_wide(checked_source *self, const tr_batch_tensors *tensors) {
    bool good = true;
    for (int i = 0; i < tensors->count && good; i++) {
        const tr_tensor_desc desc = tensors->tensor[i].desc;
        if (desc.dtype == TR_I64) {
            self->converts = true;
            self->wide[i] = tr__calloc(PIECE, (size_t)tr_tensor_bytes(desc));
            good = self->wide[i] != NULL;
        }
    }
    return good;
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
    const tr_batch_tensors tensors = tr__batch_narrow(&source->tensors);
    return tr__batch_check(&tensors, "a dataset", err);
}

tr_status tr_dataset_create_callback(const tr_dataset_source *source, tr_dataset **out,
                                     tr_error *err) {
    static const char name[] = "tr_dataset_create_callback";
    static const tr_sized known = {"tr_dataset_source", "TR_DATASET_SOURCE_INIT",
                                   sizeof *source, 0};
    tr_status status = tr__need_sized(source, &known, name, err);
    status = status == TR_OK ? tr__need(out, name, "out", err) : status;
    status = status == TR_OK ? check_source(source, err) : status;
    if (status != TR_OK) {
        return status;
    }
    *out = NULL;
    checked_source *self = tr__calloc(1, sizeof *self);
    if (!self || !make_wide(self, &source->tensors)) {
        if (self) {
            free_checked(self);
        }
        return tr_fail(err, TR_MEMORY, "no memory to open a dataset");
    }
    self->tensors = tr__batch_narrow(&source->tensors);
    self->inner = *source;
    self->inner.destroy = NULL; // not ours until all has gone well
    self->inner.about = NULL;
    tr_dataset_source checked = *source;
    checked.tensors = self->tensors;
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

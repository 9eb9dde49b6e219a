// Datasets of a program's own: its source behind a check of what it delivers, because
// kernels trust ids and labels.
#include "data/dataset.h"

#include "base/memory.h"

typedef struct checked_source {
    tr_dataset_source inner;
    int64_t input_count, target_count; // elements of one sample
} checked_source;

static tr_status check_ids(const int32_t *id, int64_t per_sample, int64_t bound,
                           bool may_lack, const char *what, const int64_t *index,
                           int64_t count, tr_error *err) {
    for (int64_t i = 0; i < count * per_sample; i++) {
        bool lacks = may_lack && id[i] == TR_NO_TARGET;
        if (!lacks && (id[i] < 0 || id[i] >= bound)) {
            return tr_fail(err, TR_DATA,
                           "sample %lld: %s %d at element %lld is not in [0, %lld)",
                           (long long)index[i / per_sample], what, id[i],
                           (long long)(i % per_sample), (long long)bound);
        }
    }
    return TR_OK;
}

static tr_status read_checked(void *user, const int64_t *index, int64_t count,
                              void *input, void *target, tr_error *err) {
    const checked_source *self = user;
    const tr_dataset_source *inner = &self->inner;
    tr_status status = inner->read(inner->user, index, count, input, target, err);
    if (status != TR_OK) { // a source may return no message of its own
        return tr_fail(err, status, "%s: reading failed",
                       inner->about ? inner->about : "callback");
    }
    if (inner->vocabulary > 0 && inner->sample.input.dtype == TR_I32) {
        status = check_ids(input, self->input_count, inner->vocabulary, false, "input",
                           index, count, err);
    }
    if (status == TR_OK && inner->classes > 0) {
        status = check_ids(target, self->target_count, inner->classes, true, "target",
                           index, count, err);
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
    const tr_tensor_desc *input = &source->sample.input;
    const tr_tensor_desc *target = &source->sample.target;
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
    if ((input->dtype != TR_F32 && input->dtype != TR_I32) || target->dtype != TR_I32) {
        return tr_fail(err, TR_USAGE,
                       "a dataset's input is F32 or I32, its target I32");
    }
    if (input->shape.rank < 0 || input->shape.rank >= TR_RANK_MAX ||
        target->shape.rank < 0 || target->shape.rank >= TR_RANK_MAX ||
        tr_tensor_bytes(*input) <= 0 || tr_tensor_bytes(*target) <= 0) {
        return tr_fail(err, TR_USAGE,
                       "a dataset's samples need shapes of at most %d dimensions, "
                       "each at least 1",
                       TR_RANK_MAX - 1);
    }
    return TR_OK;
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
    self->input_count = tr_shape_count(source->sample.input.shape);
    self->target_count = tr_shape_count(source->sample.target.shape);
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

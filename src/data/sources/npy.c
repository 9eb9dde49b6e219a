// Format "npy": features and labels in two files of numpy.save, read from disk sample
// by sample.
#include "base/text.h"
#include "data/sources/content.h"
#include "data/sources/dataset.h"
#include "data/sources/formats.h"
#include "data/sources/image.h"
#include "data/sources/npy_header.h"
#include "data/sources/paths.h"

#include "base/checked.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 4096 }; // elements read at once, on the stack

typedef struct array_file {
    char *path;
    int file;
    tr_npy_array array;
} array_file;

typedef struct arrays {
    array_file features, labels;
    int64_t width; // features of a sample
    tr_image image;
    int64_t classes;
} arrays;

static tr_status array_open(array_file *self, const char *path, tr_error *err) {
    self->path = tr__strdup(path);
    if (!self->path) {
        return tr_fail(err, TR_MEMORY, "no memory to open %s", path);
    }
    // A pipe that nobody writes to must not hold us up.
    self->file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (self->file < 0) {
        return tr_fail(err, TR_DATA, "%s: cannot open: %s", path, strerror(errno));
    }
    return tr__npy_header_read(self->file, path, &self->array, err);
}

static void array_close(array_file *self) {
    if (self->file >= 0) {
        close(self->file);
    }
    tr__free(self->path);
}

static uint64_t bits_at(const unsigned char *raw, size_t bytes) {
    uint64_t bits = 0;
    for (size_t i = 0; i < bytes; i++) {
        bits |= (uint64_t)raw[i] << (8 * i);
    }
    return bits;
}

static double float_of(uint64_t bits, tr_dtype dtype) {
    if (dtype == TR_F32) {
        uint32_t half = (uint32_t)bits;
        float value;
        memcpy(&value, &half, sizeof value);
        return value;
    }
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static bool is_float(tr_dtype dtype) {
    return dtype == TR_F32 || dtype == TR_F64;
}

// An integer element. An unsigned one over 2^63 - 1 turns negative: no label is that
// large, and -100 is not reached by numbers that a file would hold by accident.
static int64_t integer_of(uint64_t bits, tr_dtype dtype) {
    switch (dtype) {
    case TR_I8:
        return (int8_t)bits;
    case TR_I16:
        return (int16_t)bits;
    case TR_I32:
        return (int32_t)bits;
    default:
        return (int64_t)bits;
    }
}

static double value_of(const unsigned char *raw, tr_dtype dtype) {
    uint64_t bits = bits_at(raw, tr_dtype_bytes(dtype));
    if (is_float(dtype)) {
        return float_of(bits, dtype);
    }
    return dtype == TR_U64 ? (double)bits : (double)integer_of(bits, dtype);
}

// raw: [count] elements
static tr_status read_elements(const array_file *self, int64_t first, int64_t count,
                               unsigned char *raw, tr_error *err) {
    int64_t bytes = (int64_t)tr_dtype_bytes(self->array.dtype);
    return tr__pread(self->file, self->path, raw, (size_t)(count * bytes),
                     self->array.offset + first * bytes, err);
}

// row: [width]
static tr_status read_features(const arrays *self, int64_t sample, float *row,
                               tr_error *err) {
    unsigned char raw[PIECE * 8];
    tr_dtype dtype = self->features.array.dtype;
    size_t bytes = tr_dtype_bytes(dtype);
    tr_status status = TR_OK;
    for (int64_t done = 0; status == TR_OK && done < self->width; done += PIECE) {
        int64_t here = tr__min_i64(PIECE, self->width - done);
        status =
            read_elements(&self->features, sample * self->width + done, here, raw, err);
        for (int64_t i = 0; status == TR_OK && i < here; i++) {
            double value = value_of(raw + (size_t)i * bytes, dtype);
            if (!(fabs(value) <= FLT_MAX)) {
                status = tr_fail(err, TR_DATA,
                                 "%s: feature %lld of sample %lld is not a finite f32 "
                                 "number; correct it or leave the sample out",
                                 self->features.path, (long long)done + i,
                                 (long long)sample);
            }
            tr__image_put(&self->image, done + i, (float)value, row);
        }
    }
    return status;
}

// label: [count], samples first ...
static tr_status read_labels(const arrays *self, int64_t first, int64_t count,
                             int32_t *label, tr_error *err) {
    unsigned char raw[PIECE * 8];
    tr_dtype dtype = self->labels.array.dtype;
    size_t bytes = tr_dtype_bytes(dtype);
    if (self->labels.file < 0) { // there are none
        for (int64_t i = 0; i < count; i++) {
            label[i] = TR_NO_TARGET;
        }
        return TR_OK;
    }
    tr_status status = read_elements(&self->labels, first, count, raw, err);
    for (int64_t i = 0; status == TR_OK && i < count; i++) {
        int64_t value = integer_of(bits_at(raw + (size_t)i * bytes, bytes), dtype);
        status =
            tr__label_check(value, self->classes, self->labels.path, first + i, err);
        label[i] = (int32_t)value;
    }
    return status;
}

static tr_status read_samples(void *user, const int64_t *index, int64_t count,
                              void *const *rows, tr_error *err) {
    const arrays *self = user;
    tr_status status = TR_OK;
    for (int64_t i = 0; status == TR_OK && i < count; i++) {
        status = read_features(self, index[i], (float *)rows[0] + i * self->width, err);
        if (status == TR_OK) {
            status = read_labels(self, index[i], 1, (int32_t *)rows[1] + i, err);
        }
    }
    return status;
}

static void destroy_arrays(void *user) {
    arrays *self = user;
    array_close(&self->features);
    array_close(&self->labels);
    tr__free(self);
}

// Checks every label now: a wrong one would else stop a run in its middle. Sets classes
// where they are not given.
static tr_status scan_labels(arrays *self, tr_error *err) {
    int32_t label[PIECE], most = 0;
    tr_status status = TR_OK;
    int64_t rows = self->features.array.dim[0];
    for (int64_t done = 0; status == TR_OK && done < rows; done += PIECE) {
        int64_t here = tr__min_i64(PIECE, rows - done);
        status = read_labels(self, done, here, label, err);
        for (int64_t i = 0; status == TR_OK && i < here; i++) {
            most = label[i] > most ? label[i] : most;
        }
    }
    self->classes = self->classes > 0 ? self->classes : (int64_t)most + 1;
    return status;
}

static tr_status check_shapes(arrays *self, tr_error *err) {
    const tr_npy_array *features = &self->features.array, *labels = &self->labels.array;
    if (features->rank == 0 || features->count == 0) {
        return tr_fail(err, TR_DATA,
                       "%s: no samples; an array [samples, features] is "
                       "needed",
                       self->features.path);
    }
    self->width = features->count / features->dim[0];
    if (self->labels.file < 0) {
        return TR_OK;
    }
    if (labels->rank != 1 || is_float(labels->dtype)) {
        return tr_fail(err, TR_DATA,
                       "%s: labels are one dimension of integers; save them with "
                       "labels.reshape(-1).astype('<i4')",
                       self->labels.path);
    }
    if (labels->count != features->dim[0]) {
        return tr_fail(err, TR_DATA, "%s: %lld labels for the %lld samples of %s",
                       self->labels.path, (long long)labels->count,
                       (long long)features->dim[0], self->features.path);
    }
    return TR_OK;
}

static tr_status check_files(const tr_data_options *options, const tr_data_files *files,
                             tr_error *err) {
    if (files->count != 1) {
        return tr_fail(err, TR_USAGE,
                       "%s: format npy takes one file of features, not %zu; join them "
                       "with numpy.concatenate",
                       files->paths_key, files->count);
    }
    if (!files->labels && !options->labels_optional) {
        return tr_fail(err, TR_USAGE,
                       "%s: format npy needs a file of labels, [samples] of integers",
                       files->labels_key);
    }
    return TR_OK;
}

// What the elements are read as, folded into a hash.
static uint64_t hash_reading(const arrays *self, uint64_t hash) {
    int64_t numbers[] = {self->features.array.dtype, self->labels.array.dtype,
                         self->width};
    hash = tr__hash_more(hash, numbers, sizeof numbers);
    return self->image.height > 0
               ? tr__hash_more(hash, &self->image, sizeof self->image)
               : hash;
}

static int64_t file_bytes(const array_file *self) {
    return self->array.offset +
           self->array.count * (int64_t)tr_dtype_bytes(self->array.dtype);
}

// By content and by names.
static tr_status identify(const arrays *self, const tr_data_options *options,
                          uint64_t *content, uint64_t *names, tr_error *err) {
    tr_file_entry counts[] = {{self->features.path, self->features.array.count},
                              {self->labels.path, self->labels.array.count}};
    tr_file_entry sizes[] = {{self->features.path, file_bytes(&self->features)},
                             {self->labels.path, file_bytes(&self->labels)}};
    size_t files = self->labels.file < 0 ? 1 : 2;
    tr_file_list counted = {.entry = counts, .count = files, .capacity = 2};
    tr_file_list sized = {.entry = sizes, .count = files, .capacity = 2};
    uint64_t hash = tr__hash_text("npy");
    *names = hash_reading(self, tr__file_list_names(&counted, hash));
    tr_status status =
        options->sizes_only ? TR_OK : tr__content_hash(&sized, &hash, err);
    *content = hash_reading(self, hash);
    return status;
}

// Hands `self` over to the dataset.
static tr_status wrap(arrays *self, const tr_data_options *options, tr_dataset **out,
                      tr_error *err) {
    char about[128];
    snprintf(about, sizeof about, "%lld sample%s of npy, %lld feature%s, %lld classes",
             (long long)self->features.array.dim[0],
             tr__plural(self->features.array.dim[0]), (long long)self->width,
             tr__plural(self->width), (long long)self->classes);
    uint64_t content = 0, names = 0;
    tr_status status = identify(self, options, &content, &names, err);
    if (status != TR_OK) {
        destroy_arrays(self);
        return status;
    }
    tr_dataset_source source = {
        .about = about,
        .samples = self->features.array.dim[0],
        .tensors = tr__tensors_of(options, self->width),
        .classes = self->classes,
        .hash = content,
        .bytes = (int64_t)sizeof *self,
        .read = read_samples,
        .destroy = destroy_arrays,
        .user = self,
    };
    status = tr__dataset_create(&source, out, err);
    if (status == TR_OK) {
        tr__dataset_names(*out, names);
    }
    return status;
}

tr_status tr__npy_open(const tr_data_options *options, const tr_data_files *files,
                       tr_dataset **out, tr_error *err) {
    tr_status status = check_files(options, files, err);
    if (status != TR_OK) {
        return status;
    }
    arrays *self = tr__calloc(1, sizeof *self);
    if (!self) {
        return tr_fail(err, TR_MEMORY, "no memory to open npy");
    }
    self->features.file = self->labels.file = -1;
    self->classes = options->classes;
    status = array_open(&self->features, files->paths[0], err);
    if (status == TR_OK && files->labels) {
        status = array_open(&self->labels, files->labels, err);
    }
    if (status == TR_OK) {
        status = check_shapes(self, err);
    }
    if (status == TR_OK) {
        status = tr__features_check(self->width, options, self->features.path, err);
    }
    if (status == TR_OK) {
        const tr_npy_array *array = &self->features.array;
        status = tr__image_layout(options, array->dim + 1, array->rank - 1,
                                  self->features.path, &self->image, err);
    }
    if (status == TR_OK) {
        status = scan_labels(self, err);
    }
    if (status != TR_OK) {
        destroy_arrays(self);
        return status;
    }
    return wrap(self, options, out, err);
}

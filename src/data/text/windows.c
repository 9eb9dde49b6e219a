#include "data/text/windows.h"

#include "data/sources/content.h"
#include "data/sources/dataset.h"
#include "data/sources/npy_header.h"
#include "data/text/windows_inner.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

// input, target: [n]
static tr_status read_window(const tr_windows *self, int64_t window, int32_t *input,
                             int32_t *target, tr_error *err) {
    int64_t n = self->options.length, first = window * n;
    tr_status status = tr__windows_read_ids(self, first, n, input, err);
    if (status != TR_OK) {
        return status;
    }
    if (self->labelled) {
        return tr__windows_read_labels(self, first + 1, n, target, err);
    }
    memcpy(target, input + 1, (size_t)(n - 1) * sizeof *target);
    return tr__windows_read_ids(self, first + n, 1, target + n - 1, err);
}

// Each with its own label.
static tr_status read_masked(void *user, const int64_t *index, int64_t count,
                             void *const *rows, tr_error *err) {
    const tr_windows *self = user;
    int64_t n = self->options.length;
    tr_status status = TR_OK;
    memset(rows[1], 0, (size_t)(count * n) * sizeof(int32_t)); // types
    for (int64_t i = 0; status == TR_OK && i < count; i++) {
        int32_t *places = (int32_t *)rows[2] + i * n;
        for (int64_t k = 0; k < n; k++) {
            places[k] = (int32_t)k;
        }
        status = tr__windows_read_ids(self, index[i] * n, n, (int32_t *)rows[0] + i * n,
                                      err);
        status = status == TR_OK
                     ? tr__windows_read_labels(self, index[i] * n, n,
                                               (int32_t *)rows[3] + i * n, err)
                     : status;
    }
    return status;
}

static tr_status read_windows(void *user, const int64_t *index, int64_t count,
                              void *const *rows, tr_error *err) {
    const tr_windows *self = user;
    int64_t n = self->options.length;
    tr_status status = TR_OK;
    for (int64_t i = 0; status == TR_OK && i < count; i++) {
        status = read_window(self, index[i], (int32_t *)rows[0] + i * n,
                             (int32_t *)rows[1] + i * n, err);
    }
    return status;
}

static void destroy_windows(void *user) {
    tr_windows *self = user;
    tr__joined_close(&self->text);
    tr__joined_close(&self->labels);
    tr__free(self);
}

// ---- opening

// A header would be read as ids.
static tr_status refuse_npy(const tr_windows *self, const tr_file_list *list,
                            tr_error *err) {
    for (size_t i = 0;
         i < list->count && self->options.width > 1 && !self->options.made; i++) {
        const char *path = list->entry[i].path;
        if (tr__npy_is(path)) {
            return tr_fail(err, TR_DATA,
                           "%s: is a .npy file, whose header would be read as tokens; "
                           "write the ids alone: "
                           "numpy.load(FILE).astype(\"<u%d\").tofile(\"train.bin\")",
                           path, self->options.width);
        }
    }
    return TR_OK;
}

static tr_status open_joined(const tr_windows *self, const char *path,
                             tr_file_list *list, int width, tr_joined *joined,
                             tr_error *err) {
    tr_status status = refuse_npy(self, list, err);
    if (status != TR_OK) {
        tr__file_list_clear(list);
        return status;
    }
    return tr__joined_open(joined, list, path, width, err);
}

static tr_status open_label_file(tr_windows *self, const char *path, int width,
                                 tr_error *err) {
    tr_file_list list = {0};
    tr_status status = tr__file_list_add(&list, path, err);
    return status == TR_OK ? open_joined(self, path, &list, width, &self->labels, err)
                           : status;
}

// The width of the labels follows from their size, which is that of the text.
static tr_status open_labels(tr_windows *self, const char *path, const char *key,
                             tr_error *err) {
    int64_t entries = tr__joined_count(&self->text);
    tr_status status = open_label_file(self, path, 1, err);
    if (status != TR_OK) {
        return status;
    }
    int64_t bytes = tr__joined_count(&self->labels);
    tr__joined_close(&self->labels);
    if (bytes != 2 * entries && bytes != 4 * entries) {
        return tr_fail(err, TR_DATA,
                       "%s: %s needs one int16 or int32 for each of the %lld %s: %lld "
                       "or %lld bytes, not %lld",
                       path, key, (long long)entries, self->options.entries,
                       2 * (long long)entries, 4 * (long long)entries,
                       (long long)bytes);
    }
    self->labelled = true;
    return open_label_file(self, path, (int)(bytes / entries), err);
}

static tr_status check_length(const tr_windows *self, const tr_data_files *files,
                              tr_error *err) {
    int64_t entries = tr__joined_count(&self->text), n = self->options.length;
    if (entries > n || (entries == n && self->options.data->masked)) {
        return TR_OK;
    }
    return tr_fail(err, TR_DATA,
                   "%s: %lld %s are too short for one sample of %lld and a target "
                   "after the last; add data or lower data.max_length",
                   files->paths_key, (long long)entries, self->options.entries,
                   (long long)n);
}

// By content and by names.
static tr_status identify(const tr_windows *self, uint64_t *content, uint64_t *names,
                          tr_error *err) {
    const tr_windows_options *options = &self->options;
    int64_t numbers[] = {options->width, options->length, options->vocabulary,
                         self->labels.width};
    uint64_t hash = tr__hash_more(0, options->entries, strlen(options->entries));
    hash = tr__hash_more(hash, numbers, sizeof numbers);
    if (options->data->masked) {
        hash = tr__hash_more(hash, "masked", 6);
    }
    *content = hash;
    *names = tr__file_list_names(&self->labels.files,
                                 tr__file_list_names(&self->text.files, hash));
    if (options->made) {
        *content = tr__hash_more(*content, &options->made->hash, sizeof(uint64_t));
        return TR_OK;
    }
    if (options->data->sizes_only) {
        return TR_OK;
    }
    tr_status status = tr__content_hash(&self->text.files, content, err);
    return status == TR_OK ? tr__content_hash(&self->labels.files, content, err)
                           : status;
}

static void print_about(const tr_windows *self, char *about, size_t bytes) {
    const tr_windows_options *options = &self->options;
    size_t files = self->text.files.count;
    char size[32], what[64];
    tr__print_size(size, sizeof size, tr__joined_count(&self->text) * options->width);
    snprintf(what, sizeof what, "%zu file%s, %s", files, tr__plural((int64_t)files),
             size);
    snprintf(about, bytes, "%s in windows of %lld %s",
             options->made ? options->made->about : what, (long long)options->length,
             options->entries);
}

// Hands `self` over to the dataset.
static tr_status wrap(tr_windows *self, uint64_t content, uint64_t names,
                      tr_dataset **out, tr_error *err) {
    const tr_windows_options *options = &self->options;
    char about[256];
    int64_t entries = tr__joined_count(&self->text);
    bool masked = options->data->masked;
    print_about(self, about, sizeof about);
    tr_dataset_source source = {
        .about = about,
        .samples = (masked ? entries : entries - 1) / options->length,
        .tensors = masked ? tr_batch_masked(options->length)
                          : tr_batch_tokens(options->length),
        .vocabulary = options->vocabulary,
        .classes = options->vocabulary,
        .hash = content,
        .bytes = tr__joined_bytes(&self->text) + (int64_t)sizeof *self,
        .read = masked ? read_masked : read_windows,
        .destroy = destroy_windows,
        .user = self,
    };
    if (self->labelled) {
        source.bytes += tr__joined_bytes(&self->labels);
    }
    tr_status status = tr__dataset_create(&source, out, err);
    if (status == TR_OK) {
        tr__dataset_names(*out, names);
    }
    return status;
}

static tr_status check_options(const tr_windows_options *options, tr_error *err) {
    if (options->length <= 0 || options->length > INT32_MAX) {
        return tr_fail(err, TR_USAGE,
                       "data of %s needs a length of samples in [1, 2^31) "
                       "(data.max_length), not %lld",
                       options->entries, (long long)options->length);
    }
    if (options->vocabulary < 0 || options->vocabulary > INT32_MAX) {
        return tr_fail(err, TR_USAGE, "a vocabulary of %lld is not in [1, 2^31)",
                       (long long)options->vocabulary);
    }
    return TR_OK;
}

// The one file that was made of those that were named.
static tr_status list_made(const tr_windows *self, tr_file_list *list, tr_error *err) {
    const tr_windows_made *made = self->options.made;
    *list = (tr_file_list){0};
    tr_status status = tr__file_list_add(list, made->path, err);
    if (status == TR_OK) {
        list->entry[0].bytes = made->entries * self->options.width;
    }
    return status;
}

static tr_status open_files(tr_windows *self, const tr_data_files *files,
                            tr_error *err) {
    tr_file_list list;
    tr_status status = self->options.made
                           ? list_made(self, &list, err)
                           : tr__data_files_list(self->options.data, files, &list, err);
    if (status == TR_OK) {
        status = open_joined(self, files->paths[0], &list, self->options.width,
                             &self->text, err);
    }
    if (status == TR_OK) {
        status = check_length(self, files, err);
    }
    return status == TR_OK && files->labels
               ? open_labels(self, files->labels, files->labels_key, err)
               : status;
}

tr_status tr__windows_open(const tr_windows_options *options,
                           const tr_data_files *files, tr_dataset **out,
                           tr_error *err) {
    uint64_t content = 0, names = 0;
    tr_status status = check_options(options, err);
    if (status != TR_OK) {
        return status;
    }
    tr_windows *self = tr__calloc(1, sizeof *self);
    if (!self) {
        return tr_fail(err, TR_MEMORY, "no memory to open data");
    }
    self->options = *options;
    status = open_files(self, files, err);
    if (status == TR_OK && !options->data->sizes_only && !options->made) {
        status = tr__windows_check(self, err);
    }
    if (status == TR_OK) {
        status = identify(self, &content, &names, err);
    }
    if (status != TR_OK) {
        destroy_windows(self);
        return status;
    }
    return wrap(self, content, names, out, err);
}

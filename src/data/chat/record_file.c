#include "data/chat/record_file.h"

#include "data/sources/dataset.h"

#include "base/checked.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/memory.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum {
    WIDTH = 4,
    PIECE = 1 << 16,      // entries that are written, and read, at once
    NO_TARGET_SHIFT = 31, // the bit of a token that is no target
    FOOTER = sizeof(tr_record_counts) / WIDTH,
};

static const uint32_t id_mask = (UINT32_C(1) << NO_TARGET_SHIFT) - 1;

tr_text_cache tr__record_cache(uint64_t key) {
    return (tr_text_cache){.key = key, .width = WIDTH, .vocabulary = INT64_C(1) << 32};
}

// ---- writing

static tr_status flush(tr_record_writer *w, tr_error *err) {
    tr_status status =
        tr__text_cache_write(w->to, w->entry, w->count * sizeof *w->entry, err);
    w->written += (int64_t)w->count;
    w->count = 0;
    return status;
}

static tr_status reserve(tr_record_writer *w, size_t more, tr_error *err) {
    return tr__grow((void **)&w->entry, &w->capacity, w->count + more, sizeof *w->entry)
               ? TR_OK
               : tr_fail(err, TR_MEMORY, "no memory for the tokens of records");
}

static int64_t count_targets(const tr_token_ids *labels, int64_t length) {
    int64_t count = 0;
    for (int64_t i = 1; i < length; i++) {
        count += labels->id[i] != TR_NO_TARGET;
    }
    return count;
}

tr_status tr__record_write(tr_record_writer *w, const tr_token_ids *ids,
                           const tr_token_ids *labels, tr_error *err) {
    int64_t has = (int64_t)ids->count, length = tr__min_i64(has, w->most);
    int64_t targets = count_targets(labels, length);
    w->counts.records++;
    w->counts.cut += has > w->most;
    w->counts.longest = tr__max_i64(w->counts.longest, has);
    if (targets == 0) {
        w->counts.dropped++;
        return TR_OK;
    }
    w->counts.samples++;
    w->counts.tokens += length;
    w->counts.targets += targets;
    tr_status status = reserve(w, (size_t)length + 1, err);
    if (status != TR_OK) {
        return status;
    }
    w->entry[w->count++] = (uint32_t)length;
    for (int64_t i = 0; i < length; i++) {
        uint32_t none = labels->id[i] == TR_NO_TARGET;
        w->entry[w->count++] = (uint32_t)ids->id[i] | none << NO_TARGET_SHIFT;
    }
    return w->count < PIECE ? TR_OK : flush(w, err);
}

tr_status tr__record_finish(tr_record_writer *w, tr_text_cache *cache, tr_error *err) {
    tr_status status = reserve(w, FOOTER, err);
    if (status != TR_OK) {
        return status;
    }
    memcpy(w->entry + w->count, &w->counts, sizeof w->counts);
    w->count += FOOTER;
    status = flush(w, err);
    cache->ids = w->written;
    cache->documents = w->counts.samples;
    return status == TR_OK ? tr__text_cache_keep(cache, w->to, err) : status;
}

void tr__record_writer_release(tr_record_writer *w) {
    tr__free(w->entry);
    w->entry = NULL;
}

tr_status tr__record_counts_read(const tr_text_cache *cache, tr_record_counts *counts,
                                 tr_error *err) {
    int file = -1;
    if (cache->ids < FOOTER) {
        return tr_fail(err, TR_DATA, "%s: is damaged; remove it", cache->path);
    }
    tr_status status = tr__file_open(cache->path, O_RDONLY | O_NOFOLLOW, &file, err);
    if (status == TR_OK) {
        status = tr__pread(file, cache->path, counts, sizeof *counts,
                           (cache->ids - FOOTER) * WIDTH, err);
        close(file);
    }
    return status;
}

// ---- rows

typedef struct record_rows {
    char path[PATH_MAX];
    int file;
    int64_t length, samples;
    int64_t *start; // [samples + 1] the entry at which each record begins
} record_rows;

static void destroy_rows(void *user) {
    record_rows *self = user;
    if (self->file >= 0) {
        close(self->file);
    }
    tr__free(self->start);
    tr__free(self);
}

// The first `count` tokens of a record, and what each position learns. Several threads
// may read: the row itself holds what is in the file.
static tr_status read_record(const void *user, int64_t record, int64_t count,
                             int32_t *ids, int32_t *labels, tr_error *err) {
    const record_rows *self = user;
    tr_status status = tr__pread(self->file, self->path, ids, (size_t)count * WIDTH,
                                 (self->start[record] + 1) * WIDTH, err);
    for (int64_t i = 0; status == TR_OK && i < count; i++) {
        bool learnt = i + 1 < count && ids[i + 1] >= 0;
        labels[i] = learnt ? ids[i + 1] : TR_NO_TARGET;
        ids[i] = (int32_t)((uint32_t)ids[i] & id_mask);
    }
    return status;
}

static int64_t length_of(const record_rows *self, int64_t record) {
    return self->start[record + 1] - self->start[record] - 1;
}

static tr_status read_row(const record_rows *self, int64_t record, int32_t *input,
                          int32_t *target, tr_error *err) {
    int64_t count = length_of(self, record);
    for (int64_t i = count; i < self->length; i++) {
        input[i] = 0;
        target[i] = TR_NO_TARGET;
    }
    return read_record(self, record, count, input, target, err);
}

static tr_status read_rows(void *user, const int64_t *index, int64_t count,
                           void *const *rows, tr_error *err) {
    const record_rows *self = user;
    tr_status status = TR_OK;
    for (int64_t i = 0; status == TR_OK && i < count; i++) {
        status = read_row(self, index[i], (int32_t *)rows[0] + i * self->length,
                          (int32_t *)rows[1] + i * self->length, err);
    }
    return status;
}

// Where records begin, by walking over their lengths.
static tr_status find_starts(record_rows *self, int64_t entries, tr_error *err) {
    int64_t at = 0;
    tr_status status = TR_OK;
    for (int64_t i = 0; i < self->samples && status == TR_OK; i++) {
        uint32_t length = 0;
        self->start[i] = at;
        status = tr__pread(self->file, self->path, &length, WIDTH, at * WIDTH, err);
        at += 1 + (int64_t)length;
        if (status == TR_OK && (length > self->length || at > entries)) {
            status = tr_fail(err, TR_DATA, "%s: is damaged; remove it", self->path);
        }
    }
    self->start[self->samples] = at;
    return status;
}

static tr_status open_file(record_rows *self, const tr_record_rows *rows,
                           tr_error *err) {
    const tr_text_cache *cache = rows->cache;
    memcpy(self->path, cache->path, sizeof self->path);
    self->length = rows->length;
    self->samples = cache->documents;
    self->file = -1;
    self->start = tr__calloc((size_t)self->samples + 1, sizeof *self->start);
    if (!self->start) {
        return tr_fail(err, TR_MEMORY, "no memory to open data");
    }
    tr_status status =
        tr__file_open(self->path, O_RDONLY | O_NOFOLLOW, &self->file, err);
    return status == TR_OK ? find_starts(self, cache->ids - FOOTER, err) : status;
}

static tr_status open_rows(const tr_record_rows *rows, record_rows **out,
                           tr_error *err) {
    record_rows *self = tr__calloc(1, sizeof *self);
    if (!self) {
        return tr_fail(err, TR_MEMORY, "no memory to open data");
    }
    tr_status status = open_file(self, rows, err);
    if (status != TR_OK) {
        destroy_rows(self);
        return status;
    }
    *out = self;
    return TR_OK;
}

static int64_t bytes_of(const record_rows *self) {
    return (int64_t)sizeof *self + (self->samples + 1) * (int64_t)sizeof *self->start;
}

tr_status tr__record_rows_open(const tr_record_rows *rows, tr_dataset **out,
                               tr_error *err) {
    record_rows *self = NULL;
    tr_status status = open_rows(rows, &self, err);
    if (status != TR_OK) {
        return status;
    }
    const int64_t numbers[] = {rows->length, rows->vocabulary};
    uint64_t hash = tr__hash_more(tr__hash_text("records"), numbers, sizeof numbers);
    tr_dataset_source source = {
        .about = rows->about,
        .samples = self->samples,
        .tensors = tr_batch_tokens(rows->length),
        .vocabulary = rows->vocabulary,
        .classes = rows->vocabulary,
        .hash = tr__hash_more(hash, &rows->cache->hash, sizeof rows->cache->hash),
        .bytes = bytes_of(self),
        .read = read_rows,
        .destroy = destroy_rows,
        .user = self,
    };
    return tr__dataset_create(&source, out, err);
}

tr_status tr__record_documents(const tr_record_rows *rows, tr_documents *out,
                               tr_error *err) {
    record_rows *self = NULL;
    tr_status status = open_rows(rows, &self, err);
    if (status != TR_OK) {
        return status;
    }
    int32_t *length = tr__calloc((size_t)self->samples, sizeof *length);
    if (!length) {
        destroy_rows(self);
        return tr_fail(err, TR_MEMORY, "no memory for a list of records");
    }
    for (int64_t i = 0; i < self->samples; i++) {
        length[i] = (int32_t)length_of(self, i);
    }
    *out = (tr_documents){
        .count = self->samples,
        .length = length,
        .read = read_record,
        .destroy = destroy_rows,
        .user = self,
        .bytes = bytes_of(self),
        .vocabulary = rows->vocabulary,
        .hash = rows->cache->hash,
        .about = rows->about,
    };
    return TR_OK;
}

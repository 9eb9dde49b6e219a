// The entries of windows as they are in files, checked one by one.
#include "data/text/windows_inner.h"

#include "data/sources/dataset.h"

#include "base/checked.h"

enum { PIECE = 4096 }; // entries read at once, on the stack

// Unsigned or two's complement little endian: the callers widen.
static uint32_t decode(const unsigned char *raw, int width) {
    uint32_t value = 0;
    for (int i = 0; i < width; i++) {
        value |= (uint32_t)raw[i] << (8 * i);
    }
    return value;
}

// ids: [count]. The number of entries before the first that is no id: count when all
// are.
static int64_t decode_ids(const unsigned char *raw, int width, int64_t bound,
                          int64_t count, int32_t *ids) {
    uint32_t top = 0, limit = bound > 0 ? (uint32_t)bound - 1 : INT32_MAX;
    for (int64_t i = 0; i < count; i++) {
        uint32_t id = width == 1 ? raw[i] : decode(raw + i * width, width);
        top = id > top ? id : top;
        ids[i] = (int32_t)id;
    }
    for (int64_t i = 0; top > limit && i < count; i++) {
        if ((uint32_t)ids[i] > limit) {
            return i;
        }
    }
    return count;
}

static tr_status bad_id(const tr_windows *self, int64_t entry, int32_t id,
                        tr_error *err) {
    int64_t inner = 0;
    const char *path = tr__joined_locate(&self->text, entry, &inner);
    if (self->options.vocabulary == 0) {
        return tr_fail(err, TR_DATA,
                       "%s: token %u at position %lld is no 31-bit id; is data.dtype "
                       "right?",
                       path, (uint32_t)id, (long long)inner);
    }
    return tr_fail(
        err, TR_DATA,
        "%s: %s %u at position %lld is outside the vocabulary of %lld; raise "
        "model.vocab_size to at least %lld, or see whether data.dtype is "
        "right",
        path, self->options.width == 1 ? "byte" : "token", (uint32_t)id,
        (long long)inner, (long long)self->options.vocabulary,
        (long long)(uint32_t)id + 1);
}

// ids: [count], entries first ...
tr_status tr__windows_read_ids(const tr_windows *self, int64_t first, int64_t count,
                               int32_t *ids, tr_error *err) {
    unsigned char raw[PIECE * 4];
    tr_status status = TR_OK;
    for (int64_t done = 0; status == TR_OK && done < count; done += PIECE) {
        int64_t here = tr__min_i64(PIECE, count - done);
        status = tr__joined_read(&self->text, first + done, here, raw, err);
        if (status != TR_OK) {
            break;
        }
        int64_t good = decode_ids(raw, self->options.width, self->options.vocabulary,
                                  here, ids + done);
        if (good < here) {
            status = bad_id(self, first + done + good, ids[done + good], err);
        }
    }
    return status;
}

// targets: [count], labels first ...
tr_status tr__windows_read_labels(const tr_windows *self, int64_t first, int64_t count,
                                  int32_t *targets, tr_error *err) {
    unsigned char raw[PIECE * 4];
    const char *path = self->labels.files.entry[0].path;
    int width = self->labels.width;
    tr_status status = TR_OK;
    for (int64_t done = 0; status == TR_OK && done < count; done += PIECE) {
        int64_t here = tr__min_i64(PIECE, count - done);
        status = tr__joined_read(&self->labels, first + done, here, raw, err);
        for (int64_t i = 0; status == TR_OK && i < here; i++) {
            uint32_t bits = decode(raw + i * width, width);
            int32_t label = width == 2 ? (int16_t)bits : (int32_t)bits;
            targets[done + i] = label;
            status = tr__label_check(label, self->options.vocabulary, path,
                                     first + done + i, err);
        }
    }
    return status;
}

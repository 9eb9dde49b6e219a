// Every entry of the files, looked at when they are opened.
#include "data/sources/scan.h"
#include "data/text/windows_inner.h"

#include "base/checked.h"

enum {
    PIECE = 4096,      // entries read at once, on the stack
    WIDTH_LOOKED = 64, // of fewer ids, chance may make what tells their width
};

// The message of the first entry of a file that is none: what reading it says.
static tr_status find_wrong(const tr_windows *self, const tr_joined *joined,
                            size_t file, tr_error *err) {
    int32_t values[PIECE];
    int64_t end = joined->start[file + 1];
    tr_status status = TR_OK;
    for (int64_t at = joined->start[file]; at < end && status == TR_OK; at += PIECE) {
        int64_t here = tr__min_i64(PIECE, end - at);
        status = joined == &self->labels
                     ? tr__windows_read_labels(self, at, here, values, err)
                     : tr__windows_read_ids(self, at, here, values, err);
    }
    return status;
}

// How far the upper half of an id may go.
static uint32_t upper_half(const tr_windows *self) {
    int64_t vocabulary = self->options.vocabulary;
    return vocabulary > 1 << 16 ? (uint32_t)(vocabulary - 1) >> 16 : 0;
}

static tr_status wrong_width(const tr_windows *self, size_t file, tr_error *err) {
    int width = self->options.width;
    return tr_fail(err, TR_DATA,
                   "%s: its ids are u%d, not u%d%s: set data.dtype to \"u%d\"; all "
                   "files of a run have one dtype",
                   self->text.files.entry[file].path, width == 2 ? 32 : 16, width * 8,
                   width == 2 ? " (as u16 every second one is nearly 0)" : "",
                   width == 2 ? 32 : 16);
}

// Do ids of two bytes look like halves of four? most: as tr__scan_file has it.
static tr_status check_narrow(const tr_windows *self, size_t file,
                              const uint32_t most[2], tr_error *err) {
    int64_t count = self->text.start[file + 1] - self->text.start[file];
    uint32_t high = upper_half(self);
    bool wide = count >= WIDTH_LOOKED && most[1] <= high && most[0] > high;
    return wide && self->options.width == 2 ? wrong_width(self, file, err) : TR_OK;
}

// The ids of four bytes have one outside of the vocabulary: are they of two?
static tr_status check_wide(const tr_windows *self, size_t file, tr_error *err) {
    unsigned char raw[PIECE * 4];
    int64_t first = self->text.start[file];
    int64_t count = tr__min_i64(PIECE, self->text.start[file + 1] - first);
    bool known = self->options.width == 4 && self->options.vocabulary > 0;
    tr_status status =
        known ? tr__joined_read(&self->text, first, count, raw, err) : TR_OK;
    if (status == TR_OK && known &&
        tr__scan_width(raw, 2 * count, upper_half(self)) == 2) {
        return wrong_width(self, file, err);
    }
    return status;
}

static tr_status check_ids(const tr_windows *self, tr_error *err) {
    int64_t vocabulary = self->options.vocabulary;
    uint32_t limit = vocabulary > 0 ? (uint32_t)vocabulary - 1 : INT32_MAX;
    tr_scan scan = tr__scan_begin(&self->text, false, self->options.data);
    tr_status status = TR_OK;
    if (self->options.width == 1 && limit >= UINT8_MAX) {
        return TR_OK; // any byte will do
    }
    for (size_t i = 0; i < self->text.files.count && status == TR_OK; i++) {
        uint32_t most[2];
        status = tr__scan_file(&scan, i, most, err);
        if (status == TR_OK) {
            status = check_narrow(self, i, most, err);
        }
        if (status == TR_OK && (most[0] > limit || most[1] > limit)) {
            status = check_wide(self, i, err);
            status = status == TR_OK ? find_wrong(self, &self->text, i, err) : status;
        }
    }
    return status;
}

static tr_status check_labels(const tr_windows *self, tr_error *err) {
    int64_t vocabulary = self->options.vocabulary;
    int64_t sign = self->labels.width == 2 ? INT16_MAX : INT32_MAX;
    int64_t limit = vocabulary > 0 ? tr__min_i64(vocabulary - 1, sign) : sign;
    tr_scan scan = tr__scan_begin(&self->labels, true, self->options.data);
    uint32_t most[2];
    tr_status status = tr__scan_file(&scan, 0, most, err);
    bool wrong = most[0] > limit || most[1] > limit;
    return status == TR_OK && wrong ? find_wrong(self, &self->labels, 0, err) : status;
}

tr_status tr__windows_check(const tr_windows *self, tr_error *err) {
    tr_status status = check_ids(self, err);
    return status == TR_OK && self->labelled ? check_labels(self, err) : status;
}

#include "data/sources/dataset.h"
#include "data/sources/npy_header.h"
#include "data/sources/paths.h"
#include "data/sources/scan.h"

#include "base/arguments.h"
#include "base/checked.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/text.h"

#include <tranche/data.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { LOOKED_MAX = 16 << 20, PIECE = 1 << 16 };

// ---- bytes

// How far a scan of the joined files has come.
typedef struct scan {
    int pending;   // bytes of the UTF-8 character that is under way
    uint32_t word; // the bytes of a u32 that is under way,
    int have;      // so many
    bool text;
    int64_t largest_u16, largest_u32;
} scan;

// The bytes that follow a first byte of UTF-8; -1: it is none.
static int followers(unsigned char c) {
    if (c < 0x80) {
        return 0;
    }
    if (c >= 0xc2 && c < 0xe0) {
        return 1;
    }
    if (c >= 0xe0 && c < 0xf0) {
        return 2;
    }
    return c >= 0xf0 && c < 0xf5 ? 3 : -1;
}

static void scan_byte(scan *s, unsigned char c) {
    if (s->pending > 0) {
        s->text = s->text && c >= 0x80 && c < 0xc0;
        s->pending--;
    } else {
        int more = followers(c);
        s->text = s->text && more >= 0 && c != 0;
        s->pending = more > 0 ? more : 0;
    }
    s->word |= (uint32_t)c << (8 * s->have++);
    if (s->have % 2 == 0) {
        int64_t half = s->word >> (s->have == 4 ? 16 : 0);
        s->largest_u16 = tr__max_i64(s->largest_u16, half);
    }
    if (s->have == 4) {
        s->largest_u32 = tr__max_i64(s->largest_u32, s->word);
        s->word = 0;
        s->have = 0;
    }
}

static tr_status scan_file(const tr_file_entry *entry, int64_t limit, char *piece,
                           scan *s, tr_error *err) {
    int file = open(entry->path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return tr_fail(err, TR_DATA, "%s: cannot open: %s", entry->path,
                       strerror(errno));
    }
    tr_status status = TR_OK;
    int64_t end = tr__min_i64(entry->bytes, limit);
    for (int64_t at = 0; at < end && status == TR_OK; at += PIECE) {
        int64_t count = tr__min_i64(PIECE, end - at);
        status = tr__pread(file, entry->path, piece, (size_t)count, at, err);
        for (int64_t i = 0; i < count && status == TR_OK; i++) {
            scan_byte(s, (unsigned char)piece[i]);
        }
    }
    close(file);
    return status;
}

// From the beginning of the first file.
static tr_status look_at_width(const tr_file_entry *entry, tr_survey *out,
                               tr_error *err) {
    enum { UPPER = 15 }; // ids of u32 are below 2^20
    unsigned char raw[PIECE];
    int64_t bytes = tr__min_i64(PIECE, entry->bytes);
    int file = open(entry->path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return tr_fail(err, TR_DATA, "%s: cannot open: %s", entry->path,
                       strerror(errno));
    }
    tr_status status = tr__pread(file, entry->path, raw, (size_t)bytes, 0, err);
    close(file);
    out->id_width = status == TR_OK ? tr__scan_width(raw, bytes / 2, UPPER) : 0;
    return status;
}

static tr_status survey_bytes(const tr_file_list *files, tr_survey *out,
                              tr_error *err) {
    scan s = {.text = true};
    char *piece = tr__calloc(PIECE, 1);
    tr_status status =
        piece ? TR_OK : tr_fail(err, TR_MEMORY, "no memory to look at the data");
    for (size_t i = 0; i < files->count && status == TR_OK; i++) {
        int64_t left = LOOKED_MAX - out->looked;
        status = scan_file(&files->entry[i], left, piece, &s, err);
        out->looked += tr__min_i64(files->entry[i].bytes, left);
    }
    tr__free(piece);
    out->text = s.text;
    out->largest_u16 = s.largest_u16;
    out->largest_u32 = s.largest_u32;
    return status == TR_OK ? look_at_width(&files->entry[0], out, err) : status;
}

int64_t tr_survey_windows(const tr_survey *survey, int width, int64_t n) {
    if (!survey || width < 1 || n < 1) {
        return 0;
    }
    int64_t entries = survey->bytes / width;
    return entries > 0 && n > 0 ? (entries - 1) / n : 0;
}

// ---- tables

static tr_status survey_csv(const char *path, tr_survey *out, tr_error *err) {
    tr_data_options options = {.size = sizeof(tr_data_options),
                               .format = "csv",
                               .paths = &path,
                               .path_count = 1};
    tr_dataset *data = NULL;
    tr_status status = tr_dataset_open(&options, &data, NULL, err);
    if (status == TR_OK) {
        out->rows = tr_dataset_samples(data);
        out->features = tr__dataset_features(data);
        out->classes = tr_dataset_classes(data);
    }
    tr_dataset_destroy(data);
    return status;
}

static tr_status survey_npy(const char *path, tr_survey *out, tr_error *err) {
    tr_npy_array array;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return tr_fail(err, TR_DATA, "%s: cannot open: %s", path, strerror(errno));
    }
    tr_status status = tr__npy_header_read(file, path, &array, err);
    close(file);
    if (status != TR_OK) {
        return status;
    }
    out->dtype = array.dtype;
    out->rank = array.rank;
    memcpy(out->dim, array.dim, sizeof out->dim);
    out->rows = array.rank > 0 ? array.dim[0] : 1;
    out->features = out->rows > 0 ? array.count / out->rows : 0;
    return TR_OK;
}

// ---- any

static bool all_csv(const tr_file_list *files) {
    bool all = files->count > 0;
    for (size_t i = 0; i < files->count; i++) {
        all = all && tr__ends_with(files->entry[i].path, ".csv");
    }
    return all;
}

// Text, where there is some: else all files, which may be ids.
static tr_status list_files(const char *path, tr_file_list *files, tr_error *err) {
    *files = (tr_file_list){.text = true};
    tr_status status = tr__file_list_add(files, path, err);
    if (status == TR_OK && files->count == 0 && files->binary > 0) {
        tr__file_list_clear(files);
        status = tr__file_list_add(files, path, err);
    }
    return status;
}

static tr_status survey(const char *path, tr_survey *out, tr_error *err) {
    tr_file_list files = {0};
    tr_status status = list_files(path, &files, err);
    out->hidden = files.hidden;
    out->binary = files.binary;
    if (status == TR_OK && files.count == 0) {
        status = tr_fail(err, TR_DATA, "%s: no files in this folder", path);
    }
    for (size_t i = 0; i < files.count; i++) {
        out->bytes += files.entry[i].bytes;
    }
    out->files = (int64_t)files.count;
    if (status != TR_OK) {
        goto cleanup;
    }
    if (files.count == 1 && tr__npy_is(files.entry[0].path)) {
        out->kind = TR_SURVEY_NPY;
        status = survey_npy(files.entry[0].path, out, err);
    } else if (all_csv(&files)) {
        out->kind = TR_SURVEY_CSV;
        status = survey_csv(path, out, err);
    } else {
        out->kind = TR_SURVEY_BYTES;
        status = survey_bytes(&files, out, err);
    }
cleanup:
    tr__file_list_clear(&files);
    return status;
}

tr_status tr_data_survey(const char *path, tr_survey *out, tr_error *err) {
    static const char own_name[] = "tr_data_survey";
    static const tr_sized known = {"tr_survey", "TR_SURVEY_INIT", sizeof *out, 0};
    tr_status given = tr__need(path, own_name, "path", err);
    given = given == TR_OK ? tr__need_sized(out, &known, own_name, err) : given;
    if (given != TR_OK) {
        return given;
    }
    tr_survey made = {.size = sizeof made};
    tr_status status = survey(path, &made, err);
    tr__give_sized(out, &made);
    return status;
}

// Looking at data before training on it: what a file or folder is, and how many samples
// it makes.
#ifndef TRANCHE_SURVEY_H
#define TRANCHE_SURVEY_H

#include <tranche/status.h>
#include <tranche/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tr_survey_kind {
    TR_SURVEY_BYTES, // anything: data.format "bytes", or "tokens"
    TR_SURVEY_CSV,
    TR_SURVEY_NPY,
} tr_survey_kind;

enum { TR_SURVEY_RANK_MAX = 8 };

typedef struct tr_survey {
    tr_survey_kind kind;
    int64_t files;
    int64_t bytes;
    // Passed over below a folder: hidden files and folders, and, where text is there,
    // binary files (as data.format "bytes" does).
    int64_t hidden, binary;

    // CSV: rows, columns without the label's, largest label + 1. NPY: the first
    // dimension, and the elements of one row.
    int64_t rows, features, classes;
    tr_dtype dtype; // NPY
    int rank;
    int64_t dim[TR_SURVEY_RANK_MAX];

    // BYTES, of the first `looked` bytes: are they text (UTF-8 without zero bytes)? The
    // largest of them read as little-endian u16 and u32, and of which width ids are, as
    // far as can be seen: 2, 4, 0: it cannot.
    int64_t looked;
    bool text;
    int64_t largest_u16, largest_u32;
    int id_width;
} tr_survey;

// Surveys a file (its name's ".csv" or numpy's magic number tells the format) or a
// folder (all .csv: csv; else the bytes of all files below, joined). TR_DATA: missing,
// unreadable, or a csv or npy file that could not be trained on, with the place.
TR_API tr_status tr_data_survey(const char *path, tr_survey *out, tr_error *err);

// Samples of n positions that bytes (or tokens of `width` bytes) make: windows of n and
// a target after the last.
TR_API int64_t tr_survey_windows(const tr_survey *survey, int width, int64_t n);

#ifdef __cplusplus
}
#endif
#endif

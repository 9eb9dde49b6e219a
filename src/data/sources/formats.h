// The formats: each opens one set of files (training or validation) as a dataset.
#ifndef TR_DATA_SOURCES_FORMATS_H
#define TR_DATA_SOURCES_FORMATS_H

#include "data/sources/paths.h"

#include <tranche/data.h>

#include <stdbool.h>

// One of the two sets of files that the options name.
typedef struct tr_data_files {
    const char *const *paths;
    size_t count;
    const char *labels;     // NULL: none
    const char *paths_key;  // "data.train", for messages
    const char *labels_key; // "data.labels"
    const char *leave_out;  // a folder that is none of them; NULL: none
    bool text;              // of folders, text alone
    const tr_dataset *like; // of the same format: columns have its order; NULL: any
} tr_data_files;

typedef tr_status tr_format_open(const tr_data_options *options,
                                 const tr_data_files *files, tr_dataset **out,
                                 tr_error *err);

tr_format_open tr__bytes_open, tr__tokens_open, tr__text_open, tr__jsonl_open,
    tr__csv_open, tr__npy_open, tr__random_open;

// Lists them. What is passed over is told to whom the options name.
tr_status tr__data_files_list(const tr_data_options *options,
                              const tr_data_files *files, tr_file_list *list,
                              tr_error *err);
// One line to whom the options name, as printf has it.
void tr__data_say(const tr_data_options *options, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Checks of one value, shared by the formats. `path` and `position` (from 0) say where.
// TR_DATA unless `label` is TR_NO_TARGET or in [0, classes); classes 0: any >= 0 that
// fits an I32.
tr_status tr__label_check(int64_t label, int64_t classes, const char *path,
                          int64_t position, tr_error *err);
// TR_DATA unless the features found are as many as the options want; 0: any number.
tr_status tr__features_check(int64_t features, const tr_data_options *options,
                             const char *path, tr_error *err);

#endif

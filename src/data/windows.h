// Text as windows over joined files: sample i is the entries [i*n, i*n + n]; what the
// formats bytes and tokens have in common.
#ifndef TR_DATA_WINDOWS_H
#define TR_DATA_WINDOWS_H

#include "data/formats.h"

typedef struct tr_windows_options {
    int width;           // bytes of an entry: 1, 2, 4, little endian, unsigned
    int64_t length;      // n
    int64_t vocabulary;  // 0: not known
    const char *entries; // "bytes", "tokens"
    const tr_data_options *data;
} tr_windows_options;

tr_status tr__windows_open(const tr_windows_options *options,
                           const tr_data_files *files, tr_dataset **out, tr_error *err);

#endif

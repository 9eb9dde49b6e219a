// Text as windows over joined files: sample i is the entries [i*n, i*n + n]; what the
// formats bytes, tokens and text have in common.
#ifndef TR_DATA_TEXT_WINDOWS_H
#define TR_DATA_TEXT_WINDOWS_H

#include "data/sources/formats.h"

// Entries that were made of the files, in a file of their own, already checked.
typedef struct tr_windows_made {
    const char
        *path;       // the entries begin with the file; what is behind them is not read
    int64_t entries; // how many
    uint64_t hash;   // of them
    const char *about; // what they are of, for people
} tr_windows_made;

typedef struct tr_windows_options {
    int width;           // bytes of an entry: 1, 2, 4, little endian, unsigned
    int64_t length;      // n
    int64_t vocabulary;  // 0: not known
    const char *entries; // "bytes", "tokens"
    const tr_data_options *data;
    const tr_windows_made *made; // NULL: the files themselves are read
} tr_windows_options;

tr_status tr__windows_open(const tr_windows_options *options,
                           const tr_data_files *files, tr_dataset **out, tr_error *err);

#endif

// The largest ids of a file, found by reading all of it.
//
// A file is read once, in large pieces, by a few threads. Beyond a second, lines tell
// how far it has come. What was found in a large file is kept in the user's cache
// folder until the file changes.
#ifndef TR_DATA_SOURCES_SCAN_H
#define TR_DATA_SOURCES_SCAN_H

#include "data/sources/joined.h"
#include "data/sources/tell.h"

#include <tranche/data.h>

#include <stdbool.h>

// A scan of the files of `joined`, whose entries have 1, 2 or 4 bytes.
typedef struct tr_scan {
    const tr_joined *joined;
    bool labels; // entries are signed, and TR_NO_TARGET counts as 0
    tr_tell tell;
    int64_t done; // bytes of the files before
} tr_scan;

tr_scan tr__scan_begin(const tr_joined *joined, bool labels,
                       const tr_data_options *options);
// The largest entry, as an unsigned number, at the file's even and at its odd places.
tr_status tr__scan_file(tr_scan *scan, size_t file, uint32_t most[2], tr_error *err);

// Raises most (as tr__scan_file has it) to the largest of `count` entries at `raw`, of
// which the first is at an even place.
void tr__scan_most(const unsigned char *raw, int width, int64_t count, bool labels,
                   uint32_t most[2]);

// Of which width are ids, as far as 16-bit numbers tell that were read at `raw`? 4:
// every second is at most `high`, and not all others are; 2: most of every second are
// larger; 0: this cannot be told. count: of 16-bit numbers.
int tr__scan_width(const unsigned char *raw, int64_t count, uint32_t high);

#endif

// Windows over joined files from the inside: what reads them and what checks them.
#ifndef TR_DATA_TEXT_WINDOWS_INNER_H
#define TR_DATA_TEXT_WINDOWS_INNER_H

#include "data/sources/joined.h"
#include "data/text/windows.h"

#include <stdbool.h>

typedef struct tr_windows {
    tr_joined text, labels; // labels: closed when there are none
    bool labelled;
    tr_windows_options options;
} tr_windows;

// ids: [count], entries first ...; TR_DATA names the first that is none.
tr_status tr__windows_read_ids(const tr_windows *self, int64_t first, int64_t count,
                               int32_t *ids, tr_error *err);
// targets: [count], labels first ...
tr_status tr__windows_read_labels(const tr_windows *self, int64_t first, int64_t count,
                                  int32_t *targets, tr_error *err);

// Checks all entries and labels: a wrong one would else stop a run in its middle.
// TR_DATA: one is outside of the vocabulary, or ids have another width.
tr_status tr__windows_check(const tr_windows *self, tr_error *err);

#endif

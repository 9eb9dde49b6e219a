// Lifetimes to offsets: where in one block of memory each buffer lies, so that no two
// that live at the same time overlap.
#ifndef TR_PLAN_OFFSETS_H
#define TR_PLAN_OFFSETS_H

#include <tranche/status.h>

#include <stddef.h>
#include <stdint.h>

enum { TR_ALIGNMENT = 64 }; // bytes, of every buffer

typedef struct tr_interval {
    int64_t bytes;       // 0: takes no room
    int32_t first, last; // lives from step `first` to step `last`, both included
    int64_t offset;      // filled in
} tr_interval;

// Largest first, each at the lowest offset where a gap of its time fits. Returns the
// block's bytes in `*total`.
tr_status tr__offsets_assign(tr_interval *items, size_t count, int64_t *total,
                             tr_error *err);

#endif

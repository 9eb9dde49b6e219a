// Lifetimes to offsets: where in one block of memory each buffer lies, so that no two
// that live at the same time overlap.
#ifndef TR_PLAN_UNITS_OFFSETS_H
#define TR_PLAN_UNITS_OFFSETS_H

#include <tranche/status.h>

#include <stddef.h>
#include <stdint.h>

enum { TR_ALIGNMENT = 64 }; // bytes, of every buffer

typedef struct tr_interval {
    int64_t bytes;       // 0: takes no room
    int32_t first, last; // lives from step `first` to step `last`, both included
    int64_t offset;      // filled in
} tr_interval;

// Gives each item the lowest gap of its time, in the best of a few orders, and returns
// the block's bytes in `*total`: the most that lives at one step where lifetimes are
// nested, a little more elsewhere. The same items get the same offsets every time.
// Errors: TR_USAGE when an item or the block is larger than 2^60 bytes, TR_MEMORY.
tr_status tr__offsets_assign(tr_interval *items, size_t count, int64_t *total,
                             tr_error *err);

#endif

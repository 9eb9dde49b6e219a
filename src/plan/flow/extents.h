// Which steps of a sequence have accessed which bytes of a value: its bytes, cut into
// extents that have one history each.
#ifndef TR_PLAN_FLOW_EXTENTS_H
#define TR_PLAN_FLOW_EXTENTS_H

#include "plan/flow/access.h"

// Bytes [first, end): who wrote or added to them last, and who has accessed them since.
// -1: nobody.
typedef struct tr_extent {
    int64_t first, end;
    int32_t writer;
    int32_t reader[TR_STREAMS];
} tr_extent;

// The extents of one value, in order, without gaps. Begins as zeros.
typedef struct tr_extents {
    tr_extent *items;
    size_t count, capacity;
} tr_extents;

// Cuts so that extents *first to *end - 1 are the bytes of the access; `bytes`: of the
// whole value. false: no memory.
bool tr__extents_cut(tr_extents *extents, int64_t bytes, const tr_access *access,
                     size_t *first, size_t *end);
// Extents first to end - 1 become one, written by the step.
void tr__extents_write(tr_extents *extents, size_t first, size_t end, int32_t step);
// Frees an array of `count`; NULL-safe.
void tr__extents_free(tr_extents *extents, size_t count);

#endif

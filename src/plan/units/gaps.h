// What is taken of a block of memory, and when: finds the lowest room that is free for
// some steps without looking at every buffer that lives then.
#ifndef TR_PLAN_UNITS_GAPS_H
#define TR_PLAN_UNITS_GAPS_H

#include <tranche/status.h>

#include <stdint.h>

typedef struct tr_gaps tr_gaps;

// For times 0..times-1; all is free. Errors: TR_MEMORY.
tr_status tr__gaps_create(int32_t times, tr_gaps **out, tr_error *err);
void tr__gaps_destroy(tr_gaps *gaps); // NULL-safe

// The lowest offset from which `bytes` bytes are free from time `first` to time `last`,
// both included.
int64_t tr__gaps_lowest(tr_gaps *gaps, int32_t first, int32_t last, int64_t bytes);
// Takes bytes [begin, end), begin < end, in that time. Errors: TR_MEMORY.
tr_status tr__gaps_take(tr_gaps *gaps, int32_t first, int32_t last, int64_t begin,
                        int64_t end, tr_error *err);
// Ranges of bytes that have been looked at so far: the work done.
int64_t tr__gaps_looks(const tr_gaps *gaps);

#endif

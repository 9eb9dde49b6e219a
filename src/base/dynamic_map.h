// The dynamic map of 8 bits (Dettmers, arXiv 1511.04561), number by number as
// bitsandbytes' create_dynamic_map has it: a code's leading zeros are a power of ten,
// and its other bits are equal steps within it. So its numbers are dense around 0.
#ifndef TR_BASE_DYNAMIC_MAP_H
#define TR_BASE_DYNAMIC_MAP_H

#include <stdbool.h>

enum { TR_DYNAMIC_CODES = 256 };

// value: [TR_DYNAMIC_CODES], ascending, between -1 and 1, or (without signs) 0 and 1.
void tr__dynamic_map_make(bool is_signed, float *value);
// That with signs, made once.
const float *tr__dynamic_map(void);

#endif

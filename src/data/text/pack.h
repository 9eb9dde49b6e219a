// Which documents share a row: best fit decreasing (Johnson et al., "Worst-case
// performance bounds for simple one-dimensional packing algorithms", 1974). The longest
// document goes first, and each into the fullest row that has room for it, as TRL does.
#ifndef TR_DATA_TEXT_PACK_H
#define TR_DATA_TEXT_PACK_H

#include <tranche/status.h>

#include <stdint.h>

typedef struct tr_packing {
    int64_t rows;
    int64_t *first;    // [rows + 1] where each row's documents begin in `document`
    int64_t *document; // [count] row by row, in each the order of their numbers
} tr_packing;

// Packs `count` documents of length [count], each in [1, room], into rows of `room`
// tokens. Rows come in the order of their first documents. A function of the lengths
// alone. TR_MEMORY.
tr_status tr__pack(const int32_t *length, int64_t count, int64_t room, tr_packing *out,
                   tr_error *err);
void tr__packing_free(tr_packing *packing);

#endif

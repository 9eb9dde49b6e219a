// Cells of magnitudes: those that share an exponent and the upper 7 bits of the
// fraction. Cell 0 also has all smaller ones, the last one also all larger ones.
#ifndef TR_OPS_FLAT_PACKED_STATE_CELLS_H
#define TR_OPS_FLAT_PACKED_STATE_CELLS_H

#include "ops/flat/packed_state/packed_state.h"

#include <string.h>

enum { TR_CELL_SHIFT = 16, TR_CELL_FIRST = (127 - 24) << 7 };

static inline int tr__cell_of(uint32_t bits) {
    int cell = (int)((bits & 0x7fffffffU) >> TR_CELL_SHIFT) - TR_CELL_FIRST;
    cell = cell > 0 ? cell : 0;
    return cell < TR_STATE_CELLS ? cell : TR_STATE_CELLS - 1;
}

// Its smallest magnitude, but for those that are smaller than all cells'.
static inline float tr__cell_begin(int cell) {
    uint32_t bits = (uint32_t)(cell + TR_CELL_FIRST) << TR_CELL_SHIFT;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// The nearest code to a value, of two as near the lower one.
static inline uint8_t tr__nearest_code(const tr_state_codes *codes, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint8_t least = codes->least[bits >> 31][tr__cell_of(bits)];
    return (uint8_t)(least + (value > codes->bound[least]));
}

#endif

// States of optimizers in other types than f32: unpacked for an update, and packed
// again.
//
// In 8 bits, a block of 256 elements is an f32 scale, the largest magnitude among them,
// and a byte for each: of the numbers of the dynamic map (base/dynamic_map.h), times
// the scale, the nearest one's. What is never negative has the map without signs.
#ifndef TR_OPS_FLAT_PACKED_STATE_PACKED_STATE_H
#define TR_OPS_FLAT_PACKED_STATE_PACKED_STATE_H

#include "base/dynamic_map.h"
#include "ops/optimizers/state_types.h"

#include <stdint.h>

enum {
    TR_STATE_BLOCK = 256,                      // elements that share a scale
    TR_STATE_BLOCK_BYTES = 4 + TR_STATE_BLOCK, // the scale, then the codes
    TR_STATE_CODES = TR_DYNAMIC_CODES,         // values of a map
    TR_STATE_CELLS = 24 * 128 + 1,             // of magnitudes from 2^-24 to 1
};

// How values of 8 bits are found. No cell has more than one boundary of codes.
typedef struct tr_state_codes {
    float value[TR_STATE_CODES]; // ascending
    float bound[TR_STATE_CODES]; // up to bound[i], code i is the nearest
    // By sign and cell of a value: the least code that it may have.
    uint8_t least[2][TR_STATE_CELLS];
} tr_state_codes;

// For TR_STATE_I8 or TR_STATE_U8.
void tr__state_codes(tr_state_type type, tr_state_codes *out);

// Blocks of 8 bits, by one thread; the same bits from every implementation. The last
// block may have fewer elements, count <= TR_STATE_BLOCK. block: [TR_STATE_BLOCK_BYTES]
typedef struct tr_state_kernel {
    // `keeps`: its scale is what it was.
    void (*pack)(const tr_state_codes *codes, const float *values, int64_t count,
                 bool keeps, unsigned char *block);
    void (*unpack)(const tr_state_codes *codes, const unsigned char *block,
                   int64_t count, float *values);
} tr_state_kernel;
const tr_state_kernel *tr__state_kernel(int level); // of tr_target; -1: plain C

// `count` elements of a state from a whole block on. codes: of its type; not read
// where it has none.
void tr__state_pack(const tr_state_kernel *kernel, tr_state_type type,
                    const tr_state_codes *codes, const float *values, int64_t count,
                    bool keeps, void *state);
void tr__state_unpack(const tr_state_kernel *kernel, tr_state_type type,
                      const tr_state_codes *codes, const void *state, int64_t count,
                      float *values);

#endif

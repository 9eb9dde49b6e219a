// The types in which states of optimizers are kept: one row of a table each.
#ifndef TR_OPS_OPTIMIZERS_STATE_TYPES_H
#define TR_OPS_OPTIMIZERS_STATE_TYPES_H

#include <tranche/extend/op.h>
#include <tranche/extend/state.h>

// `elements` elements in a row take `bytes` bytes, and are read and written together.
typedef struct tr_block_size {
    int64_t elements, bytes;
} tr_block_size;

// Bytes of so many elements: of whole blocks.
static inline int64_t tr__packed_bytes(tr_block_size packing, int64_t count) {
    return (count + packing.elements - 1) / packing.elements * packing.bytes;
}

typedef struct tr_state_format {
    const char *name; // "f32"
    tr_dtype dtype;   // of an operand that is such a state: of what it consists
    tr_block_size packing;
} tr_state_format;

const tr_state_format *tr__state_format(tr_state_type type);

// Is a state of the update in another type than f32?
struct tr_update; // ops/optimizers/optimizer.h
bool tr__update_is_packed(const struct tr_update *update);

#endif

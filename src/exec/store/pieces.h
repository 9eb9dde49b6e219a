// Parts of flat buffers, and how the host gets to see them: as they lie, or by way of
// the exchange, a buffer on the host (tr_plan.exchange).
#ifndef TR_EXEC_STORE_PIECES_H
#define TR_EXEC_STORE_PIECES_H

#include "exec/walk.h"

// Whole blocks of a part of a flat buffer.
typedef struct tr_blocks {
    const tr_flat *flat;
    tr_part part;
    int64_t first, count; // elements of the flat buffer
    int64_t element;      // of them the one that is asked for
} tr_blocks;

typedef enum tr_direction { TR_TO_HOST, TR_FROM_HOST } tr_direction;

// ---- pieces.c
// A parameter's values (state -1) or an optimizer state.
const tr_flat_range *tr__range_of(const tr_executor *ex, int param, int state);
// How an optimizer state of it is kept. Is the piece of one in another type than f32?
const tr_part_row *tr__state_of(const tr_executor *ex, int param, int state);
bool tr__is_packed(const tr_executor *ex, const tr_piece *piece);
// Is it in the memory of a discrete device?
bool tr__is_on_device(const tr_executor *ex, const tr_flat_range *range);
// Or on NVMe? Then the host sees it only through the exchange.
bool tr__is_away(const tr_executor *ex, const tr_flat_range *range);

// ---- device.c
// Between the device and the host.
tr_status tr__device_copy(const tr_executor *ex, const void *from, void *to,
                          int64_t bytes, tr_error *err);
// ---- blocks.c
// Between the file and memory.
tr_status tr__move_blocks(const tr_executor *ex, const tr_blocks *b, void *memory,
                          tr_direction way, tr_error *err);
// ---- borrow.c
// What the masters of these blocks are rounded to, into the file, by way of `rounded`.
tr_status tr__write_copy(const tr_executor *ex, tr_blocks b, const float *masters,
                         void *rounded, tr_error *err);

// ---- rounding.c
// Elements of one type as those of another; one of the two is f32, and one has 16 bits.
void tr__convert(const tr_executor *ex, tr_dtype type, const void *from, int64_t count,
                 tr_dtype as, void *to);

#endif

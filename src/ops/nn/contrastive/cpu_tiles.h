// The tiles of logits that the contrastive loss works through, for kernel files: some
// texts that ask by some candidates, so that there are never T x T logits.
#ifndef TR_OPS_NN_CONTRASTIVE_CPU_TILES_H
#define TR_OPS_NN_CONTRASTIVE_CPU_TILES_H

#include "backend/cpu/matmul.h"
#include "ops/nn/contrastive/operands.h"

typedef struct tr_pair_tiles {
    int64_t rows;      // texts of a tile that ask
    int64_t columns;   // candidates of a tile
    int64_t width;     // C
    int workers;       // threads that copy
    tr_matmul *logits; // [rows, columns] = asks [rows, C] by candidates [columns, C]
    tr_matmul *dasks;  // [rows, C] += dlogits by candidates; NULL without gradients
    tr_matmul *dtile;  // [columns, C] = dlogits^T by asks; likewise
    // Offsets in the workspace of what tr_pair_tile has.
    size_t asks, tile, slopes, groups, places, numbers, partners, totals, dasks_at,
        dtile_at, scratch, bytes;
} tr_pair_tiles;

// The tile at hand. A row that asks nothing, and a column without a candidate, is
// zeros.
typedef struct tr_pair_tile {
    float *asks;      // [rows, C]
    float *tile;      // [columns, C] candidates
    float *logits;    // [rows, columns], then their gradients
    int64_t *group;   // [columns] of the candidate, in the pool
    int64_t *place;   // [columns] of the candidate in its group
    int64_t *number;  // [columns] of the candidate (tr__contrastive_is_equal)
    int64_t *partner; // [columns]
    double *totals;   // [rows, TR_PAIR_TOTALS]
    float *dasks;     // [rows, C]
    float *dtile;     // [columns, C]
    void *scratch;    // of the products
    int64_t there, columns_there;
} tr_pair_tile;

// Of a row, over the tiles so far: the largest logit, the sum of e^(logit - top), the
// logit of its own text, and whether none was larger.
enum { TR_PAIR_TOP, TR_PAIR_SUM, TR_PAIR_OWN, TR_PAIR_TOTALS };

// backward: with the products of gradients. Freed by tr__pair_tiles_release.
tr_status tr__pair_tiles_create(const tr_op_desc *desc, bool backward,
                                tr_pair_tiles **out, tr_error *err);
// tr_kernel.workspace and tr_kernel.release where the kernel's state is these tiles.
size_t tr__pair_tiles_workspace(const tr_op_desc *desc, const void *state);
void tr__pair_tiles_release(void *state); // NULL-safe
tr_pair_tile tr__pair_tile(const tr_pair_tiles *tiles, void *workspace);

// Takes the texts of the groups [first, first + rows) that ask.
void tr__pair_tile_ask(const tr_pair_tiles *tiles, const tr_contrastive_batch *b,
                       const tr_contrastive_side *side, int64_t first,
                       tr_pair_tile *tile);
// Takes the next candidates, from number *next of the side on; *next becomes that
// behind them. false: there are none any more.
bool tr__pair_tile_next(const tr_pair_tiles *tiles, const tr_contrastive_batch *b,
                        const tr_contrastive_side *side, int64_t *next,
                        tr_pair_tile *tile);

#endif

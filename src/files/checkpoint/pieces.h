// The pieces of a checkpoint's tensors: which belong together, and what files hold.
#ifndef TR_FILES_CHECKPOINT_PIECES_H
#define TR_FILES_CHECKPOINT_PIECES_H

#include "files/checkpoint/checkpoint.h"

// The type of the elements in memory, and in the file.
tr_dtype tr__piece_dtype(const tr_checkpoint_tensor *piece);
tr_dtype tr__piece_stored(const tr_checkpoint_tensor *piece);

// Bytes in the file: of one element, of the piece, and of the whole tensor.
int64_t tr__piece_element(const tr_checkpoint_tensor *piece);
int64_t tr__piece_bytes(const tr_checkpoint_tensor *piece);
int64_t tr__piece_tensor_bytes(const tr_checkpoint_tensor *piece);

// first_of: [count], of each piece the first one of its tensor; order: [count], for the
// while.
void tr__pieces_firsts(const tr_checkpoint_tensor *pieces, size_t count, size_t *order,
                       size_t *first_of);

#endif

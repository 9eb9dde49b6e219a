// Checks of lists of tensors, and how the rows of a micro-batch lie in memory.
//
// A slot holds the tensors of one micro-batch in the order of the model's list. Each
// begins at a multiple of TR_SLOT_ALIGNMENT.
#ifndef TR_BASE_BATCH_H
#define TR_BASE_BATCH_H

#include <tranche/status.h>
#include <tranche/types.h>

enum { TR_SLOT_ALIGNMENT = 64 }; // bytes

// TR_USAGE: the list breaks a rule of tranche/batch.h. `owner` begins the message:
// "a dataset", "a model".
tr_status tr__batch_check(const tr_batch_tensors *batch, const char *owner,
                          tr_error *err);

// The list with I32 where `batch` has I64: what a dataset has of what a source
// delivers.
tr_batch_tensors tr__batch_narrow(const tr_batch_tensors *batch);

// As tr_batch_masked, of pairs of spans: "next_sentence_label" I32 [1], 0 where the
// second follows the first, else 1; and what the loss of the pair weighs, F32 [1].
tr_batch_tensors tr__batch_masked_pairs(int64_t length);

// A target that the feed fills (data/order/feed.h), by this name.
#define TR_LOSS_WEIGHTS "loss_weights"

// A tensor with the batch's dimension, TR_BATCH, before those of the sample.
tr_tensor_desc tr__batch_desc(const tr_batch_tensor *tensor);

// Where tensor `index` begins in a slot of m rows, in bytes; with `index` one past the
// last, the bytes of the slot. -1: they cannot be counted.
int64_t tr__batch_offset(const tr_batch_tensors *batch, int64_t rows, int index);

// Where a data set with the list `data` writes the rows from `row` on in a slot of
// `rows` rows that is laid out by the list `model`: a pointer for each tensor of
// `data`. The lists have the same names.
void tr__batch_rows(const tr_batch_tensors *data, const tr_batch_tensors *model,
                    void *slot, int64_t rows, int64_t row,
                    void *out[TR_BATCH_TENSORS_MAX]);

// Fills rows [first, rows) of a slot as missing samples.
void tr__batch_pad(const tr_batch_tensors *batch, void *slot, int64_t rows,
                   int64_t first);

#endif

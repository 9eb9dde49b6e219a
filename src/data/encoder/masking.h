// Which tokens of a row are masked.
#ifndef TR_DATA_ENCODER_MASKING_H
#define TR_DATA_ENCODER_MASKING_H

#include "data/text/text_tokenizer.h"

#include <tranche/data.h>

// What a token of a row is to masking.
typedef enum tr_mask_role {
    TR_MASK_NEVER = -1, // a special token, or padding
    TR_MASK_BEGINS = 0, // a word
    TR_MASK_GOES_ON = 1,
} tr_mask_role;

typedef struct tr_masker {
    tr_masking how;
    int32_t mask;       // the token that stands for a masked one
    int64_t vocabulary; // random tokens are below
    uint64_t seed;
} tr_masker;

// As the options say, with the mask token of the tokenizer. TR_DATA: it has none.
tr_status tr__masker_begin(const tr_data_options *options, const tr_text_tokenizer *by,
                           tr_masker *out, tr_error *err);

// Masks ids [length] of a row in an epoch, in place. labels: [length], the role of each
// token, becomes the token that was there, where it was chosen; else TR_NO_TARGET.
void tr__mask_row(const tr_masker *masker, int64_t epoch, int64_t row, int64_t length,
                  int32_t *ids, int32_t *labels);

#endif

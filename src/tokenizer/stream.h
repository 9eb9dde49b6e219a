// A text that comes in blocks: each is encoded as far as it can be cut, so that the ids
// of all blocks together are those of the whole.
#ifndef TR_TOKENIZER_STREAM_H
#define TR_TOKENIZER_STREAM_H

#include <tranche/tokenizer.h>

typedef struct tr_block {
    const char *text;
    size_t bytes;
    bool begins, ends; // the whole text begins, ends with it
} tr_block;

// Appends the ids of the first *used bytes: all of a block that ends the text, none of
// one that cannot be cut (it needs more text). What is left begins the next block.
tr_status tr__tokenizer_block(const tr_tokenizer *tokenizer, const tr_block *block,
                              const tr_encode_options *options, int threads,
                              tr_token_ids *ids, size_t *used, tr_error *err);

#endif

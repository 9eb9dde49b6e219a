// Texts that come in blocks: each is encoded as far as it can be cut, so that the ids
// of all its blocks together are those of the whole.
#ifndef TR_TEXT_TOKENIZER_STREAM_H
#define TR_TEXT_TOKENIZER_STREAM_H

#include <tranche/data.h>

typedef struct tr_block {
    const char *text;
    size_t bytes;
    bool begins, ends;     // a whole text begins, ends with it
    const int32_t *before; // a token that goes ahead of a text that begins; NULL: none
} tr_block;

// What encodes blocks, one call after the other. `encoder` and what follows begin as
// zeros, and are released by tr__text_stream_release.
typedef struct tr_text_stream {
    const tr_tokenizer *tokenizer;
    tr_encode_options options;
    int threads;          // 0: all cores
    tr_encoder **encoder; // [encoder_count] of each thread: they remember words
    int encoder_count;
} tr_text_stream;

// Appends the ids of blocks [count], in their order. All but the last end their texts.
// *used: how many bytes of the last one have ids now: all where it ends its text, none
// where it cannot be cut (it needs more text). What is left begins the next block.
tr_status tr__text_stream_encode(tr_text_stream *stream, const tr_block *block,
                                 size_t count, tr_token_ids *ids, size_t *used,
                                 tr_error *err);
void tr__text_stream_release(tr_text_stream *stream);

// TR_USAGE: options of an unknown size, handed to the public function. NULL is none.
tr_status tr__encode_options_check(const tr_encode_options *options,
                                   const char *function, tr_error *err);

#endif

// The tokenizer of a data set of text, and the token that ends a text.
#ifndef TR_DATA_TEXT_TEXT_TOKENIZER_H
#define TR_DATA_TEXT_TEXT_TOKENIZER_H

#include <tranche/data.h>

#include <limits.h>

typedef struct tr_text_tokenizer { // zero-initialized: closed
    char file[PATH_MAX], folder[PATH_MAX];
    tr_tokenizer *tokenizer;
    int32_t eos; // -1: none
} tr_text_tokenizer;

// Opens what the options name. TR_USAGE: they name none; TR_DATA: it is damaged, has
// more tokens than the vocabulary, or not the token that data.eos_token names. On
// failure there is nothing to close.
tr_status tr__text_tokenizer_open(const tr_data_options *options,
                                  tr_text_tokenizer *out, tr_error *err);
void tr__text_tokenizer_close(tr_text_tokenizer *tokenizer);

#endif

// Whole documents for masked models: what is longer than a row is cut into pieces, each
// with the special tokens around it.
#ifndef TR_DATA_ENCODER_DOCUMENTS_H
#define TR_DATA_ENCODER_DOCUMENTS_H

#include "data/encoder/text_list.h"

// Of a tokenizer: how the tokens that go on with a word are known.
typedef enum tr_word_form {
    TR_WORDS_UNKNOWN, // each token is a word
    TR_WORDS_PIECE,   // "##ing" goes on
    TR_WORDS_SPACE,   // all that does not begin with a space (as written in the file)
} tr_word_form;

tr_word_form tr__word_form(const tr_tokenizer *tokenizer);

// Adds the pieces of a document: the types of their tokens are roles (masking.h), as a
// byte. TR_DATA: rows are too short for the special tokens and one more. TR_MEMORY.
tr_status tr__document_add(tr_text_reading *reading, const char *text, size_t bytes,
                           tr_text_list *list, tr_error *err);

#endif

// What a tokenizer is made of, in the order in which a text passes through it.
#ifndef TR_TEXT_TOKENIZER_TOKENIZER_H
#define TR_TEXT_TOKENIZER_TOKENIZER_H

#include "text/tokenizer/added.h"
#include "text/tokenizer/bpe.h"
#include "text/tokenizer/cache.h"
#include "text/tokenizer/decoder.h"
#include "text/tokenizer/normalizer.h"
#include "text/tokenizer/pretokenizer.h"
#include "text/tokenizer/template.h"
#include "text/tokenizer/wordpiece.h"

#include <tranche/data.h>

typedef enum tr_model_kind { TR_TOKENS_BPE, TR_TOKENS_WORDPIECE } tr_model_kind;

struct tr_tokenizer {
    tr_unicode unicode;
    tr_added added;
    tr_normalizer normalizer;
    tr_pretokenizer pretokenizer;
    tr_model_kind model;
    tr_bpe bpe;
    tr_wordpiece wordpiece;
    tr_template template;
    tr_decoder decoder;
    tr_vocabulary vocabulary, extra; // the model's tokens; added ones that it lacks
    bool cuts_pieces; // BPE: a piece can be cut where no token joins its neighbours
    bool cuts_text;   // a text can be cut between a letter and a blank
    bool cuts_lines;  // and between a letter and a line end
    uint32_t blank;   // not 0: only where no token joins the letter and this character
};

struct tr_encoder {
    const tr_tokenizer *tokenizer;
    tr_cache_entry *cache; // [1 << TR_CACHE_BITS]
    tr_merger merger;
    tr_normalized normalized;
    tr_words words;
    tr_text repaired;
};

static inline tr_tokens tr__tokenizer_tokens(const tr_tokenizer *tokenizer) {
    return (tr_tokens){(tr_vocabulary *)&tokenizer->vocabulary,
                       (tr_vocabulary *)&tokenizer->extra};
}

// From the text of a tokenizer.json; `file` is for messages.
tr_status tr__tokenizer_parse(const char *file, const char *text, size_t bytes,
                              tr_tokenizer **out, tr_error *err);

// A part of a text that was cut. begins: it is the first part.
tr_status tr__encode_part(tr_encoder *encoder, const unsigned char *text, size_t bytes,
                          bool begins, bool specials, tr_token_ids *ids, tr_error *err);
// A place of the text, at `from` > 0 or behind, at which it can be cut without changing
// its ids; `bytes` where there is none.
size_t tr__tokenizer_cut(const tr_tokenizer *tokenizer, const unsigned char *text,
                         size_t bytes, size_t from);
// The last such place, 0 where there is none.
size_t tr__tokenizer_last_cut(const tr_tokenizer *tokenizer, const unsigned char *text,
                              size_t bytes);
// Finds out where such places may be.
void tr__tokenizer_find_cuts(tr_tokenizer *tokenizer);

#endif

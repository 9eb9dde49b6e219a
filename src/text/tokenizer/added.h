// Added tokens: texts that are tokens wherever they stand, cut out before anything
// else.
#ifndef TR_TEXT_TOKENIZER_ADDED_H
#define TR_TEXT_TOKENIZER_ADDED_H

#include "text/tokenizer/normalizer.h"
#include "text/tokenizer/trie.h"
#include "text/tokenizer/vocabulary.h"

// Of one token, and of what the normalizer makes of it: they bound the work that a byte
// of text takes.
enum { TR_ADDED_BYTES_MAX = 1024, TR_ADDED_NORMALIZED_MAX = 4 * TR_ADDED_BYTES_MAX };

typedef struct tr_added_token {
    int32_t id;
    size_t bytes;       // of its content
    unsigned char last; // of its content
    tr_text_span shown; // in tr_added.shown: what decoding shows of a normalized token
    bool special, single_word, lstrip, rstrip, normalized;
} tr_added_token;

// Those that are looked for in the text as it is, or in the normalized text.
typedef struct tr_added_set {
    tr_trie trie; // to places of tr_added.token
    bool begins[256];
    bool any;
} tr_added_set;

typedef struct tr_added {
    tr_added_token *token;
    size_t count, capacity;
    tr_added_set raw, normalized;
    tr_text shown;
} tr_added;

// Reads the array and gives the tokens that the model lacks to `tokens->extra`.
tr_status tr__added_parse(const tr_node *node, const tr_normalizer *normalizer,
                          const tr_tokens *tokens, tr_added *added, tr_error *err);
void tr__added_release(tr_added *added);

// A piece of text: a token (id 0 or more), or what lies between (-1).
typedef struct tr_text_piece {
    size_t begin, end;
    int32_t id;
} tr_text_piece;

// A walk through a text, piece by piece. It begins with everything zero but its first
// six members. specials: whether special tokens are taken for such.
typedef struct tr_added_walk {
    const tr_added *added;
    const tr_added_set *set;
    const uint32_t *flags;
    const unsigned char *text;
    size_t bytes;
    bool specials;
    size_t done, searched; // given so far; where to look on
    tr_text_piece pending; // a token found behind the piece that was given
    bool has_pending;
} tr_added_walk;
// The next piece; false at the end of the text.
bool tr__added_next(tr_added_walk *walk, tr_text_piece *piece);

#endif

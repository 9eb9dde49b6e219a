// WordPiece: the longest token at the begin of a word, then the longest one that goes
// on, and so on; a word for which that fails is unknown as a whole.
#ifndef TR_TEXT_TOKENIZER_WORDPIECE_H
#define TR_TEXT_TOKENIZER_WORDPIECE_H

#include "text/tokenizer/ids.h"
#include "text/tokenizer/trie.h"
#include "text/tokenizer/vocabulary.h"

typedef struct tr_wordpiece {
    tr_trie trie;
    int32_t root, inner; // where a word begins, and where its later parts do (-1: none)
    int32_t unk;
    int64_t characters_max; // of a word; a longer one is unknown
} tr_wordpiece;

tr_status tr__wordpiece_parse(const tr_node *node, const tr_vocabulary *vocabulary,
                              tr_wordpiece *model, tr_error *err);
void tr__wordpiece_release(tr_wordpiece *model);
// Appends the ids of a word. false: no memory.
bool tr__wordpiece_word(const tr_wordpiece *model, const unsigned char *word,
                        size_t bytes, tr_token_ids *ids);

#endif

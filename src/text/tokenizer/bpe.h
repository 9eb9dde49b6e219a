// Byte-pair encoding: a word's symbols are merged, the pair of the lowest rank first,
// until no pair is in the table of merges.
#ifndef TR_TEXT_TOKENIZER_BPE_H
#define TR_TEXT_TOKENIZER_BPE_H

#include "text/tokenizer/ids.h"
#include "text/tokenizer/vocabulary.h"

enum { TR_NO_RANK = INT32_MAX };

typedef struct tr_merge {
    uint64_t key; // left << 32 | right
    int32_t rank; // TR_NO_RANK: an empty place
    int32_t id;   // of the merged token
} tr_merge;

// Which neighbours occur within tokens: elsewhere no merge crosses, and a text can be
// cut without changing its tokens. Characters are hashed, so a few more may be taken
// for such neighbours.
enum { TR_JOIN_BITS = 20 };
typedef struct tr_joins {
    uint64_t *bit; // [1 << (TR_JOIN_BITS - 6)]
} tr_joins;

typedef struct tr_bpe {
    const tr_vocabulary *vocabulary;
    tr_merge *merge; // [mask + 1], open addressing
    size_t mask;
    int32_t *product; // [merges]: the merged token of each rank
    int32_t *first;   // [256 * 256]: the ranks of pairs of bytes; bytes alone
    tr_joins joins;
    // Texts are bytes (each a symbol), or characters.
    bool bytes, all_bytes; // each byte has a symbol
    tr_vocabulary raw;     // bytes alone: the tokens as the bytes they stand for
    int32_t symbol[256];   // of a byte, or of an ASCII character; -1: none
    int32_t fallback[256];
    bool byte_fallback; // all of `fallback` are there
    bool fuse_unk, ignore_merges;
    int32_t unk; // -1: none, then unknown characters vanish
    char *prefix, *suffix;
    size_t prefix_bytes, suffix_bytes;
} tr_bpe;

// byte_level: the text comes as ByteLevel's characters. The model then works on bytes
// where it can (bpe->bytes), and what comes before needs not make those characters.
tr_status tr__bpe_parse(const tr_node *node, const tr_vocabulary *vocabulary,
                        bool byte_level, tr_bpe *bpe, tr_error *err);
void tr__bpe_release(tr_bpe *bpe);

// May the text not be cut between these two bytes or characters?
static inline bool tr__joins_has(const tr_joins *joins, uint32_t left, uint32_t right) {
    uint64_t hash = ((uint64_t)left << 32 | right) * 0x9e3779b97f4a7c15u;
    size_t place = hash >> (64 - TR_JOIN_BITS);
    return joins->bit[place >> 6] >> (place & 63) & 1;
}

// What merging takes; belongs to one thread.
typedef struct tr_merger {
    int32_t *id, *rank, *before, *after; // [capacity]
    uint64_t *heap;                      // [heap_capacity]
    size_t capacity, heap_count, heap_capacity;
    tr_text mapped; // a symbol with its prefix or suffix
} tr_merger;

void tr__merger_release(tr_merger *merger);
// Appends the ids of a word. false: no memory.
bool tr__bpe_word(const tr_bpe *bpe, tr_merger *merger, const unsigned char *word,
                  size_t bytes, tr_token_ids *ids);
// Can words be cut at all? Not where a character may vanish or fuse with the next one.
static inline bool tr__bpe_cuts(const tr_bpe *bpe) {
    bool known = bpe->bytes ? bpe->all_bytes
                            : bpe->byte_fallback || (bpe->unk >= 0 && !bpe->fuse_unk);
    return known && !bpe->prefix_bytes && !bpe->suffix_bytes;
}
// Where the word can be cut without changing its ids, from `from` > 0 on; `bytes`:
// nowhere.
size_t tr__bpe_cut(const tr_bpe *bpe, const unsigned char *word, size_t bytes,
                   size_t from);
// The rank of the pair, TR_NO_RANK: not in the table.
static inline int32_t tr__bpe_rank(const tr_bpe *bpe, int32_t left, int32_t right) {
    uint64_t key = (uint64_t)left << 32 | (uint32_t)right;
    size_t i = (key * 0x9e3779b97f4a7c15u) >> 32 & bpe->mask;
    while (bpe->merge[i].key != key && bpe->merge[i].rank != TR_NO_RANK) {
        i = (i + 1) & bpe->mask;
    }
    return bpe->merge[i].rank;
}

#endif

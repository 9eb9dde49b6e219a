// Byte strings with a number each, found by the longest that stands at a place.
#ifndef TR_TEXT_TOKENIZER_TRIE_H
#define TR_TEXT_TOKENIZER_TRIE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tr_trie_edge {
    uint64_t key; // (node + 1) << 8 | byte; 0: empty
    int32_t node;
} tr_trie_edge;

typedef struct tr_trie { // zero-initialized: empty
    tr_trie_edge *edge;  // [mask + 1], open addressing
    int32_t *value;      // [nodes], -1: no string ends here
    size_t mask, edges, nodes, capacity;
} tr_trie;

// value: 0 or more; the last one of equal strings counts. false: no memory.
bool tr__trie_add(tr_trie *trie, const unsigned char *bytes, size_t count,
                  int32_t value);
void tr__trie_release(tr_trie *trie);

// The node below `node` (the root is 0), -1: there is none.
static inline int32_t tr__trie_step(const tr_trie *trie, int32_t node,
                                    unsigned char byte) {
    uint64_t key = (uint64_t)(node + 1) << 8 | byte;
    for (size_t i = (key * 0x9e3779b97f4a7c15u) >> 32 & trie->mask;;
         i = (i + 1) & trie->mask) {
        if (trie->edge[i].key == key) {
            return trie->edge[i].node;
        }
        if (trie->edge[i].key == 0) {
            return -1;
        }
    }
}

// The value of the longest string at the begin of text, -1: none; *length: its bytes.
int32_t tr__trie_longest(const tr_trie *trie, int32_t root, const unsigned char *text,
                         size_t bytes, size_t *length);

#endif

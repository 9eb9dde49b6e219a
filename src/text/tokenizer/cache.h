// A bounded memory of words and their ids: a word of up to 32 bytes is looked up before
// a model works on it. Each place holds one word, the last one that came to it.
#ifndef TR_TEXT_TOKENIZER_CACHE_H
#define TR_TEXT_TOKENIZER_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { TR_CACHE_BITS = 15, TR_CACHE_WORD = 32, TR_CACHE_IDS = 7 };

// A word's bytes, so that equal keys are equal words: the first and the last bytes,
// which overlap where there are fewer, and how many there are.
typedef struct tr_cache_key {
    uint64_t part[4];
} tr_cache_key;

typedef struct tr_cache_entry { // 64 bytes: a line of the processor's cache
    tr_cache_key key;
    uint8_t bytes; // 0: empty
    uint8_t count;
    int32_t id[TR_CACHE_IDS];
} tr_cache_entry;

static inline uint64_t tr__cache_load8(const unsigned char *from) {
    uint64_t word;
    memcpy(&word, from, sizeof word);
    return word;
}

static inline uint64_t tr__cache_load_short(const unsigned char *from, size_t bytes) {
    if (bytes >= 4) {
        uint32_t first, last;
        memcpy(&first, from, 4);
        memcpy(&last, from + bytes - 4, 4);
        return (uint64_t)last << 32 | first;
    }
    return (uint64_t)from[0] | (uint64_t)from[bytes / 2] << 8 |
           (uint64_t)from[bytes - 1] << 16;
}

// bytes: 1 to TR_CACHE_WORD.
static inline tr_cache_key tr__cache_key(const unsigned char *word, size_t bytes) {
    tr_cache_key key = {{0}};
    if (bytes < 8) {
        key.part[0] = tr__cache_load_short(word, bytes);
        return key;
    }
    key.part[0] = tr__cache_load8(word);
    key.part[1] = tr__cache_load8(word + bytes - 8);
    if (bytes > 16) {
        key.part[2] = tr__cache_load8(word + 8);
        key.part[3] = tr__cache_load8(word + bytes - 16);
    }
    return key;
}

static inline uint64_t tr__cache_mix(uint64_t a, uint64_t b) {
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

// The word's place in `entry`, [1 << TR_CACHE_BITS].
static inline size_t tr__cache_place(const tr_cache_key *key, size_t bytes) {
    uint64_t hash = tr__cache_mix(key->part[0] ^ 0x9e3779b97f4a7c15u,
                                  key->part[1] ^ 0xe7037ed1a0b428dbu ^ bytes);
    if (bytes > 16) {
        hash ^= tr__cache_mix(key->part[2] ^ 0x8ebc6af09c88c6e3u,
                              key->part[3] ^ 0x589965cc75374cc3u);
    }
    return hash >> 20 & ((1u << TR_CACHE_BITS) - 1);
}

static inline bool tr__cache_holds(const tr_cache_entry *entry, const tr_cache_key *key,
                                   size_t bytes) {
    uint64_t different = 0;
    for (int i = 0; i < 4; i++) {
        different |= entry->key.part[i] ^ key->part[i];
    }
    return entry->bytes == bytes && different == 0;
}

#endif

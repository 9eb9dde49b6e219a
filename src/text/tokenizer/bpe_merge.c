// Merging. A short word is searched for its lowest pair anew each time; a long one has
// a heap of its pairs, so that no word takes quadratic time.
#include "text/tokenizer/bpe.h"

#include <string.h>

enum { SCAN_MAX = 96 }; // symbols of a short word

void tr__merger_release(tr_merger *m) {
    tr__free(m->id);
    tr__free(m->rank);
    tr__free(m->before);
    tr__free(m->after);
    tr__free(m->heap);
    tr__text_release(&m->mapped);
    *m = (tr_merger){0};
}

static bool reserve(tr_merger *m, size_t count) {
    int32_t **arrays[] = {&m->id, &m->rank, &m->before, &m->after};
    size_t capacity = m->capacity;
    if (count <= m->capacity) {
        return true;
    }
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        capacity = m->capacity;
        if (!tr__grow((void **)arrays[i], &capacity, count, sizeof **arrays[i])) {
            return false;
        }
    }
    m->capacity = capacity;
    return true;
}

// The symbol of a character with what the model adds to it; -1: not in the vocabulary.
static int32_t find_symbol(const tr_bpe *bpe, tr_merger *m, const unsigned char *at,
                           size_t length, bool first, bool last) {
    bool prefixed = !first && bpe->prefix_bytes, suffixed = last && bpe->suffix_bytes;
    if (!prefixed && !suffixed) {
        return length == 1 ? bpe->symbol[*at]
                           : tr__vocabulary_find(bpe->vocabulary, at, length);
    }
    m->mapped.count = 0; // a failure stays until the word's end
    tr__text_add(&m->mapped, bpe->prefix, prefixed ? bpe->prefix_bytes : 0);
    tr__text_add(&m->mapped, at, length);
    tr__text_add(&m->mapped, bpe->suffix, suffixed ? bpe->suffix_bytes : 0);
    return tr__vocabulary_find(bpe->vocabulary, m->mapped.bytes, m->mapped.count);
}

// Characters to symbols; unknown ones to the tokens of their bytes or to `unk`, which
// stands once for a run where they are fused. Returns how many symbols.
static size_t character_symbols(const tr_bpe *bpe, tr_merger *m,
                                const unsigned char *word, size_t bytes) {
    size_t count = 0, length;
    bool unknown = false; // an `unk` waits to be written
    for (size_t at = 0; at < bytes; at += length) {
        length = tr__utf8_length(word[at]);
        int32_t id =
            find_symbol(bpe, m, word + at, length, at == 0, at + length == bytes);
        if (id >= 0) {
            if (unknown) {
                m->id[count++] = bpe->unk;
                unknown = false;
            }
            m->id[count++] = id;
        } else if (bpe->byte_fallback) {
            for (size_t i = 0; i < length; i++) {
                m->id[count++] = bpe->fallback[word[at + i]];
            }
        } else if (bpe->unk >= 0) {
            if (unknown && !bpe->fuse_unk) {
                m->id[count++] = bpe->unk;
            }
            unknown = true;
        }
    }
    if (unknown) {
        m->id[count++] = bpe->unk;
    }
    return count;
}

static void find_ranks(const tr_bpe *bpe, tr_merger *m, size_t count) {
    for (size_t i = 0; i + 1 < count; i++) {
        m->rank[i] = tr__bpe_rank(bpe, m->id[i], m->id[i + 1]);
    }
}

static size_t byte_symbols(const tr_bpe *bpe, tr_merger *m, const unsigned char *word,
                           size_t bytes) {
    size_t count = 0;
    for (size_t i = 0; i < bytes; i++) {
        m->id[count] = bpe->symbol[word[i]];
        count += m->id[count] >= 0;
    }
    if (count < bytes) { // some vanish, and others become neighbours
        find_ranks(bpe, m, count);
        return count;
    }
    for (size_t i = 0; i + 1 < bytes; i++) {
        m->rank[i] = bpe->first[word[i] << 8 | word[i + 1]];
    }
    return count;
}

static size_t merge_short(const tr_bpe *bpe, tr_merger *m, size_t count) {
    int32_t *id = m->id, *rank = m->rank;
    while (count > 1) {
        int32_t best = TR_NO_RANK;
        size_t at = 0;
        for (size_t i = 0; i + 1 < count; i++) {
            best = rank[i] < best ? rank[i] : best;
        }
        if (best == TR_NO_RANK) {
            break;
        }
        while (rank[at] != best) {
            at++;
        }
        id[at] = bpe->product[best];
        count--;
        memmove(id + at + 1, id + at + 2, (count - at - 1) * sizeof *id);
        memmove(rank + at, rank + at + 1, (count - at - 1) * sizeof *rank);
        if (at + 1 < count) {
            rank[at] = tr__bpe_rank(bpe, id[at], id[at + 1]);
        }
        if (at > 0) {
            rank[at - 1] = tr__bpe_rank(bpe, id[at - 1], id[at]);
        }
    }
    return count;
}

static void sift_down(uint64_t *heap, size_t count, size_t at) {
    uint64_t moved = heap[at];
    size_t child;
    while ((child = 2 * at + 1) < count) {
        child += child + 1 < count && heap[child + 1] < heap[child];
        if (heap[child] >= moved) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moved;
}

static bool heap_push(tr_merger *m, int32_t rank, size_t at) {
    if (!tr__grow((void **)&m->heap, &m->heap_capacity, m->heap_count + 1,
                  sizeof *m->heap)) {
        return false;
    }
    uint64_t moved = (uint64_t)rank << 32 | at;
    size_t i = m->heap_count++;
    while (i > 0 && m->heap[(i - 1) / 2] > moved) {
        m->heap[i] = m->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    m->heap[i] = moved;
    return true;
}

// The pair that begins at `at` has changed.
static bool renew(const tr_bpe *bpe, tr_merger *m, size_t at) {
    int32_t after = m->after[at];
    m->rank[at] = after < 0 ? TR_NO_RANK : tr__bpe_rank(bpe, m->id[at], m->id[after]);
    return m->rank[at] == TR_NO_RANK || heap_push(m, m->rank[at], at);
}

static bool heap_begin(tr_merger *m, size_t count) {
    if (!tr__grow((void **)&m->heap, &m->heap_capacity, count, sizeof *m->heap)) {
        return false;
    }
    m->heap_count = 0;
    for (size_t i = 0; i < count; i++) {
        m->before[i] = (int32_t)i - 1;
        m->after[i] = i + 1 < count ? (int32_t)i + 1 : -1;
        if (i + 1 < count && m->rank[i] != TR_NO_RANK) {
            m->heap[m->heap_count++] = (uint64_t)m->rank[i] << 32 | i;
        }
    }
    for (size_t i = m->heap_count / 2; i-- > 0;) {
        sift_down(m->heap, m->heap_count, i);
    }
    return true;
}

static bool merge_long(const tr_bpe *bpe, tr_merger *m, size_t *count) {
    if (!heap_begin(m, *count)) {
        return false;
    }
    m->rank[*count - 1] = TR_NO_RANK;
    while (m->heap_count > 0) {
        uint64_t top = m->heap[0];
        size_t at = (uint32_t)top;
        m->heap[0] = m->heap[--m->heap_count];
        if (m->heap_count > 0) {
            sift_down(m->heap, m->heap_count, 0);
        }
        if (m->rank[at] != (int32_t)(top >> 32)) {
            continue; // the pair has changed since
        }
        int32_t gone = m->after[at], after = m->after[gone];
        m->id[at] = bpe->product[m->rank[at]];
        m->rank[gone] = TR_NO_RANK;
        m->after[at] = after;
        if (after >= 0) {
            m->before[after] = (int32_t)at;
        }
        if (!renew(bpe, m, at) ||
            (m->before[at] >= 0 && !renew(bpe, m, (size_t)m->before[at]))) {
            return false;
        }
    }
    size_t left = 0;
    for (int32_t at = 0; at >= 0; at = m->after[at]) {
        m->id[left++] = m->id[at];
    }
    *count = left;
    return true;
}

bool tr__bpe_word(const tr_bpe *bpe, tr_merger *m, const unsigned char *word,
                  size_t bytes, tr_token_ids *ids) {
    size_t count;
    if (bytes > INT32_MAX || !reserve(m, bytes)) {
        return false;
    }
    tr__text_clear(&m->mapped);
    if (bpe->bytes) {
        count = byte_symbols(bpe, m, word, bytes);
    } else {
        count = character_symbols(bpe, m, word, bytes);
        find_ranks(bpe, m, count);
    }
    if (count <= SCAN_MAX) {
        count = merge_short(bpe, m, count);
    } else if (!merge_long(bpe, m, &count)) {
        return false;
    }
    return !m->mapped.failed && tr__ids_add(ids, m->id, count);
}

size_t tr__bpe_cut(const tr_bpe *bpe, const unsigned char *word, size_t bytes,
                   size_t from) {
    size_t length;
    if (bpe->bytes) {
        while (from < bytes && tr__joins_has(&bpe->joins, word[from - 1], word[from])) {
            from++;
        }
        return from;
    }
    if (from < bytes) {
        uint32_t left = tr__utf8_before(word + from);
        for (; from < bytes; from += length) {
            uint32_t right = tr__utf8_read(word + from, &length);
            if (!tr__joins_has(&bpe->joins, left, right)) {
                break;
            }
            left = right;
        }
    }
    return from;
}

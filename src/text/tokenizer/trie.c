#include "text/tokenizer/trie.h"

#include "base/memory.h"

static void place(tr_trie *trie, tr_trie_edge edge) {
    size_t i = (edge.key * 0x9e3779b97f4a7c15u) >> 32 & trie->mask;
    while (trie->edge[i].key != 0) {
        i = (i + 1) & trie->mask;
    }
    trie->edge[i] = edge;
}

static bool grow_edges(tr_trie *trie) {
    if (trie->edge && trie->edges * 2 < trie->mask + 1) {
        return true;
    }
    tr_trie old = *trie;
    size_t size = old.edge ? (old.mask + 1) * 2 : 64;
    trie->edge = tr__calloc(size, sizeof *trie->edge);
    if (!trie->edge) {
        trie->edge = old.edge;
        return false;
    }
    trie->mask = size - 1;
    for (size_t i = 0; old.edge && i <= old.mask; i++) {
        if (old.edge[i].key != 0) {
            place(trie, old.edge[i]);
        }
    }
    tr__free(old.edge);
    return true;
}

static int32_t add_node(tr_trie *trie) {
    if (!tr__grow((void **)&trie->value, &trie->capacity, trie->nodes + 1,
                  sizeof *trie->value)) {
        return -1;
    }
    trie->value[trie->nodes] = -1;
    return (int32_t)trie->nodes++;
}

bool tr__trie_add(tr_trie *trie, const unsigned char *bytes, size_t count,
                  int32_t value) {
    int32_t node = 0;
    if (!grow_edges(trie) || (trie->nodes == 0 && add_node(trie) < 0)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        int32_t next = tr__trie_step(trie, node, bytes[i]);
        if (next < 0) {
            if (!grow_edges(trie) || (next = add_node(trie)) < 0) {
                return false;
            }
            place(trie, (tr_trie_edge){(uint64_t)(node + 1) << 8 | bytes[i], next});
            trie->edges++;
        }
        node = next;
    }
    trie->value[node] = value;
    return true;
}

void tr__trie_release(tr_trie *trie) {
    tr__free(trie->edge);
    tr__free(trie->value);
    *trie = (tr_trie){0};
}

int32_t tr__trie_longest(const tr_trie *trie, int32_t root, const unsigned char *text,
                         size_t bytes, size_t *length) {
    int32_t node = root, value = -1;
    for (size_t i = 0; i < bytes && trie->nodes > 0; i++) {
        node = tr__trie_step(trie, node, text[i]);
        if (node < 0) {
            break;
        }
        if (trie->value[node] >= 0) {
            value = trie->value[node];
            *length = i + 1;
        }
    }
    return value;
}

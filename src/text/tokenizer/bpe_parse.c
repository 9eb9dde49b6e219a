#include "base/checked.h"
#include "text/tokenizer/bpe.h"
#include "text/tokenizer/byte_level.h"

#include <stdio.h>

enum { MERGES_MAX = 1 << 24, AFFIX_MAX = 64 };

static tr_status no_memory(const tr_node *node, tr_error *err) {
    return tr_fail(err, TR_MEMORY, "no memory for the merges of %s", node->file);
}

// The two halves of a merge: "a b" or ["a", "b"].
typedef struct halves {
    const char *text[2];
    size_t bytes[2];
} halves;

static tr_status parse_halves(const tr_node *node, halves *h, tr_error *err) {
    size_t count = 0;
    if (json_is_string(node->value)) {
        size_t bytes = json_string_length(node->value);
        const char *text = json_string_value(node->value);
        const char *blank = memchr(text, ' ', bytes);
        if (!blank || memchr(blank + 1, ' ', bytes - (size_t)(blank + 1 - text))) {
            return tr__node_fail(node, err,
                                 "a merge must be two tokens and a blank between "
                                 "them");
        }
        *h = (halves){{text, blank + 1},
                      {(size_t)(blank - text), bytes - (size_t)(blank + 1 - text)}};
        return TR_OK;
    }
    tr_status status = tr__node_array(node, &count, err);
    if (status == TR_OK && count != 2) {
        status = tr__node_fail(node, err, "a merge has %zu parts, not 2", count);
    }
    for (size_t i = 0; i < count && status == TR_OK; i++) {
        tr_node half = tr__node_element(node, i);
        status = tr__node_text(&half, &h->text[i], &h->bytes[i], err);
    }
    return status;
}

// The place of the pair in the table, or an empty one.
static tr_merge *find_merge(const tr_bpe *bpe, uint64_t key) {
    size_t i = (key * 0x9e3779b97f4a7c15u) >> 32 & bpe->mask;
    while (bpe->merge[i].key != key && bpe->merge[i].rank != TR_NO_RANK) {
        i = (i + 1) & bpe->mask;
    }
    return &bpe->merge[i];
}

static tr_status parse_merge(const tr_node *node, tr_bpe *bpe, tr_text *scratch,
                             int32_t rank, tr_error *err) {
    halves h = {{0}, {0}};
    int32_t id[2];
    tr_status status = parse_halves(node, &h, err);
    for (int i = 0; i < 2 && status == TR_OK; i++) {
        id[i] = tr__vocabulary_find(bpe->vocabulary, h.text[i], h.bytes[i]);
        if (id[i] < 0) {
            status = tr__node_fail(node, err, "\"%.80s\" is not in the vocabulary",
                                   h.text[i]);
        }
    }
    if (status != TR_OK) {
        return status;
    }
    if (h.bytes[1] < bpe->prefix_bytes) {
        return tr__node_fail(node, err, "its second token lacks the prefix");
    }
    tr__text_clear(scratch);
    tr__text_add(scratch, h.text[0], h.bytes[0]);
    tr__text_add(scratch, h.text[1] + bpe->prefix_bytes,
                 h.bytes[1] - bpe->prefix_bytes);
    if (scratch->failed) {
        return no_memory(node, err);
    }
    int32_t product =
        tr__vocabulary_find(bpe->vocabulary, scratch->bytes, scratch->count);
    if (product < 0) {
        return tr__node_fail(node, err, "what it makes is not in the vocabulary");
    }
    uint64_t key = (uint64_t)id[0] << 32 | (uint32_t)id[1];
    *find_merge(bpe, key) = (tr_merge){key, rank, product};
    bpe->product[rank] = product;
    return TR_OK;
}

static tr_status parse_merges(const tr_node *node, tr_bpe *bpe, tr_error *err) {
    size_t count = 0, size = 64;
    tr_text scratch = {0};
    tr_status status = tr__node_array(node, &count, err);
    if (status != TR_OK) {
        return status;
    }
    if (count > MERGES_MAX) {
        return tr__node_fail(node, err, "%zu merges; at most %d are read", count,
                             MERGES_MAX);
    }
    while (size < count * 2 + 1) {
        size *= 2;
    }
    bpe->mask = size - 1;
    bpe->merge = tr__calloc(size, sizeof *bpe->merge);
    bpe->product = tr__calloc(count + 1, sizeof *bpe->product);
    if (!bpe->merge || !bpe->product) {
        return no_memory(node, err);
    }
    for (size_t i = 0; i < size; i++) {
        bpe->merge[i] = (tr_merge){UINT64_MAX, TR_NO_RANK, -1};
    }
    for (size_t i = 0; i < count && status == TR_OK; i++) {
        tr_node merge = tr__node_element(node, i);
        status = parse_merge(&merge, bpe, &scratch, (int32_t)i, err);
    }
    tr__text_release(&scratch);
    return status;
}

static tr_status parse_affix(const tr_node *node, const char *key, char **affix,
                             size_t *bytes, tr_error *err) {
    const char *text;
    tr_node member = tr__node_member(node, key);
    if (!member.value) {
        return TR_OK;
    }
    tr_status status = tr__node_text(&member, &text, bytes, err);
    if (status == TR_OK && *bytes > AFFIX_MAX) {
        status = tr__node_fail(&member, err, "has %zu bytes; at most %d are supported",
                               *bytes, AFFIX_MAX);
    }
    if (status == TR_OK) {
        *affix = tr__strdup(text);
        status = *affix ? TR_OK : no_memory(node, err);
    }
    return status;
}

static tr_status parse_flag(const tr_node *node, const char *key, bool *out,
                            tr_error *err) {
    tr_node member = tr__node_member(node, key);
    return tr__node_bool(&member, false, out, err);
}

static tr_status parse_options(const tr_node *node, tr_bpe *bpe, tr_error *err) {
    const char *unk;
    size_t bytes;
    tr_node dropout = tr__node_member(node, "dropout");
    tr_node unknown = tr__node_member(node, "unk_token");
    if (dropout.value &&
        !(json_is_number(dropout.value) && json_number_value(dropout.value) == 0)) {
        return tr__node_fail(&dropout, err,
                             "merges left out at random are not supported");
    }
    tr_status status = parse_flag(node, "fuse_unk", &bpe->fuse_unk, err);
    if (status == TR_OK) {
        status = parse_flag(node, "ignore_merges", &bpe->ignore_merges, err);
    }
    if (status == TR_OK) {
        status = parse_flag(node, "byte_fallback", &bpe->byte_fallback, err);
    }
    if (status == TR_OK) {
        status = parse_affix(node, "continuing_subword_prefix", &bpe->prefix,
                             &bpe->prefix_bytes, err);
    }
    if (status == TR_OK) {
        status = parse_affix(node, "end_of_word_suffix", &bpe->suffix,
                             &bpe->suffix_bytes, err);
    }
    if (status == TR_OK && unknown.value) {
        status = tr__node_text(&unknown, &unk, &bytes, err);
        bpe->unk =
            status == TR_OK ? tr__vocabulary_find(bpe->vocabulary, unk, bytes) : -1;
        if (status == TR_OK && bpe->unk < 0) {
            status = tr__node_fail(&unknown, err, "is not in the vocabulary");
        }
    }
    return status;
}

// The tokens <0x00> to <0xFF>: all of them or none.
static tr_status find_fallback(const tr_node *node, tr_bpe *bpe, tr_error *err) {
    int found = 0;
    for (int byte = 0; byte < 256; byte++) {
        char token[8];
        snprintf(token, sizeof token, "<0x%02X>", byte);
        bpe->fallback[byte] = tr__vocabulary_find(bpe->vocabulary, token, 6);
        found += bpe->fallback[byte] >= 0;
    }
    if (bpe->byte_fallback && found > 0 && found < 256) {
        return tr__node_fail(node, err,
                             "byte_fallback with %d of the 256 tokens <0x00> to <0xFF> "
                             "is not supported",
                             found);
    }
    bpe->byte_fallback = bpe->byte_fallback && found == 256;
    return TR_OK;
}

static void find_symbols(tr_bpe *bpe) {
    for (int byte = 0; byte < 256; byte++) {
        unsigned char text[TR_UTF8_MAX] = {(unsigned char)byte};
        size_t length = 1;
        if (bpe->bytes) {
            length = tr__utf8_write(tr__byte_level_character(text[0]), text);
        }
        bpe->symbol[byte] = tr__vocabulary_find(bpe->vocabulary, text, length);
    }
}

// Can the model work on bytes? Where nothing is added to them, and those that have no
// symbol vanish.
static bool works_on_bytes(tr_bpe *bpe) {
    bpe->bytes = bpe->all_bytes = true;
    find_symbols(bpe);
    for (int byte = 0; byte < 256; byte++) {
        bpe->all_bytes &= bpe->symbol[byte] >= 0;
    }
    return (bpe->all_bytes || (bpe->unk < 0 && !bpe->byte_fallback)) &&
           !bpe->prefix_bytes && !bpe->suffix_bytes;
}

// The tokens as the bytes they stand for, and the ranks of pairs of bytes.
static tr_status make_raw(const tr_node *node, tr_bpe *bpe, tr_error *err) {
    const tr_vocabulary *v = bpe->vocabulary;
    tr_text bytes = {0};
    tr_status status = TR_OK;
    for (size_t id = 0; id < v->count && status == TR_OK; id++) {
        tr__text_clear(&bytes);
        if (v->token[id].present &&
            tr__byte_level_bytes(tr__vocabulary_bytes(v, (int32_t)id),
                                 v->token[id].count, &bytes)) {
            status = bytes.failed ? no_memory(node, err)
                                  : tr__vocabulary_add(&bpe->raw, node, bytes.bytes,
                                                       bytes.count, (int32_t)id, err);
        }
    }
    tr__text_release(&bytes);
    bpe->first = status == TR_OK ? tr__calloc(256 * 256, sizeof *bpe->first) : NULL;
    if (status == TR_OK && !bpe->first) {
        status = no_memory(node, err);
    }
    for (int left = 0; left < 256 && status == TR_OK; left++) {
        for (int right = 0; right < 256; right++) {
            bpe->first[left << 8 | right] =
                tr__bpe_rank(bpe, bpe->symbol[left], bpe->symbol[right]);
        }
    }
    return status;
}

static void join(tr_joins *joins, uint32_t left, uint32_t right) {
    uint64_t hash = ((uint64_t)left << 32 | right) * 0x9e3779b97f4a7c15u;
    size_t place = hash >> (64 - TR_JOIN_BITS);
    joins->bit[place >> 6] |= (uint64_t)1 << (place & 63);
}

// Every token's neighbours, though only merged ones count.
static tr_status find_joins(const tr_node *node, tr_bpe *bpe, tr_error *err) {
    const tr_vocabulary *v = bpe->bytes ? &bpe->raw : bpe->vocabulary;
    bpe->joins.bit =
        tr__calloc((size_t)1 << (TR_JOIN_BITS - 6), sizeof *bpe->joins.bit);
    if (!bpe->joins.bit) {
        return no_memory(node, err);
    }
    for (size_t id = 0; id < v->count; id++) {
        if (!v->token[id].present) {
            continue;
        }
        const unsigned char *token = tr__vocabulary_bytes(v, (int32_t)id);
        size_t length = 1;
        uint32_t left = 0;
        for (size_t at = 0; at < v->token[id].count; at += length) {
            uint32_t right =
                bpe->bytes ? token[at] : tr__utf8_read(token + at, &length);
            if (at > 0) {
                join(&bpe->joins, left, right);
            }
            left = right;
        }
    }
    return TR_OK;
}

tr_status tr__bpe_parse(const tr_node *node, const tr_vocabulary *vocabulary,
                        bool byte_level, tr_bpe *bpe, tr_error *err) {
    tr_node merges = tr__node_member(node, "merges");
    bpe->vocabulary = vocabulary;
    bpe->unk = -1;
    tr_status status = parse_options(node, bpe, err);
    if (status == TR_OK) {
        status = find_fallback(node, bpe, err);
    }
    if (status == TR_OK) {
        status = parse_merges(&merges, bpe, err);
    }
    if (status == TR_OK && byte_level && works_on_bytes(bpe)) {
        status = make_raw(node, bpe, err);
    } else {
        bpe->bytes = false;
        find_symbols(bpe);
    }
    return status == TR_OK ? find_joins(node, bpe, err) : status;
}

void tr__bpe_release(tr_bpe *bpe) {
    tr__free(bpe->merge);
    tr__free(bpe->product);
    tr__free(bpe->first);
    tr__free(bpe->joins.bit);
    tr__free(bpe->prefix);
    tr__free(bpe->suffix);
    tr__vocabulary_release(&bpe->raw);
    *bpe = (tr_bpe){0};
}

#include "tokenizer/unicode.h"

#include "base/memory.h"
#include "tokenizer/unicode_data.h"

// The last of `count` rows of `width` numbers whose first one is at most `c`; NULL:
// there is none. Rows are sorted.
static const uint32_t *find(const uint32_t *table, size_t count, size_t width,
                            uint32_t c) {
    size_t low = 0, high = count / width;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (table[middle * width] <= c) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low == 0 ? NULL : table + (low - 1) * width;
}

// Sets the flags of runs: pairs (begin, value), each up to the next one's begin.
static void fill(uint32_t *flags, const uint32_t *runs, size_t count, uint32_t flag) {
    for (size_t i = 0; i < count; i += 2) {
        uint32_t end = i + 2 < count ? runs[i + 2] : TR_CODE_POINTS;
        uint32_t value = flag == 0 ? runs[i + 1] : runs[i + 1] ? flag : 0;
        for (uint32_t c = runs[i]; value && c < end; c++) {
            flags[c] |= value;
        }
    }
}

tr_status tr__unicode_create(tr_unicode *unicode, tr_error *err) {
    uint32_t *flags = tr__calloc(TR_CODE_POINTS, sizeof *flags);
    if (!flags) {
        return tr_fail(err, TR_MEMORY, "no memory for the tables of Unicode");
    }
    fill(flags, tr__unicode_classes, tr__unicode_classes_count, 0);
    fill(flags, tr__unicode_combining, tr__unicode_combining_count, TR_COMBINES);
    for (size_t i = 0; i < tr__unicode_lower_count; i += 2) {
        flags[tr__unicode_lower[i]] |= TR_HAS_LOWER;
    }
    flags[0x130] |= TR_HAS_LOWER;
    for (size_t i = 0; i < tr__unicode_decompositions_count; i += 2) {
        bool compatibility = tr__unicode_decompositions[i + 1] >> 31;
        flags[tr__unicode_decompositions[i]] |=
            compatibility ? TR_HAS_COMPATIBILITY : TR_HAS_CANONICAL;
    }
    for (size_t i = 0; i < tr__unicode_compositions_count; i += 3) {
        flags[tr__unicode_compositions[i + 1]] |= TR_COMPOSES_LEFT;
    }
    for (uint32_t c = 0x1161; c < 0x11c3; c++) { // vowels and last consonants of Hangul
        flags[c] |= TR_COMPOSES_LEFT;
    }
    for (uint32_t c = 0xac00; c < 0xac00 + 11172; c++) {
        flags[c] |= TR_HAS_CANONICAL;
    }
    unicode->flags = flags;
    return TR_OK;
}

void tr__unicode_release(tr_unicode *unicode) {
    tr__free(unicode->flags);
    *unicode = (tr_unicode){0};
}

size_t tr__unicode_lowercase(const tr_unicode *unicode, uint32_t c, uint32_t *dst) {
    if (c == 0x130) { // the only one whose lower case is two characters
        dst[0] = 'i';
        dst[1] = 0x307;
        return 2;
    }
    dst[0] = unicode->flags[c] & TR_HAS_LOWER
                 ? find(tr__unicode_lower, tr__unicode_lower_count, 2, c)[1]
                 : c;
    return 1;
}

int tr__unicode_combining_class(const tr_unicode *unicode, uint32_t c) {
    return unicode->flags[c] & TR_COMBINES
               ? (int)find(tr__unicode_combining, tr__unicode_combining_count, 2, c)[1]
               : 0;
}

const uint32_t *tr__unicode_decompose(const tr_unicode *unicode, uint32_t c,
                                      bool compatibility, size_t *count) {
    uint32_t flags = unicode->flags[c];
    bool found =
        flags & TR_HAS_CANONICAL || (compatibility && flags & TR_HAS_COMPATIBILITY);
    if (!found) {
        return NULL;
    }
    const uint32_t *row =
        find(tr__unicode_decompositions, tr__unicode_decompositions_count, 2, c);
    // A character may have two rows, its canonical one first.
    if (!compatibility && row[1] >> 31) {
        row -= 2;
    }
    *count = row[1] >> 16 & 0x7fff;
    return tr__unicode_decomposed + (row[1] & 0xffff);
}

uint32_t tr__unicode_compose(uint32_t first, uint32_t second) {
    size_t low = 0, high = tr__unicode_compositions_count / 3;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const uint32_t *row = tr__unicode_compositions + middle * 3;
        if (row[0] == first && row[1] == second) {
            return row[2];
        }
        if (row[0] < first || (row[0] == first && row[1] < second)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return 0;
}

#include "text/unicode/unicode.h"

#include "base/memory.h"

// The last pair whose first number is at most `c`; NULL: there is none. Pairs are
// sorted.
static const uint32_t *find(const tr_unicode_table *table, uint32_t c) {
    size_t low = 0, high = table->count / 2;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (table->number[middle * 2] <= c) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low == 0 ? NULL : table->number + (low - 1) * 2;
}

// Sets the flags of runs: pairs (begin, value), each up to the next one's begin.
static void fill(uint32_t *flags, const tr_unicode_table *runs, uint32_t flag) {
    for (size_t i = 0; i < runs->count; i += 2) {
        const uint32_t *run = runs->number + i;
        uint32_t end = i + 2 < runs->count ? run[2] : TR_CODE_POINTS;
        uint32_t value = flag == 0 ? run[1] : run[1] ? flag : 0;
        for (uint32_t c = run[0]; value && c < end; c++) {
            flags[c] |= value;
        }
    }
}

static void fill_all(const tr_unicode_tables *tables, uint32_t *flags) {
    const tr_unicode_table *decompositions = &tables->decompositions;
    const tr_unicode_table *compositions = &tables->compositions;
    fill(flags, &tables->classes, 0);
    fill(flags, &tables->combining, TR_COMBINES);
    for (size_t i = 0; i < tables->lower.count; i += 2) {
        flags[tables->lower.number[i]] |= TR_HAS_LOWER;
    }
    flags[0x130] |= TR_HAS_LOWER;
    for (size_t i = 0; i < decompositions->count; i += 2) {
        bool compatibility = decompositions->number[i + 1] >> 31;
        flags[decompositions->number[i]] |=
            compatibility ? TR_HAS_COMPATIBILITY : TR_HAS_CANONICAL;
    }
    for (size_t i = 0; i < compositions->count; i += 3) {
        flags[compositions->number[i + 1]] |= TR_COMPOSES_LEFT;
    }
    for (uint32_t c = 0x1161; c < 0x11c3; c++) { // vowels and last consonants of Hangul
        flags[c] |= TR_COMPOSES_LEFT;
    }
    for (uint32_t c = 0xac00; c < 0xac00 + 11172; c++) {
        flags[c] |= TR_HAS_CANONICAL;
    }
}

tr_status tr__unicode_create(tr_unicode *unicode, tr_error *err) {
    *unicode = (tr_unicode){.flags = tr__calloc(TR_CODE_POINTS, sizeof(uint32_t))};
    tr_status status =
        unicode->flags ? tr__unicode_unpack(&unicode->tables, err)
                       : tr_fail(err, TR_MEMORY, "no memory for the tables of Unicode");
    if (status != TR_OK) {
        tr__unicode_release(unicode);
        return status;
    }
    fill_all(&unicode->tables, unicode->flags);
    return TR_OK;
}

void tr__unicode_release(tr_unicode *unicode) {
    tr__free(unicode->flags);
    tr__unicode_tables_release(&unicode->tables);
    *unicode = (tr_unicode){0};
}

size_t tr__unicode_lowercase(const tr_unicode *unicode, uint32_t c, uint32_t *dst) {
    if (c == 0x130) { // the only one whose lower case is two characters
        dst[0] = 'i';
        dst[1] = 0x307;
        return 2;
    }
    dst[0] = unicode->flags[c] & TR_HAS_LOWER ? find(&unicode->tables.lower, c)[1] : c;
    return 1;
}

int tr__unicode_combining_class(const tr_unicode *unicode, uint32_t c) {
    return unicode->flags[c] & TR_COMBINES ? (int)find(&unicode->tables.combining, c)[1]
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
    const uint32_t *row = find(&unicode->tables.decompositions, c);
    // A character may have two rows, its canonical one first.
    if (!compatibility && row[1] >> 31) {
        row -= 2;
    }
    *count = row[1] >> 16 & 0x7fff;
    return unicode->tables.decomposed.number + (row[1] & 0xffff);
}

uint32_t tr__unicode_compose(const tr_unicode *unicode, uint32_t first,
                             uint32_t second) {
    const tr_unicode_table *table = &unicode->tables.compositions;
    size_t low = 0, high = table->count / 3;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const uint32_t *row = table->number + middle * 3;
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

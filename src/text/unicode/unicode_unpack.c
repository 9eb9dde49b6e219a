#include "text/unicode/unicode_data.h"

#include "base/memory.h"

enum { DIGIT_BITS = 5, KINDS_MOST = 64 };

static uint32_t digit_of(char c) {
    if (c >= 'A' && c <= 'Z') {
        return (uint32_t)(c - 'A');
    }
    if (c >= 'a' && c <= 'z') {
        return (uint32_t)(c - 'a') + 26;
    }
    if (c >= '0' && c <= '9') {
        return (uint32_t)(c - '0') + 52;
    }
    return c == '-' ? 62 : 63;
}

static uint32_t take(const char **at) {
    uint32_t number = 0, digit = 0;
    for (int shift = 0; shift == 0 || digit >> DIGIT_BITS; shift += DIGIT_BITS) {
        digit = digit_of(*(*at)++);
        number |= (digit & ((1U << DIGIT_BITS) - 1)) << shift;
    }
    return number;
}

// Unsigned arithmetic wraps, so a difference below 0 is added like any other.
static uint32_t take_signed(const char **at) {
    uint32_t number = take(at);
    return number & 1 ? ~(number >> 1) : number >> 1;
}

// Room for as many numbers as the text says.
static tr_status begin(tr_unicode_table *table, const char **at, tr_error *err) {
    table->count = take(at);
    table->number = tr__calloc(table->count, sizeof *table->number);
    return table->number
               ? TR_OK
               : tr_fail(err, TR_MEMORY, "no memory for the tables of Unicode");
}

static tr_status unpack_pairs(const char *at, tr_unicode_table *to, tr_error *err) {
    uint32_t first = 0;
    tr_status status = begin(to, &at, err);
    for (size_t i = 0; status == TR_OK && i < to->count; i += 2) {
        first += take(&at);
        to->number[i] = first;
        to->number[i + 1] = take(&at);
    }
    return status;
}

static tr_status unpack_classes(const char *at, tr_unicode_table *to, tr_error *err) {
    uint32_t kind[KINDS_MOST];
    uint32_t kinds = take(&at);
    for (uint32_t i = 0; i < kinds; i++) {
        kind[i % KINDS_MOST] = take(&at);
    }
    tr_status status = unpack_pairs(at, to, err);
    for (size_t i = 1; status == TR_OK && i < to->count; i += 2) {
        to->number[i] = kind[to->number[i] % KINDS_MOST];
    }
    return status;
}

static tr_status unpack_lower(const char *at, tr_unicode_table *to, tr_error *err) {
    uint32_t c = 0;
    tr_status status = begin(to, &at, err);
    for (size_t i = 0; status == TR_OK && i < to->count;) {
        c += take(&at);
        uint32_t series = take(&at), away = take_signed(&at), step = 1 + (series & 1);
        for (uint32_t left = series >> 1; left > 0; left--, i += 2) {
            to->number[i] = c;
            to->number[i + 1] = c + away;
            c += left > 1 ? step : 0;
        }
    }
    return status;
}

static tr_status unpack_compositions(const char *at, tr_unicode_table *to,
                                     tr_error *err) {
    uint32_t row[3] = {0};
    tr_status status = begin(to, &at, err);
    for (size_t i = 0; status == TR_OK && i < to->count; i += 3) {
        row[0] += take(&at);
        row[1] += take_signed(&at);
        row[2] += take_signed(&at);
        for (int k = 0; k < 3; k++) {
            to->number[i + (size_t)k] = row[k];
        }
    }
    return status;
}

static tr_status unpack_decompositions(const char *at, tr_unicode_tables *to,
                                       tr_error *err) {
    uint32_t c = 0, part = 0;
    size_t row = 0, place = 0;
    tr_status status = begin(&to->decompositions, &at, err);
    if (status == TR_OK) {
        status = begin(&to->decomposed, &at, err);
    }
    while (status == TR_OK && row < to->decompositions.count) {
        uint32_t head = take(&at), parts = (head >> 2) + 1, kind = head >> 1 & 1;
        c += take(&at);
        uint32_t characters = head & 1 ? take(&at) : 1;
        uint32_t *first = to->decomposed.number + place;
        for (uint32_t k = 0; k < parts; k++) {
            part += take_signed(&at);
            first[k] = part;
        }
        for (uint32_t i = 0; i < characters; i++, row += 2, place += parts) {
            uint32_t *own = first + (size_t)i * parts;
            to->decompositions.number[row] = c + i;
            to->decompositions.number[row + 1] =
                kind << 31 | parts << 16 | (uint32_t)place;
            for (uint32_t k = 0; k < parts; k++) {
                own[k] = first[k] + (k == parts - 1 ? i : 0);
            }
        }
        c += characters - 1;
        part += characters - 1;
    }
    return status;
}

tr_status tr__unicode_unpack(tr_unicode_tables *tables, tr_error *err) {
    tr_status status = unpack_classes(tr__unicode_classes, &tables->classes, err);
    if (status == TR_OK) {
        status = unpack_lower(tr__unicode_lower, &tables->lower, err);
    }
    if (status == TR_OK) {
        status = unpack_pairs(tr__unicode_combining, &tables->combining, err);
    }
    if (status == TR_OK) {
        status =
            unpack_compositions(tr__unicode_compositions, &tables->compositions, err);
    }
    return status == TR_OK
               ? unpack_decompositions(tr__unicode_decompositions, tables, err)
               : status;
}

void tr__unicode_tables_release(tr_unicode_tables *tables) {
    tr__free(tables->classes.number);
    tr__free(tables->lower.number);
    tr__free(tables->combining.number);
    tr__free(tables->compositions.number);
    tr__free(tables->decompositions.number);
    tr__free(tables->decomposed.number);
    *tables = (tr_unicode_tables){0};
}

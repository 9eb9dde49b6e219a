#include "text/unicode/normalize.h"

#include "base/memory.h"

enum {
    HANGUL = 0xac00,
    HANGUL_COUNT = 11172,
    LEAD = 0x1100,
    LEAD_COUNT = 19,
    VOWEL = 0x1161,
    VOWEL_COUNT = 21,
    TAIL = 0x11a7, // the first of them stands for none
    TAIL_COUNT = 28,
};

// A character and its canonical combining class.
typedef struct item {
    uint32_t c;
    int order;
} item;

// Decomposed characters that may still move or compose.
typedef struct pending {
    item *items, *sorted;
    size_t count, capacity, sorted_capacity;
    bool failed;
} pending;

static void push(const tr_unicode *unicode, pending *p, uint32_t c) {
    if (p->count == p->capacity &&
        !tr__grow((void **)&p->items, &p->capacity, p->count + 1, sizeof *p->items)) {
        p->failed = true;
        return;
    }
    p->items[p->count++] = (item){c, tr__unicode_combining_class(unicode, c)};
}

static bool is_hangul(uint32_t c) {
    return c - HANGUL < HANGUL_COUNT;
}

static void push_hangul(const tr_unicode *unicode, pending *p, uint32_t c) {
    uint32_t index = c - HANGUL, tail = index % TAIL_COUNT;
    push(unicode, p, LEAD + index / (VOWEL_COUNT * TAIL_COUNT));
    push(unicode, p, VOWEL + index / TAIL_COUNT % VOWEL_COUNT);
    if (tail) {
        push(unicode, p, TAIL + tail);
    }
}

static void decompose(const tr_unicode *unicode, pending *p, uint32_t c,
                      bool compatibility) {
    size_t count = 0;
    if (is_hangul(c)) {
        push_hangul(unicode, p, c);
        return;
    }
    const uint32_t *parts = tr__unicode_decompose(unicode, c, compatibility, &count);
    if (!parts) {
        push(unicode, p, c);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        push(unicode, p, parts[i]);
    }
}

// Sorts items[begin, end), all of a class above 0, by class; equals keep their order.
static void sort_run(pending *p, size_t begin, size_t end) {
    size_t at[257] = {0}, count = end - begin;
    if (!tr__grow((void **)&p->sorted, &p->sorted_capacity, count, sizeof *p->sorted)) {
        p->failed = true;
        return;
    }
    for (size_t i = begin; i < end; i++) {
        at[p->items[i].order + 1]++;
    }
    for (int class = 1; class < 257; class ++) {
        at[class] += at[class - 1];
    }
    for (size_t i = begin; i < end; i++) {
        p->sorted[at[p->items[i].order]++] = p->items[i];
    }
    memcpy(p->items + begin, p->sorted, count * sizeof *p->items);
}

static void reorder(pending *p) {
    size_t i = 0;
    while (i < p->count) {
        size_t begin = i;
        bool sorted = true;
        for (; i < p->count && p->items[i].order > 0; i++) {
            sorted &= i == begin || p->items[i - 1].order <= p->items[i].order;
        }
        if (!sorted) {
            sort_run(p, begin, i);
        }
        i += i == begin;
    }
}

static uint32_t compose_pair(const tr_unicode *unicode, uint32_t a, uint32_t b) {
    if (a - LEAD < LEAD_COUNT && b - VOWEL < VOWEL_COUNT) {
        return HANGUL + ((a - LEAD) * VOWEL_COUNT + (b - VOWEL)) * TAIL_COUNT;
    }
    if (is_hangul(a) && (a - HANGUL) % TAIL_COUNT == 0 &&
        b - TAIL - 1 < TAIL_COUNT - 1) {
        return a + (b - TAIL);
    }
    return tr__unicode_compose(unicode, a, b);
}

static void compose(const tr_unicode *unicode, pending *p) {
    size_t out = 0, starter = SIZE_MAX;
    int last = 0; // the class of what stands before and did not compose
    for (size_t i = 0; i < p->count; i++) {
        item next = p->items[i];
        bool blocked = starter == SIZE_MAX ||
                       (out - 1 > starter && (last >= next.order || last == 0));
        uint32_t both =
            blocked ? 0 : compose_pair(unicode, p->items[starter].c, next.c);
        if (both) {
            p->items[starter].c = both;
            continue;
        }
        if (next.order == 0) {
            starter = out;
        }
        last = next.order;
        p->items[out++] = next;
    }
    p->count = out;
}

static void flush(const tr_unicode *unicode, pending *p, tr_form form, tr_text *text) {
    reorder(p);
    if (form.compose) {
        compose(unicode, p);
    }
    for (size_t i = 0; i < p->count; i++) {
        tr__text_put(text, p->items[i].c);
    }
    p->count = 0;
}

// Flags of characters that the form may change, or that may join what stands before.
static uint32_t unstable(tr_form form) {
    uint32_t flags = TR_HAS_CANONICAL | TR_COMBINES;
    if (form.compatibility) {
        flags |= TR_HAS_COMPATIBILITY;
    }
    return form.compose ? flags | TR_COMPOSES_LEFT : flags;
}

void tr__normalize(const tr_unicode *unicode, tr_form form, const unsigned char *from,
                   size_t bytes, tr_text *text) {
    pending p = {0};
    uint32_t moves = unstable(form);
    size_t copied = 0, stable = 0, at = 0, length; // stable: of the last such character
    while (at < bytes) {
        uint32_t c = tr__utf8_read(from + at, &length);
        if (c < 0x80 || !(unicode->flags[c] & moves)) {
            stable = at;
            at += length;
            continue;
        }
        // From the stable character before up to the next stable one.
        tr__text_add(text, from + copied, stable - copied);
        for (at = stable; at < bytes; at += length) {
            c = tr__utf8_read(from + at, &length);
            if (at > stable && (c < 0x80 || !(unicode->flags[c] & moves))) {
                break;
            }
            decompose(unicode, &p, c, form.compatibility);
        }
        flush(unicode, &p, form, text);
        copied = stable = at;
    }
    tr__text_add(text, from + copied, bytes - copied);
    text->failed |= p.failed;
    tr__free(p.items);
    tr__free(p.sorted);
}

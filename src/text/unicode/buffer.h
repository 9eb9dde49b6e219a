// Growing arrays: text, spans of text, token ids. A failure is kept, so that a caller
// asks once, at the end of what it wrote.
#ifndef TR_TEXT_UNICODE_BUFFER_H
#define TR_TEXT_UNICODE_BUFFER_H

#include "text/unicode/utf8.h"

#include <tranche/status.h>

#include <string.h>

typedef struct tr_text { // zero-initialized: empty
    unsigned char *bytes;
    size_t count, capacity;
    bool failed;  // no memory: what was added after is missing
    bool over;    // failed, as it would have more bytes than `limit`
    size_t limit; // 0: none
} tr_text;

// A part of a text: [begin, end).
typedef struct tr_text_span {
    size_t begin, end;
} tr_text_span;

typedef struct tr_text_spans {
    tr_text_span *span;
    size_t count, capacity;
    bool failed;
} tr_text_spans;

// Room for `more` elements; false, and `failed`, where there is no memory.
bool tr__text_reserve(tr_text *text, size_t more);
bool tr__spans_reserve(tr_text_spans *spans);
void tr__text_release(tr_text *text);
void tr__spans_release(tr_text_spans *spans);

static inline void tr__text_add(tr_text *text, const void *bytes, size_t count) {
    if (count > 0 &&
        (text->capacity - text->count >= count || tr__text_reserve(text, count))) {
        memcpy(text->bytes + text->count, bytes, count);
        text->count += count;
    }
}

static inline void tr__text_put(tr_text *text, uint32_t c) {
    if (text->capacity - text->count >= TR_UTF8_MAX ||
        tr__text_reserve(text, TR_UTF8_MAX)) {
        text->count += tr__utf8_write(c, text->bytes + text->count);
    }
}

static inline void tr__text_clear(tr_text *text) {
    text->count = 0;
    text->failed = text->over = false;
}

// An empty span is not added.
static inline void tr__spans_add(tr_text_spans *spans, size_t begin, size_t end) {
    if (begin < end && (spans->count < spans->capacity || tr__spans_reserve(spans))) {
        spans->span[spans->count++] = (tr_text_span){begin, end};
    }
}

static inline void tr__spans_clear(tr_text_spans *spans) {
    spans->count = 0;
    spans->failed = false;
}

// How long a text may become that a file's rules make of `bytes` bytes. Real tokenizers
// make three bytes of a blank, and at most eleven of another character.
enum { TR_GROWTH = 64, TR_GROWTH_LARGE = 4, TR_GROWTH_FREE = 1 << 16 };
size_t tr__text_growth(size_t bytes);
// Appends `bytes` bytes of `from`; what is not UTF-8 becomes U+FFFD, one for each
// longest part that could have begun a character, as Python's decode('utf-8',
// 'replace') has it.
void tr__text_repair(tr_text *text, const unsigned char *from, size_t bytes);

#endif

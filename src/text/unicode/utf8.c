#include "text/unicode/utf8.h"

#include "text/unicode/buffer.h"

// The bytes that may follow a first byte are [low, high] for the second one and
// [0x80, 0xbf] for the others (The Unicode Standard, table 3-7).
typedef struct form {
    size_t length; // 0: no character begins so
    unsigned char low, high;
} form;

static form form_of(unsigned char first) {
    if (first < 0x80) {
        return (form){1, 0, 0};
    }
    if (first < 0xc2 || first > 0xf4) {
        return (form){0, 0, 0};
    }
    if (first < 0xe0) {
        return (form){2, 0x80, 0xbf};
    }
    if (first < 0xf0) {
        return (form){3, first == 0xe0 ? 0xa0 : 0x80, first == 0xed ? 0x9f : 0xbf};
    }
    return (form){4, first == 0xf0 ? 0x90 : 0x80, first == 0xf4 ? 0x8f : 0xbf};
}

// How many bytes at `text` belong together; *valid: they are a character.
static size_t take(const unsigned char *text, size_t bytes, bool *valid) {
    form f = form_of(text[0]);
    *valid = false;
    if (f.length == 0) {
        return 1;
    }
    for (size_t i = 1; i < f.length; i++) {
        unsigned char low = i == 1 ? f.low : 0x80, high = i == 1 ? f.high : 0xbf;
        if (i == bytes || text[i] < low || text[i] > high) {
            return i;
        }
    }
    *valid = true;
    return f.length;
}

size_t tr__utf8_valid(const unsigned char *text, size_t bytes) {
    size_t at = 0;
    bool valid = true;
    while (at < bytes) {
        uint64_t word;
        if (bytes - at >= sizeof word) {
            memcpy(&word, text + at, sizeof word);
            if (!(word & 0x8080808080808080u)) {
                at += sizeof word;
                continue;
            }
        }
        size_t length = take(text + at, bytes - at, &valid);
        if (!valid) {
            return at;
        }
        at += length;
    }
    return at;
}

void tr__text_repair(tr_text *text, const unsigned char *from, size_t bytes) {
    size_t at = 0;
    while (at < bytes && !text->failed) {
        size_t good = tr__utf8_valid(from + at, bytes - at);
        tr__text_add(text, from + at, good);
        at += good;
        if (at < bytes) {
            bool valid;
            at += take(from + at, bytes - at, &valid);
            tr__text_put(text, 0xfffd);
        }
    }
}

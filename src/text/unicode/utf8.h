// UTF-8, a character at a time. The text is known to be valid (tr__utf8_repair).
#ifndef TR_TEXT_UNICODE_UTF8_H
#define TR_TEXT_UNICODE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TR_UTF8_MAX = 4, TR_CODE_POINTS = 0x110000 };

// The character at `at` and, in *length, its bytes.
static inline uint32_t tr__utf8_read(const unsigned char *at, size_t *length) {
    uint32_t c = at[0];
    if (c < 0x80) {
        *length = 1;
        return c;
    }
    if (c < 0xe0) {
        *length = 2;
        return (c & 0x1f) << 6 | (at[1] & 0x3f);
    }
    if (c < 0xf0) {
        *length = 3;
        return (c & 0x0f) << 12 | (at[1] & 0x3fu) << 6 | (at[2] & 0x3f);
    }
    *length = 4;
    return (c & 0x07) << 18 | (at[1] & 0x3fu) << 12 | (at[2] & 0x3fu) << 6 |
           (at[3] & 0x3f);
}

// The bytes of the character that begins with this byte.
static inline size_t tr__utf8_length(unsigned char first) {
    return first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

static inline bool tr__utf8_continues(unsigned char byte) {
    return (byte & 0xc0) == 0x80;
}

// The character that ends before `at`, which is not the begin of the text.
static inline uint32_t tr__utf8_before(const unsigned char *at) {
    size_t length;
    do {
        at--;
    } while (tr__utf8_continues(*at));
    return tr__utf8_read(at, &length);
}

// Writes a character to dst, [TR_UTF8_MAX], and returns its bytes.
static inline size_t tr__utf8_write(uint32_t c, unsigned char *dst) {
    if (c < 0x80) {
        dst[0] = (unsigned char)c;
        return 1;
    }
    if (c < 0x800) {
        dst[0] = (unsigned char)(0xc0 | c >> 6);
        dst[1] = (unsigned char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        dst[0] = (unsigned char)(0xe0 | c >> 12);
        dst[1] = (unsigned char)(0x80 | (c >> 6 & 0x3f));
        dst[2] = (unsigned char)(0x80 | (c & 0x3f));
        return 3;
    }
    dst[0] = (unsigned char)(0xf0 | c >> 18);
    dst[1] = (unsigned char)(0x80 | (c >> 12 & 0x3f));
    dst[2] = (unsigned char)(0x80 | (c >> 6 & 0x3f));
    dst[3] = (unsigned char)(0x80 | (c & 0x3f));
    return 4;
}

// Bytes from the begin of `text` that are valid UTF-8.
size_t tr__utf8_valid(const unsigned char *text, size_t bytes);

#endif

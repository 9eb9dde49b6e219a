#include "text/tokenizer/byte_level.h"

// Bytes that are written as they are: ! to ~, and U+00A1 to U+00FF but the soft hyphen.
static bool is_plain(uint32_t c) {
    return (c >= 0x21 && c <= 0x7e) || (c >= 0xa1 && c <= 0xff && c != 0xad);
}

// The others, in order: 0x00-0x20, 0x7f-0xa0, 0xad.
uint32_t tr__byte_level_character(unsigned char byte) {
    if (is_plain(byte)) {
        return byte;
    }
    return 0x100u + (byte <= 0x20 ? byte : byte == 0xad ? 67u : byte - 0x7fu + 0x21u);
}

int tr__byte_level_byte(uint32_t c) {
    if (c < 0x100) {
        return is_plain(c) ? (int)c : -1;
    }
    uint32_t n = c - 0x100;
    return n <= 0x20 ? (int)n : n < 67 ? (int)(n - 0x21 + 0x7f) : n == 67 ? 0xad : -1;
}

bool tr__byte_level_bytes(const unsigned char *token, size_t count, tr_text *bytes) {
    size_t before = bytes->count, length;
    for (size_t at = 0; at < count; at += length) {
        int byte = tr__byte_level_byte(tr__utf8_read(token + at, &length));
        unsigned char one = (unsigned char)byte;
        if (byte < 0) {
            bytes->count = before;
            return false;
        }
        tr__text_add(bytes, &one, 1);
    }
    return true;
}

#include "text/template/characters.h"

#include "text/unicode/utf8.h"

uint32_t tr__jinja_character(tr_jinja_string text, size_t at, size_t *length) {
    return tr__utf8_read((const unsigned char *)text.bytes + at, length);
}

size_t tr__jinja_character_write(uint32_t c, char *dst) {
    return tr__utf8_write(c, (unsigned char *)dst);
}

bool tr__jinja_is_space(uint32_t c) {
    return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xa0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
           c == 0x202f || c == 0x205f || c == 0x3000;
}

size_t tr__jinja_blanks_before(tr_jinja_string text) {
    size_t at = 0, length = 0;
    while (at < text.count &&
           tr__jinja_is_space(tr__jinja_character(text, at, &length))) {
        at += length;
    }
    return at;
}

size_t tr__jinja_blanks_after(tr_jinja_string text) {
    size_t end = text.count, length = 0;
    while (end > 0) {
        size_t at = end - 1;
        while (tr__utf8_continues((unsigned char)text.bytes[at])) {
            at--;
        }
        if (!tr__jinja_is_space(tr__jinja_character(text, at, &length))) {
            break;
        }
        end = at;
    }
    return end;
}

int64_t tr__jinja_length(tr_jinja_string text) {
    int64_t count = 0;
    for (size_t at = 0, length = 0; at < text.count; at += length, count++) {
        tr__jinja_character(text, at, &length);
    }
    return count;
}

size_t tr__jinja_byte_of(tr_jinja_string text, int64_t index) {
    size_t at = 0, length = 0;
    for (int64_t i = 0; i < index && at < text.count; i++, at += length) {
        tr__jinja_character(text, at, &length);
    }
    return at;
}

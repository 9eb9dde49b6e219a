#include "text/template/text_case.h"

#include <string.h>

static bool is_ascii_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c;
}

static char upper(char c) {
    return c >= 'a' && c <= 'z' ? (char)(c + 'A' - 'a') : c;
}

// Blanks, punctuation and symbols of the general planes, CJK and emoji have no case.
static bool has_no_case(uint32_t c) {
    return c < 0x80 || (c >= 0xa0 && c < 0xc0 && c != 0xaa && c != 0xb5 && c != 0xba) ||
           (c >= 0x2000 && c < 0x2070) || (c >= 0x2200 && c < 0x2460) ||
           (c >= 0x2500 && c < 0x2c00) || (c >= 0x3000 && c < 0xa640) ||
           (c >= 0xac00 && c < 0xd800) || (c >= 0x1f300 && c < 0x1fb00);
}

bool tr__jinja_case_known(uint32_t c) {
    return has_no_case(c);
}

static uint32_t flags_of(tr_jinja_run *run, uint32_t c) {
    if (!run->unicode.flags && run->status == TR_OK) {
        run->status = tr__unicode_create(&run->unicode, run->err);
    }
    return run->unicode.flags ? run->unicode.flags[c] : 0;
}

bool tr__jinja_is_letter(tr_jinja_run *run, uint32_t c) {
    return flags_of(run, c) & TR_LETTER;
}

bool tr__jinja_is_numeric(tr_jinja_run *run, uint32_t c) {
    return flags_of(run, c) & TR_NUMBER;
}

static void check(tr_jinja_run *run, tr_jinja_string text) {
    for (size_t at = 0, length = 0; at < text.count && run->status == TR_OK;
         at += length) {
        uint32_t c = tr__jinja_character(text, at, &length);
        if (!has_no_case(c)) {
            tr__jinja_fail(run, "upper case beyond ASCII is not supported (U+%04X)", c);
        }
    }
}

static bool is_ascii(tr_jinja_string text) {
    bool ascii = true;
    for (size_t i = 0; i < text.count; i++) {
        ascii = ascii && (unsigned char)text.bytes[i] < 0x80;
    }
    return ascii;
}

static void put_lower(tr_jinja_run *run, tr_jinja_buffer *to, uint32_t c) {
    enum { SIGMA = 0x3a3 };
    uint32_t small[2];
    char bytes[4];
    if (c == SIGMA) {
        tr__jinja_fail(run, "lower case of a Greek sigma is not supported");
        return;
    }
    size_t count = tr__unicode_lowercase(&run->unicode, c, small);
    for (size_t i = 0; i < count; i++) {
        size_t length = tr__jinja_character_write(small[i], bytes);
        tr__jinja_add(run, to, (tr_jinja_string){bytes, length});
    }
}

static tr_jinja_value lower_all(tr_jinja_run *run, tr_jinja_string text) {
    tr_jinja_buffer to = {0};
    flags_of(run, 0);
    for (size_t at = 0, length = 0; at < text.count && run->status == TR_OK;
         at += length) {
        put_lower(run, &to, tr__jinja_character(text, at, &length));
    }
    return tr__jinja_text(to.bytes ? to.bytes : "", to.count);
}

// Does a word begin behind byte `last`, as jinja2's `title` has it?
static bool ends_word(tr_jinja_string text, size_t last) {
    size_t begin = last, length = 0;
    while (begin > 0 && ((unsigned char)text.bytes[begin] & 0xc0) == 0x80) {
        begin--;
    }
    uint32_t c = tr__jinja_character(text, begin, &length);
    return tr__jinja_is_space(c) || (c && c < 0x80 && strchr("-({[<", (int)c));
}

tr_jinja_value tr__jinja_change_case(tr_jinja_run *run, tr_jinja_string text,
                                     tr_jinja_case to) {
    if (to == TR_CASE_LOWER && !is_ascii(text)) {
        return lower_all(run, text);
    }
    tr_jinja_value value = tr__jinja_make_text(run, text);
    char *bytes = (char *)value.as.text.bytes;
    bool begins = true; // a word, or the text
    check(run, text);
    for (size_t i = 0; i < value.as.text.count; i++) {
        char old = bytes[i];
        bool raise = to == TR_CASE_UPPER || (to == TR_CASE_SWAP && old == lower(old)) ||
                     (to >= TR_CASE_CAPITAL && to != TR_CASE_SWAP && begins);
        bytes[i] = raise ? upper(old) : lower(old);
        begins = to == TR_CASE_TITLE         ? !is_ascii_letter(old)
                 : to == TR_CASE_TITLE_WORDS ? ends_word(value.as.text, i)
                                             : false;
    }
    return value;
}

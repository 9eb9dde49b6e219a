// Characters of UTF-8 text, as Python's str has them. All texts are valid UTF-8: the
// parser and the reader of JSON see to it, and texts are cut between characters only.
#ifndef TR_TEXT_TEMPLATE_CHARACTERS_H
#define TR_TEXT_TEMPLATE_CHARACTERS_H

#include "text/template/value.h"

// The character at `at` (at < text.count) and, in *length, its bytes.
uint32_t tr__jinja_character(tr_jinja_string text, size_t at, size_t *length);
// dst: [4]; returns the bytes.
size_t tr__jinja_character_write(uint32_t c, char *dst);
// str.isspace
bool tr__jinja_is_space(uint32_t c);
// The bytes of blanks at the begin of a text, and where those at its end begin.
size_t tr__jinja_blanks_before(tr_jinja_string text);
size_t tr__jinja_blanks_after(tr_jinja_string text);
// len(text)
int64_t tr__jinja_length(tr_jinja_string text);
// The byte at which character `index` begins; text.count where there is none.
size_t tr__jinja_byte_of(tr_jinja_string text, int64_t index);

static inline tr_jinja_string tr__jinja_part(tr_jinja_string text, size_t begin,
                                             size_t end) {
    return (tr_jinja_string){text.bytes + begin, end - begin};
}

#endif

// The four normalization forms of Unicode (Unicode Standard Annex 15).
#ifndef TR_TEXT_UNICODE_NORMALIZE_H
#define TR_TEXT_UNICODE_NORMALIZE_H

#include "text/unicode/buffer.h"
#include "text/unicode/unicode.h"

typedef struct tr_form {
    bool compose, compatibility;
} tr_form;

// Appends the form of `from` to `text`. `text->failed`: no memory.
void tr__normalize(const tr_unicode *unicode, tr_form form, const unsigned char *from,
                   size_t bytes, tr_text *text);

#endif

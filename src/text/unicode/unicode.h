// What is known of a character: classes, lower case, decompositions. The answers are
// those of Hugging Face's `tokenizers` (see tools/unicode_tables.py).
#ifndef TR_TEXT_UNICODE_UNICODE_H
#define TR_TEXT_UNICODE_UNICODE_H

#include "text/unicode/unicode_data.h"
#include "text/unicode/utf8.h"

#include <tranche/status.h>

// The first sixteen are in the packed table, in this order.
enum {
    TR_LETTER = 1 << 0,           // \p{L}
    TR_NUMBER = 1 << 1,           // \p{N}
    TR_MARK = 1 << 2,             // \p{M}
    TR_PUNCTUATION = 1 << 3,      // \p{P}
    TR_SYMBOL = 1 << 4,           // \p{S}
    TR_SPACE = 1 << 5,            // \s
    TR_UPPER = 1 << 6,            // \p{Lu} and \p{Lt}
    TR_LOWER = 1 << 7,            // \p{Ll}
    TR_NUMERIC = 1 << 8,          // the pre-tokenizer Digits
    TR_BERT_PUNCTUATION = 1 << 9, // BertPreTokenizer
    TR_BERT_CONTROL = 1 << 10,    // BertNormalizer removes it
    TR_BERT_MARK = 1 << 11,       // BertNormalizer's strip_accents
    TR_ACCENT = 1 << 12,          // StripAccents
    TR_BERT_SPACE = 1 << 13,      // BertNormalizer makes it a space
    TR_WORD = 1 << 14,            // \w of added tokens and of Whitespace
    TR_PUNCT = 1 << 15,           // the pre-tokenizer Punctuation
    // Found from the other tables:
    TR_HAS_LOWER = 1 << 16,
    TR_HAS_CANONICAL = 1 << 17, // decomposition
    TR_HAS_COMPATIBILITY = 1 << 18,
    TR_COMBINES = 1 << 19,     // its canonical combining class is not 0
    TR_COMPOSES_LEFT = 1 << 20 // it is the second of a pair that composes
};

typedef struct tr_unicode {
    uint32_t *flags; // [TR_CODE_POINTS]
    tr_unicode_tables tables;
} tr_unicode;

tr_status tr__unicode_create(tr_unicode *unicode, tr_error *err);
void tr__unicode_release(tr_unicode *unicode);

// Lower case to dst, [2]; returns how many characters.
size_t tr__unicode_lowercase(const tr_unicode *unicode, uint32_t c, uint32_t *dst);
// 0 for most.
int tr__unicode_combining_class(const tr_unicode *unicode, uint32_t c);
// The full decomposition, without reordering; NULL: it is itself. Hangul syllables are
// not in the table (normalize.c).
const uint32_t *tr__unicode_decompose(const tr_unicode *unicode, uint32_t c,
                                      bool compatibility, size_t *count);
// 0: the two do not compose.
uint32_t tr__unicode_compose(const tr_unicode *unicode, uint32_t first,
                             uint32_t second);

#endif

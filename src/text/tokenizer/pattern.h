// What a Split or a Replace looks for: a text, or a regular expression. The expressions
// of widespread models have matchers of their own (pattern_known.c); PCRE2 finds any
// other one.
#ifndef TR_TEXT_TOKENIZER_PATTERN_H
#define TR_TEXT_TOKENIZER_PATTERN_H

#include "text/tokenizer/node.h"
#include "text/unicode/buffer.h"
#include "text/unicode/unicode.h"

// The end of the match that begins at `at` < end, or `at` where none does.
typedef size_t (*tr_matcher)(const uint32_t *flags, const unsigned char *text,
                             size_t at, size_t end);

typedef struct tr_pattern {
    tr_matcher matcher; // one of these three
    char *literal;
    void *code; // pcre2_code
    size_t literal_bytes;
    const tr_unicode *unicode;
} tr_pattern;

// {"String": ...}, {"Regex": ...} or a bare string.
tr_status tr__pattern_parse(const tr_node *node, const tr_unicode *unicode,
                            tr_pattern *pattern, tr_error *err);
void tr__pattern_release(tr_pattern *pattern);

// Cuts text[begin, end) into matches and what lies between: spans in order; the last
// bit of kinds[i] (a byte each) says whether span i is a match. Empty matches are left
// out, as no caller can tell them.
tr_status tr__pattern_cut(const tr_pattern *pattern, const unsigned char *text,
                          tr_text_span within, tr_text_spans *spans, tr_text *kinds,
                          tr_error *err);

// GPT-2's expression, which the pre-tokenizer ByteLevel has of its own.
extern const char tr__pattern_gpt2[];
// NULL: not one of those known.
tr_matcher tr__pattern_known(const char *expression);

// PCRE2, in a file of its own.
tr_status tr__regex_compile(const tr_node *node, const char *expression, size_t bytes,
                            void **code, tr_error *err);
void tr__regex_release(void *code);
tr_status tr__regex_cut(const void *code, const unsigned char *text,
                        tr_text_span within, tr_text_spans *spans, tr_text *kinds,
                        tr_error *err);

static inline void tr__cut_add(tr_text_spans *spans, tr_text *kinds, size_t begin,
                               size_t end, bool match) {
    if (begin < end) {
        unsigned char kind = match;
        tr__spans_add(spans, begin, end);
        tr__text_add(kinds, &kind, 1);
    }
}

#endif

// The pre-tokenizer of tokenizer.json: a chain of steps that cut a text into words, and
// may change it on the way.
#ifndef TR_TEXT_TOKENIZER_PRETOKENIZER_H
#define TR_TEXT_TOKENIZER_PRETOKENIZER_H

#include "text/tokenizer/pattern.h"

typedef enum tr_cut_behavior {
    TR_CUT_REMOVED,
    TR_CUT_ISOLATED,
    TR_CUT_MERGED_WITH_PREVIOUS,
    TR_CUT_MERGED_WITH_NEXT,
    TR_CUT_CONTIGUOUS,
} tr_cut_behavior;

typedef enum tr_cut_kind {
    TR_CUT_PATTERN,     // Split, CharDelimiterSplit, the expression of ByteLevel
    TR_CUT_CLASS,       // by a class of characters: Digits, Punctuation, ...
    TR_CUT_WORDS,       // Whitespace: \w+|[^\w\s]+
    TR_CUT_METASPACE,   // blanks to ▁, and one before the text
    TR_CUT_BYTE_PREFIX, // ByteLevel: a blank before each piece
    TR_CUT_BYTE_LEVEL,  // ByteLevel: bytes as characters
} tr_cut_kind;

typedef enum tr_prepend {
    TR_PREPEND_ALWAYS,
    TR_PREPEND_FIRST,
    TR_PREPEND_NEVER
} tr_prepend;

typedef struct tr_cut_step {
    tr_cut_kind kind;
    tr_cut_behavior behavior;
    bool invert;
    tr_pattern pattern;
    uint32_t flags; // TR_CUT_CLASS
    tr_prepend prepend;
    unsigned char mark[TR_UTF8_MAX]; // Metaspace's, for a blank
    size_t mark_bytes;
} tr_cut_step;

typedef struct tr_pretokenizer {
    const tr_unicode *unicode;
    tr_cut_step *step;
    size_t count, capacity;
} tr_pretokenizer;

tr_status tr__pretokenizer_parse(const tr_node *node, const tr_unicode *unicode,
                                 tr_pretokenizer *pretokenizer, tr_error *err);
void tr__pretokenizer_release(tr_pretokenizer *pretokenizer);

// A text in pieces, and what steps write their results to.
typedef struct tr_words {
    const unsigned char *text;
    tr_text_spans spans, next, cut;
    tr_text kinds, buffer[2];
} tr_words;

void tr__words_release(tr_words *words);
// Cuts text[0, bytes) to `words`. first: the text begins where the whole one does.
tr_status tr__pretokenizer_run(const tr_pretokenizer *pretokenizer, tr_words *words,
                               const unsigned char *text, size_t bytes, bool first,
                               tr_error *err);

#endif

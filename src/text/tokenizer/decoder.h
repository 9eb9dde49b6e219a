// The decoder of tokenizer.json: a chain of steps from tokens to text.
#ifndef TR_TEXT_TOKENIZER_DECODER_H
#define TR_TEXT_TOKENIZER_DECODER_H

#include "text/tokenizer/pattern.h"

typedef enum tr_decode_kind {
    TR_DECODE_BYTE_LEVEL,
    TR_DECODE_BYTE_FALLBACK,
    TR_DECODE_FUSE,
    TR_DECODE_REPLACE,
    TR_DECODE_STRIP,
    TR_DECODE_METASPACE,
    TR_DECODE_WORDPIECE,
    TR_DECODE_SUFFIX,
} tr_decode_kind;

typedef struct tr_decode_step {
    tr_decode_kind kind;
    tr_pattern pattern;       // Replace
    tr_text text;             // the replacement, what is stripped, a prefix or a suffix
    int64_t start, stop;      // Strip: at most so many
    bool cleanup, drop_first; // WordPiece; Metaspace
} tr_decode_step;

typedef struct tr_decoder {
    tr_decode_step *step;
    size_t count, capacity;
    bool any; // the file has a decoder; else blanks stand between tokens
} tr_decoder;

// Tokens as parts of a text; parts may be empty.
typedef struct tr_strings {
    tr_text text;
    tr_text_span *span; // [count]
    size_t count, capacity;
} tr_strings;

// Ends the string that what was written to `strings->text` since `begin` makes.
void tr__strings_end(tr_strings *strings, size_t begin);
void tr__strings_release(tr_strings *strings);

tr_status tr__decoder_parse(const tr_node *node, const tr_unicode *unicode,
                            tr_decoder *decoder, tr_error *err);
void tr__decoder_release(tr_decoder *decoder);
// Turns tokens to text: what remains in strings->text.
tr_status tr__decoder_run(const tr_decoder *decoder, tr_strings *strings,
                          tr_error *err);

#endif

// The normalizer of tokenizer.json: a chain of changes to the text.
#ifndef TR_TEXT_TOKENIZER_NORMALIZER_H
#define TR_TEXT_TOKENIZER_NORMALIZER_H

#include "text/tokenizer/pattern.h"
#include "text/unicode/normalize.h"

typedef enum tr_normalizer_kind {
    TR_NORMALIZE_FORM,
    TR_NORMALIZE_LOWERCASE,
    TR_NORMALIZE_STRIP_ACCENTS,
    TR_NORMALIZE_STRIP,
    TR_NORMALIZE_PREPEND,
    TR_NORMALIZE_REPLACE,
    TR_NORMALIZE_BERT_CLEAN,
    TR_NORMALIZE_BERT_CHINESE,
    TR_NORMALIZE_BERT_ACCENTS,
} tr_normalizer_kind;

typedef struct tr_normalizer_step {
    tr_normalizer_kind kind;
    tr_form form;
    bool left, right; // Strip
    tr_pattern pattern;
    tr_text content; // of Prepend and Replace
} tr_normalizer_step;

typedef struct tr_normalizer {
    const tr_unicode *unicode;
    tr_normalizer_step *step;
    size_t count, capacity;
} tr_normalizer;

tr_status tr__normalizer_parse(const tr_node *node, const tr_unicode *unicode,
                               tr_normalizer *normalizer, tr_error *err);
void tr__normalizer_release(tr_normalizer *normalizer);

// Where steps leave their texts, one after the other.
typedef struct tr_normalized {
    tr_text text[2];
    tr_text_spans spans;
    tr_text kinds;
} tr_normalized;

void tr__normalized_release(tr_normalized *normalized);

// *out: `text` itself where nothing changes it, else a part of `normalized`. continues:
// it goes on a text that was cut, so that nothing is prepended.
tr_status tr__normalizer_run(const tr_normalizer *normalizer, tr_normalized *normalized,
                             const unsigned char *text, size_t bytes, bool continues,
                             const unsigned char **out, size_t *out_bytes,
                             tr_error *err);

#endif

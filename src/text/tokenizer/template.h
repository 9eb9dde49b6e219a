// The post-processor of tokenizer.json, as far as ids and types go: which tokens begin
// and end a text, or stand around a pair of texts, and of what type tokens are.
#ifndef TR_TEXT_TOKENIZER_TEMPLATE_H
#define TR_TEXT_TOKENIZER_TEMPLATE_H

#include "text/tokenizer/ids.h"
#include "text/tokenizer/node.h"

// A part that is no token, but the ids of a text.
enum { TR_TEMPLATE_FIRST = -1, TR_TEMPLATE_SECOND = -2 };

// Tokens and texts in their order, each with its type: 0 or more.
typedef struct tr_template_parts {
    tr_token_ids part; // ids, TR_TEMPLATE_FIRST, TR_TEMPLATE_SECOND
    tr_token_ids type; // [part.count]
} tr_template_parts;

typedef struct tr_template {
    tr_token_ids before, after;     // around a text
    tr_template_parts single, pair; // the same, and around two of them
    int steps;                      // post-processors that add tokens
} tr_template;

tr_status tr__template_parse(const tr_node *node, tr_template *template, tr_error *err);
// Appends the ids of a text, or of two (second is not NULL), with their tokens and
// types. TR_DATA: the file says nothing of pairs. TR_MEMORY.
tr_status tr__template_fill(const tr_template *template, const tr_token_ids *first,
                            const tr_token_ids *second, tr_token_ids *ids,
                            tr_token_ids *types, tr_error *err);
// The number of tokens that are put around a text, or around two.
size_t tr__template_more(const tr_template *template, bool pair);
void tr__template_release(tr_template *template);

#endif

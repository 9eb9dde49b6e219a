// The post-processor of tokenizer.json, as far as ids go: which tokens begin and end a
// text.
#ifndef TR_TEXT_TOKENIZER_TEMPLATE_H
#define TR_TEXT_TOKENIZER_TEMPLATE_H

#include "text/tokenizer/ids.h"
#include "text/tokenizer/node.h"

typedef struct tr_template {
    tr_token_ids before, after;
} tr_template;

tr_status tr__template_parse(const tr_node *node, tr_template *template, tr_error *err);
void tr__template_release(tr_template *template);

#endif

// The text of a template as a row of tokens.
//
// Blanks around tags are taken away here, as jinja2 does it with trim_blocks and
// lstrip_blocks: {%- and -%} take all, a block that begins a line takes the blanks
// before it, and a block's end takes one line end after it.
#ifndef TR_TEXT_TEMPLATE_LEXER_H
#define TR_TEXT_TEMPLATE_LEXER_H

#include "text/template/arena.h"
#include "text/template/value.h"

#include <tranche/status.h>

typedef enum tr_jinja_token_kind {
    TR_TOKEN_END, // of the template
    TR_TOKEN_DATA,
    TR_TOKEN_PRINT_BEGIN, // {{
    TR_TOKEN_PRINT_END,
    TR_TOKEN_BLOCK_BEGIN, // {%
    TR_TOKEN_BLOCK_END,
    TR_TOKEN_NAME,
    TR_TOKEN_TEXT,
    TR_TOKEN_NUMBER,
    TR_TOKEN_OPERATOR,
} tr_jinja_token_kind;

typedef struct tr_jinja_token {
    tr_jinja_token_kind kind;
    int line;
    tr_jinja_string text;  // of data, names, texts (without their escapes), operators
    tr_jinja_value number; // of a number
} tr_jinja_token;

typedef struct tr_jinja_tokens {
    tr_jinja_token *token; // [count]; the last is TR_TOKEN_END
    size_t count;
} tr_jinja_tokens;

// text: lives as long as the tokens. name: for messages. TR_DATA, TR_MEMORY.
tr_status tr__jinja_lex(tr_jinja_arena *arena, const char *name, tr_jinja_string text,
                        tr_jinja_tokens *out, tr_error *err);

#endif

// The parser: expressions, and statements above them.
//
// The first failure is kept in `status`. From then on the parser stands at the end of
// the template and makes nodes that nobody looks at, so callers need not ask.
#ifndef TR_TEXT_TEMPLATE_PARSER_H
#define TR_TEXT_TEMPLATE_PARSER_H

#include "text/template/lexer.h"
#include "text/template/node.h"

typedef struct tr_jinja_parser {
    struct tr_jinja *jinja;
    const tr_jinja_token *token; // the current one
    const tr_jinja_token *end;
    int depth, loops; // of nested parts; of loops around (break, continue)
    int fors;         // of loops around, with what stands in their `else`
    tr_status status;
    tr_jinja_node spare; // where there is no memory for another
    tr_error *err;
} tr_jinja_parser;

enum { TR_JINJA_NESTED_MAX = 100 }; // parts within parts of a template

// Fails at the line of the current token.
void tr__jinja_parser_fail(tr_jinja_parser *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void tr__jinja_parser_no_memory(tr_jinja_parser *p);
void tr__jinja_parser_unexpected(tr_jinja_parser *p, const char *expected);
bool tr__jinja_parser_enter(tr_jinja_parser *p); // false: too deep
static inline void tr__jinja_parser_leave(tr_jinja_parser *p) {
    p->depth--;
}

// Is the current token this name, this operator?
bool tr__jinja_at_name(const tr_jinja_parser *p, const char *name);
bool tr__jinja_at_operator(const tr_jinja_parser *p, const char *operator);
const tr_jinja_token *tr__jinja_next(tr_jinja_parser *p); // returns the one passed
bool tr__jinja_skip_name(tr_jinja_parser *p, const char *name);
bool tr__jinja_skip_operator(tr_jinja_parser *p, const char *operator);
void tr__jinja_expect_operator(tr_jinja_parser *p, const char *operator);
tr_jinja_string tr__jinja_expect_name(tr_jinja_parser *p); // any

// A new node at the current line.
tr_jinja_node *tr__jinja_node(tr_jinja_parser *p, tr_jinja_node_kind kind);
void tr__jinja_append(tr_jinja_nodes *nodes, tr_jinja_node *node);

// What an expression may be where it stands.
typedef enum tr_jinja_wanted {
    TR_WANTED_ANY,
    TR_WANTED_NO_CHOICE, // no `a if b else c`: of what a loop goes through
    TR_WANTED_PRIMARY,   // names and literals: a target
} tr_jinja_wanted;

tr_jinja_node *tr__jinja_parse_expression(tr_jinja_parser *p);
// Also a, b without parentheses. until: a name at which a tuple ends; NULL: none.
tr_jinja_node *tr__jinja_parse_tuple(tr_jinja_parser *p, tr_jinja_wanted wanted,
                                     const char *until);
// | name(...) | ..., the first one without its bar; node: NULL in blocks.
tr_jinja_node *tr__jinja_parse_filters(tr_jinja_parser *p, tr_jinja_node *node,
                                       bool bar);

#endif

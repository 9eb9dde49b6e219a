#include "text/template/parser.h"

#include "base/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void tr__jinja_parser_fail(tr_jinja_parser *p, const char *format, ...) {
    char what[256];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    if (p->status == TR_OK) {
        p->status =
            tr_fail(p->err, TR_DATA, "%s:%d: %s", p->jinja->name, p->token->line, what);
        p->token = p->end;
    }
}

void tr__jinja_parser_no_memory(tr_jinja_parser *p) {
    if (p->status == TR_OK) {
        p->status =
            tr_fail(p->err, TR_MEMORY, "no memory for the template %s", p->jinja->name);
        p->token = p->end;
    }
}

void tr__jinja_parser_unexpected(tr_jinja_parser *p, const char *expected) {
    const tr_jinja_token *t = p->token;
    const char *what = t->kind == TR_TOKEN_END           ? "the end of the template"
                       : t->kind == TR_TOKEN_PRINT_END   ? "}}"
                       : t->kind == TR_TOKEN_BLOCK_END   ? "%}"
                       : t->kind == TR_TOKEN_DATA        ? "text"
                       : t->kind == TR_TOKEN_PRINT_BEGIN ? "{{"
                       : t->kind == TR_TOKEN_BLOCK_BEGIN ? "{%"
                                                         : NULL;
    int bytes = t->text.count < 40 ? (int)t->text.count : 40;
    if (what) {
        tr__jinja_parser_fail(p, "expected %s, found %s", expected, what);
    } else {
        tr__jinja_parser_fail(p, "expected %s, found '%.*s'", expected, bytes,
                              t->text.bytes);
    }
}

bool tr__jinja_parser_enter(tr_jinja_parser *p) {
    if (++p->depth > TR_JINJA_NESTED_MAX) {
        tr__jinja_parser_fail(p, "the template is nested too deeply: %d levels at most",
                              TR_JINJA_NESTED_MAX);
        return false;
    }
    return true;
}

static bool at_word(const tr_jinja_parser *p, tr_jinja_token_kind kind,
                    const char *word) {
    return p->token->kind == kind && tr__jinja_text_is(p->token->text, word);
}

bool tr__jinja_at_name(const tr_jinja_parser *p, const char *name) {
    return at_word(p, TR_TOKEN_NAME, name);
}

bool tr__jinja_at_operator(const tr_jinja_parser *p, const char *operator) {
    return at_word(p, TR_TOKEN_OPERATOR, operator);
}

const tr_jinja_token *tr__jinja_next(tr_jinja_parser *p) {
    const tr_jinja_token *token = p->token;
    p->token += token < p->end;
    return token;
}

static bool skip(tr_jinja_parser *p, tr_jinja_token_kind kind, const char *word) {
    bool there = at_word(p, kind, word);
    if (there) {
        tr__jinja_next(p);
    }
    return there;
}

bool tr__jinja_skip_name(tr_jinja_parser *p, const char *name) {
    return skip(p, TR_TOKEN_NAME, name);
}

bool tr__jinja_skip_operator(tr_jinja_parser *p, const char *operator) {
    return skip(p, TR_TOKEN_OPERATOR, operator);
}

void tr__jinja_expect_operator(tr_jinja_parser *p, const char *operator) {
    char expected[16];
    if (!tr__jinja_skip_operator(p, operator)) {
        snprintf(expected, sizeof expected, "'%s'", operator);
        tr__jinja_parser_unexpected(p, expected);
    }
}

tr_jinja_string tr__jinja_expect_name(tr_jinja_parser *p) {
    if (p->token->kind != TR_TOKEN_NAME) {
        tr__jinja_parser_unexpected(p, "a name");
        return (tr_jinja_string){"", 0};
    }
    return tr__jinja_next(p)->text;
}

tr_jinja_node *tr__jinja_node(tr_jinja_parser *p, tr_jinja_node_kind kind) {
    tr_jinja_node *node = tr__jinja_arena_take(&p->jinja->arena, 1, sizeof *node);
    if (!node) {
        tr__jinja_parser_no_memory(p);
        node = &p->spare;
    }
    node->kind = kind;
    node->line = p->token->line;
    return node;
}

void tr__jinja_append(tr_jinja_nodes *nodes, tr_jinja_node *node) {
    if (nodes->last) {
        nodes->last->next = node;
    } else {
        nodes->first = node;
    }
    nodes->last = node;
    nodes->count++;
}

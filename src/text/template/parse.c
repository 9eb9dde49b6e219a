// Statements, and the template as a whole.
#include "text/template/jinja.h"
#include "text/template/parser.h"

#include "base/memory.h"
#include "text/unicode/utf8.h"

#include <string.h>

enum { MEMORY_MAX = 64 << 20 }; // of a template

static void parse_body(tr_jinja_parser *p, const char *const *ends,
                       tr_jinja_nodes *body);

static void end_block(tr_jinja_parser *p) {
    if (p->token->kind != TR_TOKEN_BLOCK_END) {
        tr__jinja_parser_unexpected(p, "'%}'");
        return;
    }
    tr__jinja_next(p);
}

// The body of a block up to {% end %}, which is passed.
static void parse_to(tr_jinja_parser *p, const char *end, tr_jinja_nodes *body) {
    const char *const ends[] = {end, NULL};
    end_block(p);
    parse_body(p, ends, body);
    tr__jinja_next(p);
    end_block(p);
}

// ---- if

static tr_jinja_node *parse_else(tr_jinja_parser *p, const char *end) {
    tr_jinja_node *node = tr__jinja_node(p, TR_NODE_BODY);
    parse_to(p, end, &node->list);
    return node;
}

// Behind `if`. Branches are one list by `second`, not a tree: there may be many.
static tr_jinja_node *parse_if(tr_jinja_parser *p) {
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    tr_jinja_node *whole = NULL, **to = &whole;
    while (p->status == TR_OK) {
        tr_jinja_node *node = tr__jinja_node(p, TR_NODE_IF);
        *to = node;
        to = &node->second;
        node->first = tr__jinja_parse_tuple(p, TR_WANTED_NO_CHOICE, NULL);
        end_block(p);
        parse_body(p, ends, &node->list);
        const tr_jinja_token *word = tr__jinja_next(p);
        if (tr__jinja_text_is(word->text, "else")) {
            *to = parse_else(p, "endif");
            return whole;
        }
        if (!tr__jinja_text_is(word->text, "elif")) {
            end_block(p);
            return whole;
        }
    }
    return whole;
}

// ---- for

static void check_target(tr_jinja_parser *p, const tr_jinja_node *target) {
    for (const tr_jinja_node *n = target->list.first;
         target->kind == TR_NODE_TUPLE && n && p->status == TR_OK; n = n->next) {
        check_target(p, n);
    }
    if (target->kind != TR_NODE_NAME && target->kind != TR_NODE_TUPLE &&
        target->kind != TR_NODE_ASSIGN_ATTRIBUTE) {
        tr__jinja_parser_fail(p, "nothing can be assigned to what stands here");
    }
    if (p->fors > 0 && target->kind == TR_NODE_NAME &&
        tr__jinja_text_is(target->name, "loop")) {
        tr__jinja_parser_fail(p, "nothing can be assigned to 'loop' within a loop");
    }
}

static tr_jinja_node *parse_for(tr_jinja_parser *p) {
    static const char *const ends[] = {"endfor", "else", NULL};
    tr_jinja_node *node = tr__jinja_node(p, TR_NODE_FOR);
    p->fors++;
    node->first = tr__jinja_parse_tuple(p, TR_WANTED_PRIMARY, "in");
    check_target(p, node->first);
    if (!tr__jinja_skip_name(p, "in")) {
        tr__jinja_parser_unexpected(p, "'in'");
    }
    node->second = tr__jinja_parse_tuple(p, TR_WANTED_NO_CHOICE, "recursive");
    node->third = tr__jinja_skip_name(p, "if") ? tr__jinja_parse_expression(p) : NULL;
    if (tr__jinja_at_name(p, "recursive")) {
        tr__jinja_parser_fail(p, "a recursive loop is not supported");
    }
    end_block(p);
    p->loops++;
    parse_body(p, ends, &node->list);
    p->loops--;
    if (tr__jinja_text_is(tr__jinja_next(p)->text, "else")) {
        node->fourth = parse_else(p, "endfor");
    } else {
        end_block(p);
    }
    p->fors--;
    return node;
}

static tr_jinja_node *parse_jump(tr_jinja_parser *p, tr_jinja_node_kind kind) {
    tr_jinja_node *node = tr__jinja_node(p, kind);
    if (p->loops == 0) {
        tr__jinja_parser_fail(p, "break and continue stand in loops only");
    }
    end_block(p);
    return node;
}

// ---- set

// name.attribute, of which the value is assigned
static tr_jinja_node *parse_attribute_target(tr_jinja_parser *p) {
    tr_jinja_node *node = tr__jinja_node(p, TR_NODE_ASSIGN_ATTRIBUTE);
    node->name = tr__jinja_next(p)->text;
    tr__jinja_next(p);
    node->value.kind = TR_JINJA_TEXT;
    node->value.as.text = tr__jinja_expect_name(p);
    return node;
}

static tr_jinja_node *parse_target(tr_jinja_parser *p) {
    bool attribute = p->token->kind == TR_TOKEN_NAME && p->token < p->end &&
                     p->token[1].kind == TR_TOKEN_OPERATOR &&
                     tr__jinja_text_is(p->token[1].text, ".");
    tr_jinja_node *target = attribute
                                ? parse_attribute_target(p)
                                : tr__jinja_parse_tuple(p, TR_WANTED_PRIMARY, NULL);
    check_target(p, target);
    return target;
}

static tr_jinja_node *parse_set(tr_jinja_parser *p) {
    tr_jinja_node *node = tr__jinja_node(p, TR_NODE_SET);
    node->first = parse_target(p);
    if (tr__jinja_skip_operator(p, "=")) {
        node->second = tr__jinja_parse_tuple(p, TR_WANTED_ANY, NULL);
        end_block(p);
        return node;
    }
    node->kind = TR_NODE_SET_BLOCK;
    node->second =
        tr__jinja_at_operator(p, "|") ? tr__jinja_parse_filters(p, NULL, true) : NULL;
    parse_to(p, "endset", &node->list);
    return node;
}

// ---- macro, filter, generation

static tr_jinja_node *parse_parameters(tr_jinja_parser *p) {
    tr_jinja_nodes list = {0};
    tr__jinja_expect_operator(p, "(");
    while (!tr__jinja_at_operator(p, ")") && p->status == TR_OK) {
        if (list.count > 0) {
            tr__jinja_expect_operator(p, ",");
        }
        tr_jinja_node *node = tr__jinja_node(p, TR_NODE_PARAMETER);
        node->name = tr__jinja_expect_name(p);
        if (tr__jinja_skip_operator(p, "=")) {
            node->first = tr__jinja_parse_expression(p);
        } else if (list.last && list.last->first) {
            tr__jinja_parser_fail(p, "a parameter without a default stands behind one "
                                     "with a default");
        }
        tr__jinja_append(&list, node);
    }
    tr__jinja_expect_operator(p, ")");
    return list.first;
}

static tr_jinja_node *parse_macro(tr_jinja_parser *p) {
    int loops = p->loops;
    tr_jinja_node *node = tr__jinja_node(p, TR_NODE_MACRO);
    node->name = tr__jinja_expect_name(p);
    node->first = parse_parameters(p);
    p->loops = 0;
    parse_to(p, "endmacro", &node->list);
    p->loops = loops;
    return node;
}

static tr_jinja_node *parse_filtered(tr_jinja_parser *p) {
    tr_jinja_node *node = tr__jinja_node(p, TR_NODE_FILTERED);
    node->second = tr__jinja_parse_filters(p, NULL, false);
    parse_to(p, "endfilter", &node->list);
    return node;
}

static tr_jinja_node *parse_generation(tr_jinja_parser *p) {
    int loops = p->loops;
    tr_jinja_node *node = tr__jinja_node(p, TR_NODE_GENERATION);
    p->jinja->marks_generation = true;
    p->loops = 0; // its body is a function to jinja2
    parse_to(p, "endgeneration", &node->list);
    p->loops = loops;
    return node;
}

// ---- bodies

static tr_jinja_node *parse_statement(tr_jinja_parser *p) {
    if (tr__jinja_skip_name(p, "if")) {
        return parse_if(p);
    }
    if (tr__jinja_skip_name(p, "for")) {
        return parse_for(p);
    }
    if (tr__jinja_skip_name(p, "set")) {
        return parse_set(p);
    }
    if (tr__jinja_skip_name(p, "macro")) {
        return parse_macro(p);
    }
    if (tr__jinja_skip_name(p, "filter")) {
        return parse_filtered(p);
    }
    if (tr__jinja_skip_name(p, "generation")) {
        return parse_generation(p);
    }
    if (tr__jinja_skip_name(p, "break")) {
        return parse_jump(p, TR_NODE_BREAK);
    }
    if (tr__jinja_skip_name(p, "continue")) {
        return parse_jump(p, TR_NODE_CONTINUE);
    }
    tr_jinja_string name = tr__jinja_expect_name(p);
    tr__jinja_parser_fail(p, "the tag {%% %.*s %%} is not supported",
                          name.count < 40 ? (int)name.count : 40, name.bytes);
    return tr__jinja_node(p, TR_NODE_BODY);
}

static tr_jinja_node *parse_print(tr_jinja_parser *p) {
    tr_jinja_node *node = tr__jinja_node(p, TR_NODE_PRINT);
    tr__jinja_next(p);
    node->first = tr__jinja_parse_tuple(p, TR_WANTED_ANY, NULL);
    if (p->token->kind != TR_TOKEN_PRINT_END) {
        tr__jinja_parser_unexpected(p, "'}}'");
    }
    tr__jinja_next(p);
    return node;
}

static tr_jinja_node *parse_data(tr_jinja_parser *p) {
    tr_jinja_node *node = tr__jinja_node(p, TR_NODE_DATA);
    node->value =
        (tr_jinja_value){.kind = TR_JINJA_TEXT, .as.text = tr__jinja_next(p)->text};
    return node;
}

static bool at_end_word(const tr_jinja_parser *p, const char *const *ends) {
    for (size_t i = 0; ends[i]; i++) {
        if (tr__jinja_at_name(p, ends[i])) {
            return true;
        }
    }
    return false;
}

// Statements up to {% word, word being one of `ends`; the parser is at that word then.
static void parse_body(tr_jinja_parser *p, const char *const *ends,
                       tr_jinja_nodes *body) {
    if (!tr__jinja_parser_enter(p)) {
        return;
    }
    while (p->status == TR_OK && p->token->kind != TR_TOKEN_END) {
        if (p->token->kind == TR_TOKEN_DATA) {
            tr__jinja_append(body, parse_data(p));
        } else if (p->token->kind == TR_TOKEN_PRINT_BEGIN) {
            tr__jinja_append(body, parse_print(p));
        } else {
            tr__jinja_next(p);
            if (at_end_word(p, ends)) {
                break;
            }
            tr__jinja_append(body, parse_statement(p));
        }
    }
    if (p->token->kind == TR_TOKEN_END && ends[0]) {
        char expected[40] = "{% ";
        strcat(strcat(expected, ends[0]), " %}");
        tr__jinja_parser_unexpected(p, expected);
    }
    tr__jinja_parser_leave(p);
}

// ---- the whole

static tr_status parse_template(tr_jinja *jinja, tr_jinja_string text, tr_error *err) {
    static const char *const none[] = {NULL};
    tr_jinja_tokens tokens = {0};
    tr_status status = tr__jinja_lex(&jinja->arena, jinja->name, text, &tokens, err);
    if (status != TR_OK) {
        return status;
    }
    tr_jinja_parser p = {.jinja = jinja,
                         .token = tokens.token,
                         .end = tokens.token + tokens.count - 1,
                         .err = err};
    parse_body(&p, none, &jinja->body);
    return p.status;
}

tr_status tr__jinja_parse(const char *name, const char *text, size_t bytes,
                          tr_jinja **out, tr_error *err) {
    tr_jinja *jinja = tr__calloc(1, sizeof *jinja);
    if (jinja) {
        jinja->arena.limit = MEMORY_MAX;
        jinja->name = tr__strdup(name);
    }
    tr_status status = TR_OK;
    if (!jinja || !jinja->name) {
        status = tr_fail(err, TR_MEMORY, "no memory for the template %s", name);
    } else if (tr__utf8_valid((const unsigned char *)text, bytes) < bytes) {
        status = tr_fail(err, TR_DATA, "%s: is not UTF-8", name);
    } else {
        status = parse_template(jinja, (tr_jinja_string){text, bytes}, err);
    }
    if (status != TR_OK) {
        tr__jinja_destroy(jinja);
        return status;
    }
    *out = jinja;
    return TR_OK;
}

void tr__jinja_destroy(tr_jinja *jinja) {
    if (jinja) {
        tr__jinja_arena_release(&jinja->arena);
        tr__free(jinja->name);
        tr__free(jinja);
    }
}

bool tr__jinja_marks_generation(const tr_jinja *jinja) {
    return jinja->marks_generation;
}

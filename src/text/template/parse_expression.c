// Expressions, each function one level of precedence, from the weakest to the
// strongest.
#include "text/template/parser.h"

#include <string.h>

static tr_jinja_node *parse_or(tr_jinja_parser *p);
static tr_jinja_node *parse_unary(tr_jinja_parser *p, bool filters);
static tr_jinja_node *parse_primary(tr_jinja_parser *p);
static tr_jinja_node *parse_postfix(tr_jinja_parser *p, tr_jinja_node *node);

// ---- what is called, and with what

// Behind "(": arguments, then ")".
static void parse_arguments(tr_jinja_parser *p, tr_jinja_nodes *arguments) {
    while (!tr__jinja_at_operator(p, ")") && p->status == TR_OK) {
        if (arguments->count > 0) {
            tr__jinja_expect_operator(p, ",");
            if (tr__jinja_at_operator(p, ")")) {
                break;
            }
        }
        if (tr__jinja_at_operator(p, "*") || tr__jinja_at_operator(p, "**")) {
            tr__jinja_parser_fail(p, "arguments by * and ** are not supported");
            return;
        }
        bool named = p->token->kind == TR_TOKEN_NAME && p->token < p->end &&
                     p->token[1].kind == TR_TOKEN_OPERATOR &&
                     tr__jinja_text_is(p->token[1].text, "=");
        tr_jinja_node *node = NULL;
        if (named) {
            node = tr__jinja_node(p, TR_NODE_KEYWORD);
            node->name = tr__jinja_next(p)->text;
            tr__jinja_next(p);
            node->first = tr__jinja_parse_expression(p);
        } else {
            node = tr__jinja_parse_expression(p);
        }
        if (!named && arguments->last && arguments->last->kind == TR_NODE_KEYWORD) {
            tr__jinja_parser_fail(p, "an argument without a name stands behind one "
                                     "with a name");
        }
        tr__jinja_append(arguments, node);
    }
    tr__jinja_expect_operator(p, ")");
}

static tr_jinja_node *parse_call(tr_jinja_parser *p, tr_jinja_node *callee) {
    tr_jinja_node *node = tr__jinja_node(p, TR_NODE_CALL);
    node->first = callee;
    tr__jinja_expect_operator(p, "(");
    parse_arguments(p, &node->list);
    return node;
}

// A name with dots, as of filters.
static tr_jinja_string parse_dotted(tr_jinja_parser *p) {
    tr_jinja_string name = tr__jinja_expect_name(p);
    if (tr__jinja_at_operator(p, ".")) {
        tr__jinja_parser_fail(p, "filters and tests with a dot in their name are not "
                                 "supported");
    }
    return name;
}

tr_jinja_node *tr__jinja_parse_filters(tr_jinja_parser *p, tr_jinja_node *node,
                                       bool bar) {
    while (p->status == TR_OK && (!bar || tr__jinja_skip_operator(p, "|"))) {
        tr_jinja_node *filter = tr__jinja_node(p, TR_NODE_FILTER);
        filter->first = node;
        filter->name = parse_dotted(p);
        if (tr__jinja_skip_operator(p, "(")) {
            parse_arguments(p, &filter->list);
        }
        node = filter;
        bar = true;
    }
    return node;
}

static bool begins_argument(const tr_jinja_parser *p) {
    if (p->token->kind == TR_TOKEN_NAME) {
        return !tr__jinja_at_name(p, "else") && !tr__jinja_at_name(p, "or") &&
               !tr__jinja_at_name(p, "and");
    }
    return p->token->kind == TR_TOKEN_TEXT || p->token->kind == TR_TOKEN_NUMBER ||
           tr__jinja_at_operator(p, "(") || tr__jinja_at_operator(p, "[") ||
           tr__jinja_at_operator(p, "{");
}

// Behind `is`.
static tr_jinja_node *parse_test(tr_jinja_parser *p, tr_jinja_node *node) {
    bool negated = tr__jinja_skip_name(p, "not");
    tr_jinja_node *test = tr__jinja_node(p, TR_NODE_TEST);
    test->first = node;
    test->name = parse_dotted(p);
    if (tr__jinja_skip_operator(p, "(")) {
        parse_arguments(p, &test->list);
    } else if (begins_argument(p)) {
        if (tr__jinja_at_name(p, "is")) {
            tr__jinja_parser_fail(p, "two tests with `is` in a row");
        }
        tr__jinja_append(&test->list, parse_postfix(p, parse_primary(p)));
    }
    if (!negated) {
        return test;
    }
    tr_jinja_node *not = tr__jinja_node(p, TR_NODE_NOT);
    not ->first = test;
    return not ;
}

static tr_jinja_node *parse_filters_and_tests(tr_jinja_parser *p, tr_jinja_node *node) {
    while (p->status == TR_OK) {
        if (tr__jinja_at_operator(p, "|")) {
            node = tr__jinja_parse_filters(p, node, true);
        } else if (tr__jinja_skip_name(p, "is")) {
            node = parse_test(p, node);
        } else if (tr__jinja_at_operator(p, "(")) {
            node = parse_call(p, node);
        } else {
            break;
        }
    }
    return node;
}

// ---- parts of a value

static tr_jinja_node *parse_attribute(tr_jinja_parser *p, tr_jinja_node *of) {
    tr_jinja_node *node = tr__jinja_node(p, TR_NODE_ATTRIBUTE);
    node->first = of;
    if (p->token->kind == TR_TOKEN_NUMBER) { // x.0
        node->kind = TR_NODE_ITEM;
        node->second = tr__jinja_node(p, TR_NODE_CONSTANT);
        node->second->value = tr__jinja_next(p)->number;
        if (node->second->value.kind != TR_JINJA_INTEGER) {
            tr__jinja_parser_fail(p, "a fraction behind a dot");
        }
        return node;
    }
    node->name = tr__jinja_expect_name(p);
    return node;
}

// A bound of a slice; NULL: it is left out.
static tr_jinja_node *parse_bound(tr_jinja_parser *p) {
    bool empty = tr__jinja_at_operator(p, ":") || tr__jinja_at_operator(p, "]");
    return empty ? NULL : tr__jinja_parse_expression(p);
}

// Behind "[".
static tr_jinja_node *parse_item(tr_jinja_parser *p, tr_jinja_node *of) {
    tr_jinja_node *node = tr__jinja_node(p, TR_NODE_ITEM);
    node->first = of;
    node->second = parse_bound(p);
    if (tr__jinja_skip_operator(p, ":")) {
        node->kind = TR_NODE_SLICE;
        node->third = parse_bound(p);
        node->fourth = tr__jinja_skip_operator(p, ":") ? parse_bound(p) : NULL;
    } else if (!node->second) {
        tr__jinja_parser_unexpected(p, "an expression");
    }
    if (tr__jinja_at_operator(p, ",")) {
        tr__jinja_parser_fail(p, "several indices between [ and ] are not supported");
    }
    tr__jinja_expect_operator(p, "]");
    return node;
}

static tr_jinja_node *parse_postfix(tr_jinja_parser *p, tr_jinja_node *node) {
    while (p->status == TR_OK) {
        if (tr__jinja_skip_operator(p, ".")) {
            node = parse_attribute(p, node);
        } else if (tr__jinja_skip_operator(p, "[")) {
            node = parse_item(p, node);
        } else if (tr__jinja_at_operator(p, "(")) {
            node = parse_call(p, node);
        } else {
            break;
        }
    }
    return node;
}

// ---- literals and names

static tr_jinja_node *constant(tr_jinja_parser *p, tr_jinja_value value) {
    tr_jinja_node *node = tr__jinja_node(p, TR_NODE_CONSTANT);
    node->value = value;
    return node;
}

// Texts in a row are one.
static tr_jinja_node *parse_text(tr_jinja_parser *p) {
    tr_jinja_string text = tr__jinja_next(p)->text;
    while (p->token->kind == TR_TOKEN_TEXT) {
        tr_jinja_string more = tr__jinja_next(p)->text;
        char *both =
            tr__jinja_arena_take(&p->jinja->arena, text.count + more.count + 1, 1);
        if (!both) {
            tr__jinja_parser_no_memory(p);
            break;
        }
        memcpy(both, text.bytes, text.count);
        memcpy(both + text.count, more.bytes, more.count);
        text = (tr_jinja_string){both, text.count + more.count};
    }
    return constant(p, tr__jinja_text(text.bytes, text.count));
}

static tr_jinja_node *parse_name(tr_jinja_parser *p) {
    tr_jinja_node *node = tr__jinja_node(p, TR_NODE_NAME);
    tr_jinja_string name = tr__jinja_next(p)->text;
    node->name = name;
    bool truth = tr__jinja_text_is(name, "true") || tr__jinja_text_is(name, "True");
    if (truth || tr__jinja_text_is(name, "false") || tr__jinja_text_is(name, "False")) {
        node->kind = TR_NODE_CONSTANT;
        node->value = tr__jinja_bool(truth);
    } else if (tr__jinja_text_is(name, "none") || tr__jinja_text_is(name, "None")) {
        node->kind = TR_NODE_CONSTANT;
        node->value = tr__jinja_none();
    }
    return node;
}

static void parse_elements(tr_jinja_parser *p, tr_jinja_nodes *elements,
                           const char *close, bool pairs) {
    while (!tr__jinja_at_operator(p, close) && p->status == TR_OK) {
        if (elements->count > 0) {
            tr__jinja_expect_operator(p, ",");
            if (tr__jinja_at_operator(p, close)) {
                break;
            }
        }
        tr__jinja_append(elements, tr__jinja_parse_expression(p));
        if (pairs) {
            tr__jinja_expect_operator(p, ":");
            tr__jinja_append(elements, tr__jinja_parse_expression(p));
        }
    }
    tr__jinja_expect_operator(p, close);
}

static tr_jinja_node *parse_primary(tr_jinja_parser *p) {
    if (p->token->kind == TR_TOKEN_NAME) {
        return parse_name(p);
    }
    if (p->token->kind == TR_TOKEN_TEXT) {
        return parse_text(p);
    }
    if (p->token->kind == TR_TOKEN_NUMBER) {
        return constant(p, tr__jinja_next(p)->number);
    }
    if (tr__jinja_skip_operator(p, "(")) {
        tr_jinja_node *node = tr__jinja_at_operator(p, ")")
                                  ? tr__jinja_node(p, TR_NODE_TUPLE)
                                  : tr__jinja_parse_tuple(p, TR_WANTED_ANY, NULL);
        tr__jinja_expect_operator(p, ")");
        return node;
    }
    bool list = tr__jinja_skip_operator(p, "[");
    if (list || tr__jinja_skip_operator(p, "{")) {
        tr_jinja_node *node = tr__jinja_node(p, list ? TR_NODE_LIST : TR_NODE_DICT);
        parse_elements(p, &node->list, list ? "]" : "}", !list);
        return node;
    }
    tr__jinja_parser_unexpected(p, "an expression");
    return tr__jinja_node(p, TR_NODE_CONSTANT);
}

// ---- operators

static tr_jinja_node *parse_unary(tr_jinja_parser *p, bool filters) {
    tr_jinja_node *node = NULL;
    if (!tr__jinja_parser_enter(p)) {
        return tr__jinja_node(p, TR_NODE_CONSTANT);
    }
    if (tr__jinja_at_operator(p, "-") || tr__jinja_at_operator(p, "+")) {
        node = tr__jinja_node(p, TR_NODE_SIGN);
        node->name = tr__jinja_next(p)->text;
        node->first = parse_unary(p, false);
    } else {
        node = parse_primary(p);
    }
    node = parse_postfix(p, node);
    node = filters ? parse_filters_and_tests(p, node) : node;
    tr__jinja_parser_leave(p);
    return node;
}

static tr_jinja_node *binary(tr_jinja_parser *p, tr_jinja_node *left,
                             tr_jinja_string operator, tr_jinja_node * right) {
    tr_jinja_node *node = tr__jinja_node(p, TR_NODE_BINARY);
    node->name = operator;
    node->first = left;
    node->second = right;
    return node;
}

static tr_jinja_node *parse_power(tr_jinja_parser *p) {
    tr_jinja_node *node = parse_unary(p, true);
    while (tr__jinja_at_operator(p, "**")) {
        tr_jinja_string operator= tr__jinja_next(p)->text;
        node = binary(p, node, operator, parse_unary(p, true));
    }
    return node;
}

static tr_jinja_node *parse_product(tr_jinja_parser *p) {
    tr_jinja_node *node = parse_power(p);
    while (tr__jinja_at_operator(p, "*") || tr__jinja_at_operator(p, "/") ||
           tr__jinja_at_operator(p, "//") || tr__jinja_at_operator(p, "%")) {
        tr_jinja_string operator= tr__jinja_next(p)->text;
        node = binary(p, node, operator, parse_power(p));
    }
    return node;
}

static tr_jinja_node *parse_concat(tr_jinja_parser *p) {
    tr_jinja_node *first = parse_product(p);
    if (!tr__jinja_at_operator(p, "~")) {
        return first;
    }
    tr_jinja_node *node = tr__jinja_node(p, TR_NODE_CONCAT);
    tr__jinja_append(&node->list, first);
    while (tr__jinja_skip_operator(p, "~")) {
        tr__jinja_append(&node->list, parse_product(p));
    }
    return node;
}

static tr_jinja_node *parse_sum(tr_jinja_parser *p) {
    tr_jinja_node *node = parse_concat(p);
    while (tr__jinja_at_operator(p, "+") || tr__jinja_at_operator(p, "-")) {
        tr_jinja_string operator= tr__jinja_next(p)->text;
        node = binary(p, node, operator, parse_concat(p));
    }
    return node;
}

// The operator of a comparison at the current token, which is passed; count 0: none.
static tr_jinja_string skip_comparison(tr_jinja_parser *p) {
    static const char *const operators[] = {"==", "!=", "<=", ">=", "<", ">"};
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        if (tr__jinja_at_operator(p, operators[i])) {
            return tr__jinja_next(p)->text;
        }
    }
    if (tr__jinja_at_name(p, "in")) {
        return tr__jinja_next(p)->text;
    }
    bool negated = tr__jinja_at_name(p, "not") && p->token < p->end &&
                   p->token[1].kind == TR_TOKEN_NAME &&
                   tr__jinja_text_is(p->token[1].text, "in");
    if (negated) {
        tr__jinja_next(p);
        tr__jinja_next(p);
        return (tr_jinja_string){"not in", 6};
    }
    return (tr_jinja_string){0};
}

static tr_jinja_node *parse_compare(tr_jinja_parser *p) {
    tr_jinja_node *first = parse_sum(p);
    tr_jinja_string operator= skip_comparison(p);
    if (operator.count == 0) {
        return first;
    }
    tr_jinja_node *node = tr__jinja_node(p, TR_NODE_COMPARE);
    node->first = first;
    for (; operator.count> 0; operator= skip_comparison(p)) {
        tr_jinja_node *operand = tr__jinja_node(p, TR_NODE_OPERAND);
        operand->name = operator;
        operand->first = parse_sum(p);
        tr__jinja_append(&node->list, operand);
    }
    return node;
}

static tr_jinja_node *parse_not(tr_jinja_parser *p) {
    if (!tr__jinja_parser_enter(p)) {
        return tr__jinja_node(p, TR_NODE_CONSTANT);
    }
    tr_jinja_node *node = NULL;
    if (tr__jinja_at_name(p, "not")) {
        node = tr__jinja_node(p, TR_NODE_NOT);
        tr__jinja_next(p);
        node->first = parse_not(p);
    } else {
        node = parse_compare(p);
    }
    tr__jinja_parser_leave(p);
    return node;
}

static tr_jinja_node *parse_logic(tr_jinja_parser *p, const char *word,
                                  tr_jinja_node_kind kind,
                                  tr_jinja_node *(*part)(tr_jinja_parser *)) {
    tr_jinja_node *node = part(p);
    while (tr__jinja_skip_name(p, word)) {
        tr_jinja_node *both = tr__jinja_node(p, kind);
        both->first = node;
        both->second = part(p);
        node = both;
    }
    return node;
}

static tr_jinja_node *parse_and(tr_jinja_parser *p) {
    return parse_logic(p, "and", TR_NODE_AND, parse_not);
}

static tr_jinja_node *parse_or(tr_jinja_parser *p) {
    return parse_logic(p, "or", TR_NODE_OR, parse_and);
}

tr_jinja_node *tr__jinja_parse_expression(tr_jinja_parser *p) {
    if (!tr__jinja_parser_enter(p)) {
        return tr__jinja_node(p, TR_NODE_CONSTANT);
    }
    tr_jinja_node *node = parse_or(p);
    while (tr__jinja_skip_name(p, "if")) {
        tr_jinja_node *choice = tr__jinja_node(p, TR_NODE_CHOICE);
        choice->first = node;
        choice->second = parse_or(p);
        choice->third =
            tr__jinja_skip_name(p, "else") ? tr__jinja_parse_expression(p) : NULL;
        node = choice;
    }
    tr__jinja_parser_leave(p);
    return node;
}

// ---- tuples

static tr_jinja_node *parse_wanted(tr_jinja_parser *p, tr_jinja_wanted wanted) {
    return wanted == TR_WANTED_ANY         ? tr__jinja_parse_expression(p)
           : wanted == TR_WANTED_NO_CHOICE ? parse_or(p)
                                           : parse_primary(p);
}

static bool ends_tuple(const tr_jinja_parser *p, const char *until) {
    return p->token->kind == TR_TOKEN_PRINT_END ||
           p->token->kind == TR_TOKEN_BLOCK_END || tr__jinja_at_operator(p, ")") ||
           (until && tr__jinja_at_name(p, until));
}

tr_jinja_node *tr__jinja_parse_tuple(tr_jinja_parser *p, tr_jinja_wanted wanted,
                                     const char *until) {
    tr_jinja_node *first = parse_wanted(p, wanted);
    if (!tr__jinja_at_operator(p, ",")) {
        return first;
    }
    tr_jinja_node *tuple = tr__jinja_node(p, TR_NODE_TUPLE);
    tr__jinja_append(&tuple->list, first);
    while (tr__jinja_skip_operator(p, ",") && !ends_tuple(p, until)) {
        tr__jinja_append(&tuple->list, parse_wanted(p, wanted));
    }
    return tuple;
}

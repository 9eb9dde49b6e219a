// Expressions.
#include "text/template/function.h"
#include "text/template/run.h"

#include <string.h>

typedef tr_jinja_value evaluate_function(tr_jinja_run *run, const tr_jinja_node *node);

// ---- names and literals

static tr_jinja_value constant(tr_jinja_run *run, const tr_jinja_node *node) {
    (void)run;
    return node->value;
}

static tr_jinja_value name(tr_jinja_run *run, const tr_jinja_node *node) {
    const tr_jinja_value *value = tr__jinja_find(run, node->name);
    if (run->own.count > 0 && tr__jinja_same_text(run->own, node->name) &&
        !tr__jinja_is_assigned(run, node->name)) {
        tr__jinja_fail(run,
                       "'%.*s' within the body that is assigned to it is not "
                       "supported",
                       (int)node->name.count, node->name.bytes);
    }
    if (value) {
        return *value;
    }
    static const char *const special[] = {"self", "varargs", "kwargs"};
    const tr_jinja_function *global = tr__jinja_global(node->name);
    for (size_t i = 0; i < (run->macros > 0 ? 3u : 1u); i++) {
        if (tr__jinja_text_is(node->name, special[i])) {
            tr__jinja_fail(run, "the name '%s' is not supported", special[i]);
        }
    }
    return global ? (tr_jinja_value){.kind = TR_JINJA_GLOBAL, .as.global = global}
                  : tr__jinja_undefined(node->name);
}

static tr_jinja_value *elements(tr_jinja_run *run, const tr_jinja_nodes *list) {
    size_t count = 0;
    tr_jinja_value *item = tr__jinja_take(run, list->count + 1, sizeof *item);
    for (const tr_jinja_node *n = list->first; item && n; n = n->next) {
        item[count++] = tr__jinja_evaluate(run, n);
    }
    return item;
}

static tr_jinja_value list(tr_jinja_run *run, const tr_jinja_node *node) {
    tr_jinja_value *item = elements(run, &node->list);
    tr_jinja_kind kind = node->kind == TR_NODE_LIST ? TR_JINJA_LIST : TR_JINJA_TUPLE;
    return tr__jinja_make_list(run, kind, item, node->list.count);
}

static tr_jinja_value dict(tr_jinja_run *run, const tr_jinja_node *node) {
    tr_jinja_dict *made = tr__jinja_make_dict(run);
    for (const tr_jinja_node *n = node->list.first; made && n; n = n->next->next) {
        tr_jinja_value key = tr__jinja_evaluate(run, n);
        tr_jinja_value value = tr__jinja_evaluate(run, n->next);
        if (!tr__jinja_is_key(&key)) {
            tr__jinja_fail(run, "a %s cannot be a key", tr__jinja_kind_name(key.kind));
        }
        tr__jinja_dict_put(run, made, &key, &value);
    }
    return tr__jinja_of_dict(made);
}

// ---- parts

static tr_jinja_value attribute(tr_jinja_run *run, const tr_jinja_node *node) {
    tr_jinja_value of = tr__jinja_evaluate(run, node->first);
    return tr__jinja_attribute(run, &of, node->name);
}

static tr_jinja_value item(tr_jinja_run *run, const tr_jinja_node *node) {
    tr_jinja_value of = tr__jinja_evaluate(run, node->first);
    tr_jinja_value key = tr__jinja_evaluate(run, node->second);
    return tr__jinja_item(run, &of, &key);
}

static tr_jinja_value slice(tr_jinja_run *run, const tr_jinja_node *node) {
    const tr_jinja_node *const bounds[] = {node->second, node->third, node->fourth};
    tr_jinja_value of = tr__jinja_evaluate(run, node->first), bound[3];
    for (int i = 0; i < 3; i++) {
        bound[i] = bounds[i] ? tr__jinja_evaluate(run, bounds[i]) : tr__jinja_none();
    }
    return tr__jinja_slice(run, &of, bound);
}

// ---- calls

tr_jinja_arguments tr__jinja_arguments(tr_jinja_run *run, const tr_jinja_nodes *list) {
    tr_jinja_arguments a = {
        .value = tr__jinja_take(run, list->count + 1, sizeof *a.value),
        .named = tr__jinja_take(run, list->count + 1, sizeof *a.named)};
    for (const tr_jinja_node *n = list->first; a.value && a.named && n; n = n->next) {
        if (n->kind == TR_NODE_KEYWORD) {
            a.named[a.named_count++] = (tr_jinja_entry){
                tr__jinja_of_string(n->name), tr__jinja_evaluate(run, n->first)};
        } else {
            a.value[a.count++] = tr__jinja_evaluate(run, n);
        }
    }
    return a;
}

static const tr_jinja_value *find_named(const tr_jinja_arguments *arguments,
                                        tr_jinja_string name) {
    for (size_t i = 0; i < arguments->named_count; i++) {
        if (tr__jinja_same_text(arguments->named[i].key.as.text, name)) {
            return &arguments->named[i].value;
        }
    }
    return NULL;
}

static bool is_parameter(const tr_jinja_node *macro, tr_jinja_string name) {
    for (const tr_jinja_node *n = macro->first; n; n = n->next) {
        if (tr__jinja_same_text(n->name, name)) {
            return true;
        }
    }
    return false;
}

static void set_parameters(tr_jinja_run *run, const tr_jinja_node *macro,
                           const tr_jinja_arguments *arguments) {
    size_t place = 0;
    for (const tr_jinja_node *n = macro->first; n; n = n->next, place++) {
        const tr_jinja_value *named = find_named(arguments, n->name);
        tr_jinja_value value = place < arguments->count ? arguments->value[place]
                               : named                  ? *named
                               : n->first ? tr__jinja_evaluate(run, n->first)
                                          : tr__jinja_undefined(n->name);
        tr__jinja_assign(run, n->name, value);
    }
    if (arguments->count > place) {
        tr__jinja_fail(run, "the macro %.*s takes %zu arguments, not %zu",
                       (int)macro->name.count, macro->name.bytes, place,
                       arguments->count);
    }
    for (size_t i = 0; i < arguments->named_count; i++) {
        tr_jinja_string name = arguments->named[i].key.as.text;
        if (!is_parameter(macro, name)) {
            tr__jinja_fail(run, "the macro %.*s has no parameter %.*s",
                           (int)macro->name.count, macro->name.bytes, (int)name.count,
                           name.bytes);
        }
    }
}

static tr_jinja_value call_macro(tr_jinja_run *run, const tr_jinja_macro *macro,
                                 const tr_jinja_arguments *arguments) {
    tr_jinja_scope *scope = run->scope;
    run->scope = tr__jinja_scope_open(run, macro->scope);
    set_parameters(run, macro->node, arguments);
    tr_jinja_buffer text = {0}, *out = run->out;
    run->out = &text;
    run->macros++;
    run->run_body(run, &macro->node->list);
    run->macros--;
    run->out = out;
    run->scope = scope;
    return tr__jinja_text(text.bytes ? text.bytes : "", text.count);
}

static tr_jinja_value call(tr_jinja_run *run, const tr_jinja_node *node) {
    tr_jinja_value callee = tr__jinja_evaluate(run, node->first);
    tr_jinja_arguments arguments = tr__jinja_arguments(run, &node->list);
    run->line = node->line;
    if (run->status != TR_OK) {
        return tr__jinja_none();
    }
    if (callee.kind == TR_JINJA_MACRO) {
        return call_macro(run, callee.as.macro, &arguments);
    }
    if (callee.kind == TR_JINJA_GLOBAL) {
        return tr__jinja_call(run, callee.as.global, NULL, &arguments);
    }
    if (callee.kind == TR_JINJA_METHOD) {
        return tr__jinja_call_method(run, &callee.as.method, &arguments);
    }
    tr_jinja_string called =
        callee.kind == TR_JINJA_UNDEFINED ? callee.as.text : node->first->name;
    tr__jinja_fail(run, "%.*s is %s, which cannot be called, or is not supported",
                   (int)called.count, called.bytes ? called.bytes : "",
                   tr__jinja_kind_name(callee.kind));
    return tr__jinja_none();
}

static tr_jinja_value apply(tr_jinja_run *run, const tr_jinja_node *node,
                            const tr_jinja_function *function, const char *what) {
    if (!function) {
        tr__jinja_fail(run, "the %s '%.*s' is not supported", what,
                       (int)node->name.count, node->name.bytes);
        return tr__jinja_none();
    }
    tr_jinja_value of = tr__jinja_evaluate(run, node->first);
    tr_jinja_arguments arguments = tr__jinja_arguments(run, &node->list);
    run->line = node->line;
    return tr__jinja_call(run, function, &of, &arguments);
}

static tr_jinja_value filter(tr_jinja_run *run, const tr_jinja_node *node) {
    return apply(run, node, tr__jinja_filter(node->name), "filter");
}

static tr_jinja_value test(tr_jinja_run *run, const tr_jinja_node *node) {
    return apply(run, node, tr__jinja_test(node->name), "test");
}

// ---- operators

static bool is_true(tr_jinja_run *run, const tr_jinja_node *node) {
    tr_jinja_value value = tr__jinja_evaluate(run, node);
    return tr__jinja_is_true(&value);
}

static tr_jinja_value not(tr_jinja_run * run, const tr_jinja_node *node) {
    return tr__jinja_bool(!is_true(run, node->first));
}

static tr_jinja_value logic(tr_jinja_run *run, const tr_jinja_node *node) {
    tr_jinja_value first = tr__jinja_evaluate(run, node->first);
    bool decided = tr__jinja_is_true(&first) == (node->kind == TR_NODE_OR);
    return decided ? first : tr__jinja_evaluate(run, node->second);
}

static tr_jinja_value choice(tr_jinja_run *run, const tr_jinja_node *node) {
    if (is_true(run, node->second)) {
        return tr__jinja_evaluate(run, node->first);
    }
    return node->third ? tr__jinja_evaluate(run, node->third)
                       : tr__jinja_undefined((tr_jinja_string){"", 0});
}

static bool holds(tr_jinja_run *run, tr_jinja_string operator, const tr_jinja_value * a,
                  const tr_jinja_value *b) {
    char op = operator.bytes[0];
    if (op == 'i' || op == 'n') {
        return tr__jinja_contains(run, b, a) == (op == 'i');
    }
    if (op == '=' || op == '!') {
        return tr__jinja_same(run, a, b) == (op == '=');
    }
    int order = tr__jinja_compare(run, a, b);
    bool equal = operator.count == 2 && order == 0;
    return equal || (op == '<' ? order < 0 : order > 0);
}

static tr_jinja_value compare(tr_jinja_run *run, const tr_jinja_node *node) {
    tr_jinja_value left = tr__jinja_evaluate(run, node->first);
    bool all = true;
    for (const tr_jinja_node *n = node->list.first; n && all && run->status == TR_OK;
         n = n->next) {
        tr_jinja_value right = tr__jinja_evaluate(run, n->first);
        all = holds(run, n->name, &left, &right);
        left = right;
    }
    return tr__jinja_bool(all);
}

static tr_jinja_value binary(tr_jinja_run *run, const tr_jinja_node *node) {
    tr_jinja_value a = tr__jinja_evaluate(run, node->first);
    tr_jinja_value b = tr__jinja_evaluate(run, node->second);
    run->line = node->line;
    return tr__jinja_compute(run, node->name, &a, &b);
}

static tr_jinja_value sign(tr_jinja_run *run, const tr_jinja_node *node) {
    tr_jinja_value value = tr__jinja_evaluate(run, node->first);
    tr_jinja_value zero =
        value.kind == TR_JINJA_REAL ? tr__jinja_real(-0.0) : tr__jinja_integer(0);
    return tr__jinja_compute(run, node->name, &zero, &value);
}

static tr_jinja_value concat(tr_jinja_run *run, const tr_jinja_node *node) {
    tr_jinja_buffer to = {0};
    for (const tr_jinja_node *n = node->list.first; n && run->status == TR_OK;
         n = n->next) {
        tr_jinja_value value = tr__jinja_evaluate(run, n);
        tr__jinja_print(run, &to, &value);
    }
    return tr__jinja_text(to.bytes ? to.bytes : "", to.count);
}

// ----

static evaluate_function *const expressions[TR_NODE_KINDS] = {
    [TR_NODE_CONSTANT] = constant, [TR_NODE_NAME] = name,
    [TR_NODE_LIST] = list,         [TR_NODE_TUPLE] = list,
    [TR_NODE_DICT] = dict,         [TR_NODE_ATTRIBUTE] = attribute,
    [TR_NODE_ITEM] = item,         [TR_NODE_SLICE] = slice,
    [TR_NODE_CALL] = call,         [TR_NODE_FILTER] = filter,
    [TR_NODE_TEST] = test,         [TR_NODE_NOT] = not,
    [TR_NODE_AND] = logic,         [TR_NODE_OR] = logic,
    [TR_NODE_CHOICE] = choice,     [TR_NODE_COMPARE] = compare,
    [TR_NODE_BINARY] = binary,     [TR_NODE_SIGN] = sign,
    [TR_NODE_CONCAT] = concat,
};

tr_jinja_value tr__jinja_evaluate(tr_jinja_run *run, const tr_jinja_node *node) {
    tr_jinja_value value = tr__jinja_none();
    if (tr__jinja_enter(run, node->line)) {
        value = expressions[node->kind](run, node);
    }
    run->depth--;
    return value;
}

#include "text/template/run.h"

#include <string.h>

typedef struct tr_jinja_variable {
    tr_jinja_string name;
    tr_jinja_value value;
} tr_jinja_variable;

tr_jinja_scope *tr__jinja_scope_open(tr_jinja_run *run, tr_jinja_scope *around) {
    tr_jinja_scope *scope = tr__jinja_take(run, 1, sizeof *scope);
    if (!scope) {
        return around;
    }
    scope->around = around;
    return scope;
}

static tr_jinja_variable *find_in(const tr_jinja_scope *scope, tr_jinja_string name) {
    for (size_t i = 0; i < scope->count; i++) {
        if (tr__jinja_same_text(scope->variable[i].name, name)) {
            return &scope->variable[i];
        }
    }
    return NULL;
}

bool tr__jinja_is_assigned(const tr_jinja_run *run, tr_jinja_string name) {
    bool found = false;
    for (const tr_jinja_scope *s = run->scope; s && !found; s = s->around) {
        found = find_in(s, name) != NULL;
    }
    return found;
}

const tr_jinja_value *tr__jinja_find(const tr_jinja_run *run, tr_jinja_string name) {
    for (const tr_jinja_scope *scope = run->scope; scope; scope = scope->around) {
        const tr_jinja_variable *variable = find_in(scope, name);
        if (variable) {
            return &variable->value;
        }
    }
    tr_jinja_value key = tr__jinja_of_string(name);
    const tr_jinja_entry *entry =
        run->given ? tr__jinja_dict_find(run->given, &key) : NULL;
    return entry ? &entry->value : NULL;
}

static tr_jinja_variable *add_variable(tr_jinja_run *run, tr_jinja_scope *scope) {
    if (scope->count == scope->capacity) {
        size_t capacity = scope->capacity ? 2 * scope->capacity : 4;
        tr_jinja_variable *variable = tr__jinja_take(run, capacity, sizeof *variable);
        if (!variable) {
            return NULL;
        }
        if (scope->count > 0) {
            memcpy(variable, scope->variable, scope->count * sizeof *variable);
        }
        scope->variable = variable;
        scope->capacity = capacity;
    }
    return &scope->variable[scope->count++];
}

void tr__jinja_assign(tr_jinja_run *run, tr_jinja_string name, tr_jinja_value value) {
    if (!run->scope || run->status != TR_OK) {
        return;
    }
    tr_jinja_variable *variable = find_in(run->scope, name);
    variable = variable ? variable : add_variable(run, run->scope);
    if (variable) {
        *variable = (tr_jinja_variable){name, value};
    }
}

static void assign_attribute(tr_jinja_run *run, const tr_jinja_node *target,
                             const tr_jinja_value *value) {
    const tr_jinja_value *of = tr__jinja_find(run, target->name);
    tr_jinja_string name = target->value.as.text;
    if (!of || of->kind != TR_JINJA_NAMESPACE) {
        tr__jinja_fail(run, "cannot assign attribute on non-namespace object %.*s",
                       (int)target->name.count, target->name.bytes);
    } else if (name.count > 0 && name.bytes[0] == '_') {
        tr__jinja_fail(run, "a namespace has no attributes that begin with '_'");
    } else {
        tr__jinja_dict_put(run, of->as.dict, &target->value, value);
    }
}

static void assign_items(tr_jinja_run *run, const tr_jinja_node *target,
                         const tr_jinja_value *value) {
    const tr_jinja_list *list = tr__jinja_iterate(run, value);
    if (!list) {
        return;
    }
    if (list->count != target->list.count) {
        tr__jinja_fail(run, "%zu values for %zu names", list->count,
                       target->list.count);
        return;
    }
    size_t i = 0;
    for (const tr_jinja_node *n = target->list.first; n; n = n->next) {
        tr__jinja_assign_to(run, n, &list->item[i++]);
    }
}

void tr__jinja_assign_to(tr_jinja_run *run, const tr_jinja_node *target,
                         const tr_jinja_value *value) {
    if (run->status != TR_OK) {
        return;
    }
    if (target->kind == TR_NODE_TUPLE) {
        assign_items(run, target, value);
    } else if (target->kind == TR_NODE_ASSIGN_ATTRIBUTE) {
        assign_attribute(run, target, value);
    } else {
        tr__jinja_assign(run, target->name, *value);
    }
}

#include "text/tokenizer/node.h"

#include "text/unicode/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { DEPTH_MAX = 16, PARTS_MAX = 256 }; // of Sequences in Sequences; in all of them

static json_t *present(json_t *value) {
    return json_is_null(value) ? NULL : value;
}

tr_node tr__node_member(const tr_node *node, const char *key) {
    tr_node member = {.file = node->file};
    member.value = present(json_object_get(node->value, key));
    snprintf(member.path, sizeof member.path, "%.*s%s%s",
             (int)(sizeof member.path - 48), node->path, *node->path ? "." : "", key);
    return member;
}

tr_node tr__node_element(const tr_node *node, size_t index) {
    tr_node element = {.file = node->file};
    element.value = present(json_array_get(node->value, index));
    snprintf(element.path, sizeof element.path, "%.*s[%zu]",
             (int)(sizeof element.path - 24), node->path, index);
    return element;
}

tr_status tr__node_fail(const tr_node *node, tr_error *err, const char *format, ...) {
    char words[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    return tr_fail(err, TR_DATA, "%s: %s%s%s", node->file, node->path,
                   *node->path ? ": " : "", words);
}

tr_status tr__node_refuse(const tr_node *node, const char *type, tr_error *err) {
    return tr__node_fail(node, err, "the type \"%.80s\" is not supported", type);
}

static tr_status wrong(const tr_node *node, const char *expected, tr_error *err) {
    return tr__node_fail(node, err, node->value ? "is not %s" : "is missing: %s",
                         expected);
}

tr_status tr__node_object(const tr_node *node, tr_error *err) {
    return json_is_object(node->value) ? TR_OK : wrong(node, "an object", err);
}

tr_status tr__node_array(const tr_node *node, size_t *count, tr_error *err) {
    if (!json_is_array(node->value)) {
        return wrong(node, "an array", err);
    }
    *count = json_array_size(node->value);
    return TR_OK;
}

tr_status tr__node_text(const tr_node *node, const char **text, size_t *bytes,
                        tr_error *err) {
    if (!json_is_string(node->value)) {
        return wrong(node, "a string", err);
    }
    *text = json_string_value(node->value);
    *bytes = json_string_length(node->value);
    return TR_OK;
}

tr_status tr__node_bool(const tr_node *node, bool absent, bool *out, tr_error *err) {
    if (node->value && !json_is_boolean(node->value)) {
        return wrong(node, "true or false", err);
    }
    *out = node->value ? json_is_true(node->value) : absent;
    return TR_OK;
}

tr_status tr__node_integer(const tr_node *node, int64_t least, int64_t most,
                           int64_t *out, tr_error *err) {
    if (!json_is_integer(node->value)) {
        return wrong(node, "an integer", err);
    }
    *out = json_integer_value(node->value);
    if (*out < least || *out > most) {
        return tr__node_fail(node, err, "%lld is not between %lld and %lld",
                             (long long)*out, (long long)least, (long long)most);
    }
    return TR_OK;
}

tr_status tr__node_type(const tr_node *node, const char **type, tr_error *err) {
    size_t bytes;
    tr_status status = tr__node_object(node, err);
    if (status == TR_OK) {
        tr_node member = tr__node_member(node, "type");
        status = tr__node_text(&member, type, &bytes, err);
    }
    return status;
}

tr_status tr__node_character(const tr_node *node, const char **text, size_t *bytes,
                             tr_error *err) {
    tr_status status = tr__node_text(node, text, bytes, err);
    if (status == TR_OK &&
        (*bytes == 0 || *bytes != tr__utf8_length((unsigned char)**text))) {
        status = wrong(node, "one character", err);
    }
    return status;
}

// What is visited, and how many parts there were.
typedef struct visits {
    const char *list;
    tr_node_visit visit;
    void *context;
    int parts;
} visits;

static tr_status sequence(const tr_node *node, visits *v, int depth, tr_error *err) {
    const char *type;
    size_t count = 0;
    tr_status status = tr__node_type(node, &type, err);
    if (status != TR_OK) {
        return status;
    }
    if (strcmp(type, "Sequence") != 0) {
        if (v->parts++ == PARTS_MAX) {
            return tr__node_fail(node, err, "a Sequence of more than %d parts",
                                 PARTS_MAX);
        }
        return v->visit(v->context, node, type, err);
    }
    if (depth == DEPTH_MAX) {
        return tr__node_fail(node, err, "more than %d Sequences in each other",
                             DEPTH_MAX);
    }
    tr_node members = tr__node_member(node, v->list);
    status = tr__node_array(&members, &count, err);
    for (size_t i = 0; i < count && status == TR_OK; i++) {
        tr_node member = tr__node_element(&members, i);
        status = sequence(&member, v, depth + 1, err);
    }
    return status;
}

tr_status tr__node_sequence(const tr_node *node, const char *list, tr_node_visit visit,
                            void *context, tr_error *err) {
    visits v = {list, visit, context, 0};
    return node->value ? sequence(node, &v, 0, err) : TR_OK;
}

// tr_graph_call: an op by its name, with attributes as JSON.
#include "graph/call.h"

#include "base/text.h"
#include "graph/graph.h"

#include <jansson.h>

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { NAMES_MAX = 64 };

static void say(tr_graph *graph, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void say(tr_graph *graph, const char *format, ...) {
    char words[TR_MESSAGE_MAX / 2];
    va_list args;
    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    tr_graph_fail(graph, TR_USAGE, "tr_graph_call: %s", words);
}

static const tr_call_row *find(tr_graph *graph, const char *op) {
    const char *names[NAMES_MAX];
    size_t count = 0;
    const tr_call_row *row;
    for (; (row = tr__call_row(count)) && count < NAMES_MAX; count++) {
        names[count] = row->name;
        if (strcmp(row->name, op) == 0) {
            return row;
        }
    }
    const char *nearest = tr__nearest(op, names, count);
    say(graph, "there is no op \"%.60s\"%s%s%s", op,
        nearest ? "; did you mean \"" : "; docs/library.md lists them",
        nearest ? nearest : "", nearest ? "\"?" : "");
    return NULL;
}

// ---- attributes

static const tr_attribute *attribute_of(const tr_call_row *row, const char *name) {
    const tr_attribute *a = row->attributes;
    while (a->name && strcmp(a->name, name) != 0) {
        a++;
    }
    return a->name ? a : NULL;
}

static void fail_unknown(tr_graph *graph, const tr_call_row *row, const char *name) {
    const char *names[TR_CALL_ATTRIBUTES];
    size_t count = 0;
    for (const tr_attribute *a = row->attributes; a->name; a++) {
        names[count++] = a->name;
    }
    const char *nearest = tr__nearest(name, names, count);
    say(graph, "%s has no attribute \"%.60s\"%s%s%s", row->name, name,
        nearest ? "; did you mean \"" : "", nearest ? nearest : "",
        nearest ? "\"?" : "");
}

static bool read_choice(const tr_attribute *a, const json_t *value, double *out) {
    const char *text = json_string_value(value);
    for (int i = 0; text && a->choices[i]; i++) {
        if (strcmp(a->choices[i], text) == 0) {
            *out = i;
            return true;
        }
    }
    return false;
}

static bool read_value(const tr_attribute *a, const json_t *value, double *out) {
    switch (a->kind) {
    case TR_ATTRIBUTE_NUMBER:
        *out = json_number_value(value);
        return json_is_number(value) && isfinite(*out);
    case TR_ATTRIBUTE_COUNT:
        *out = (double)json_integer_value(value);
        return json_is_integer(value) && *out >= 0 && *out <= INT32_MAX;
    case TR_ATTRIBUTE_SWITCH:
        *out = json_is_true(value);
        return json_is_boolean(value);
    case TR_ATTRIBUTE_CHOICE:
        return read_choice(a, value, out);
    }
    return false;
}

static void fail_value(tr_graph *graph, const tr_call_row *row, const tr_attribute *a) {
    static const char *const wanted[] = {[TR_ATTRIBUTE_NUMBER] = "a number",
                                         [TR_ATTRIBUTE_COUNT] =
                                             "a whole number of 0 or more",
                                         [TR_ATTRIBUTE_SWITCH] = "true or false",
                                         [TR_ATTRIBUTE_CHOICE] = "one of"};
    char list[256] = "";
    for (int i = 0; a->choices && a->choices[i]; i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s \"%s\"", i ? "," : "",
                 a->choices[i]);
    }
    say(graph, "%s: the attribute \"%s\" is %s%s", row->name, a->name, wanted[a->kind],
        list);
}

static bool take_attributes(tr_graph *graph, const tr_call_row *row, json_t *object,
                            tr_call_given *given) {
    bool seen[TR_CALL_ATTRIBUTES] = {false};
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value) {
        const tr_attribute *a = attribute_of(row, name);
        if (!a) {
            fail_unknown(graph, row, name);
            return false;
        }
        size_t i = (size_t)(a - row->attributes);
        seen[i] = true;
        if (!read_value(a, value, &given->value[i])) {
            fail_value(graph, row, a);
            return false;
        }
    }
    for (size_t i = 0; row->attributes[i].name; i++) {
        const tr_attribute *a = &row->attributes[i];
        if (!seen[i] && a->required) {
            say(graph, "%s needs the attribute \"%s\"", row->name, a->name);
            return false;
        }
        given->value[i] = seen[i] ? given->value[i] : a->fallback;
    }
    return true;
}

static bool read_attributes(tr_graph *graph, const tr_call_row *row, const char *text,
                            tr_call_given *given) {
    json_error_t problem;
    json_t *object = json_loads(text ? text : "{}", JSON_REJECT_DUPLICATES, &problem);
    if (!object && json_error_code(&problem) == json_error_out_of_memory) {
        tr_graph_fail(graph, TR_MEMORY, "no memory for the attributes of an op");
        return false;
    }
    bool good = json_is_object(object);
    if (!good) {
        say(graph, "%s: the attributes are no JSON object%s%s", row->name,
            object ? "" : ": ", object ? "" : problem.text);
    }
    good = good && take_attributes(graph, row, object, given);
    json_decref(object);
    return good;
}

// ---- operands

static bool take_inputs(tr_graph *graph, const tr_call_row *row, const tr_value *inputs,
                        int count, tr_call_given *given) {
    int known = 0;
    while (known < TR_CALL_INPUTS && row->inputs[known]) {
        known++;
    }
    if (count < 0 || count > known || (count > 0 && !inputs)) {
        say(graph, "%s takes %d to %d inputs, not %d", row->name, row->required, known,
            inputs ? count : 0);
        return false;
    }
    for (int i = 0; i < known; i++) {
        tr_value value = i < count ? inputs[i] : TR_NO_VALUE;
        bool none = value == TR_NO_VALUE;
        if (none && i < row->required) {
            say(graph, "%s needs input %d, \"%s\"", row->name, i, row->inputs[i]);
            return false;
        }
        if (!none && (value < 0 || (size_t)value >= graph->value_count)) {
            say(graph, "%s: input %d, \"%s\", is no value of this graph", row->name, i,
                row->inputs[i]);
            return false;
        }
        given->in[i] = value;
    }
    return true;
}

tr_value tr_graph_call(tr_graph *graph, const char *op, const char *attributes,
                       const tr_value *inputs, int input_count, tr_value *outputs,
                       int output_count) {
    tr_value out[TR_CALL_OUTPUTS] = {TR_NO_VALUE, TR_NO_VALUE};
    tr_call_given given = {.in = {0}};
    const tr_call_row *row = NULL;
    for (int i = 0; outputs && i < output_count; i++) {
        outputs[i] = TR_NO_VALUE;
    }
    if (!graph || tr_graph_status(graph, NULL) != TR_OK) {
        return TR_NO_VALUE;
    }
    if (op) {
        row = find(graph, op);
    } else {
        say(graph, "the op's name is NULL");
    }
    if (row && output_count > row->outputs) {
        say(graph, "%s has %d outputs, not %d", row->name, row->outputs, output_count);
    } else if (row && read_attributes(graph, row, attributes, &given) &&
               take_inputs(graph, row, inputs, input_count, &given)) {
        row->build(graph, &given, out);
    }
    for (int i = 0; outputs && i < output_count && i < TR_CALL_OUTPUTS; i++) {
        outputs[i] = out[i];
    }
    return out[0];
}

// Ops by their names, as tr_graph_call takes them.
#ifndef TR_GRAPH_CALL_H
#define TR_GRAPH_CALL_H

#include <tranche/extend/graph.h>

enum { TR_CALL_ATTRIBUTES = 12, TR_CALL_INPUTS = 8, TR_CALL_OUTPUTS = 2 };

typedef enum tr_attribute_kind {
    TR_ATTRIBUTE_NUMBER,
    TR_ATTRIBUTE_COUNT, // a whole number, 0 or more
    TR_ATTRIBUTE_SWITCH,
    TR_ATTRIBUTE_CHOICE, // one of `choices`; its value is which
} tr_attribute_kind;

typedef struct tr_attribute {
    const char *name; // NULL: after the last
    tr_attribute_kind kind;
    bool required;
    double fallback;
    const char *const *choices; // NULL after the last
} tr_attribute;

// What a call was given: all inputs that the op has (TR_NO_VALUE: left out), and a
// value for each attribute of the row.
typedef struct tr_call_given {
    tr_value in[TR_CALL_INPUTS];
    double value[TR_CALL_ATTRIBUTES];
} tr_call_given;

typedef struct tr_call_row {
    const char *name;
    const char *inputs[TR_CALL_INPUTS]; // their names, NULL after the last
    int required;                       // the first so many inputs
    int outputs;
    tr_attribute attributes[TR_CALL_ATTRIBUTES + 1];
    void (*build)(tr_graph *graph, const tr_call_given *given, tr_value *out);
} tr_call_row;

// ---- call_table.c
// Row number `index`; NULL after the last.
const tr_call_row *tr__call_row(size_t index);

#endif

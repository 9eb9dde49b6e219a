// What a template is once it is parsed: a tree of statements and expressions.
#ifndef TR_TEXT_TEMPLATE_NODE_H
#define TR_TEXT_TEMPLATE_NODE_H

#include "text/template/arena.h"
#include "text/template/value.h"

typedef enum tr_jinja_node_kind {
    // expressions
    TR_NODE_CONSTANT,  // value
    TR_NODE_NAME,      // name
    TR_NODE_LIST,      // list: elements
    TR_NODE_TUPLE,     // list: elements
    TR_NODE_DICT,      // list: keys and values in turn
    TR_NODE_ATTRIBUTE, // first.name
    TR_NODE_ITEM,      // first[second]
    TR_NODE_SLICE,     // first[second:third:fourth]
    TR_NODE_CALL,      // first(list)
    TR_NODE_FILTER,    // first | name(list); first NULL: of a block
    TR_NODE_TEST,      // first is name(list)
    TR_NODE_NOT,       // not first
    TR_NODE_AND,
    TR_NODE_OR,
    TR_NODE_CHOICE,  // first if second else third
    TR_NODE_COMPARE, // first, and list of TR_NODE_OPERAND
    TR_NODE_OPERAND, // name: the operator; first: what is to its right
    TR_NODE_BINARY,  // first name second
    TR_NODE_SIGN,    // name first
    TR_NODE_CONCAT,  // list: elements of a ~ b ~ c
    TR_NODE_KEYWORD, // name=first, in arguments
    // statements
    TR_NODE_DATA,      // value
    TR_NODE_PRINT,     // first
    TR_NODE_IF,        // first: condition; list: body; second: the other case
    TR_NODE_BODY,      // list: statements (of an else)
    TR_NODE_FOR,       // first: target; second: of what; third: condition; list; fourth
    TR_NODE_SET,       // first: target; second: value
    TR_NODE_SET_BLOCK, // first: target; second: filter; list: body
    TR_NODE_MACRO,     // name; first: TR_NODE_PARAMETERs by `next`; list: body
    TR_NODE_PARAMETER, // name; first: default
    TR_NODE_FILTERED,  // second: filter; list: body
    TR_NODE_GENERATION, // list: body
    TR_NODE_BREAK,
    TR_NODE_CONTINUE,
    TR_NODE_ASSIGN_ATTRIBUTE, // a target: name.second
    TR_NODE_KINDS
} tr_jinja_node_kind;

typedef struct tr_jinja_node tr_jinja_node;

// Nodes one after the other, by `next`.
typedef struct tr_jinja_nodes {
    tr_jinja_node *first, *last;
    size_t count;
} tr_jinja_nodes;

struct tr_jinja_node {
    tr_jinja_node_kind kind;
    int line;
    tr_jinja_string name;
    tr_jinja_value value;
    tr_jinja_node *first, *second, *third, *fourth;
    tr_jinja_nodes list;
    tr_jinja_node *next;
};

struct tr_jinja {
    tr_jinja_arena arena;
    char *name;
    tr_jinja_nodes body;
    bool marks_generation;
};

#endif

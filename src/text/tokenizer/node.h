// A value of tokenizer.json and where it stands, so that every message names the place.
#ifndef TR_TEXT_TOKENIZER_NODE_H
#define TR_TEXT_TOKENIZER_NODE_H

#include <tranche/status.h>

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TR_NODE_PATH_MAX = 160 };

typedef struct tr_node {
    const char *file;
    json_t *value; // NULL: nothing there
    char path[TR_NODE_PATH_MAX];
} tr_node;

// A member of an object and an element of an array. What is not there, or is null, has
// the value NULL.
tr_node tr__node_member(const tr_node *node, const char *key);
tr_node tr__node_element(const tr_node *node, size_t index);

// "FILE: PATH: ..." as an error of TR_DATA.
tr_status tr__node_fail(const tr_node *node, tr_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// The refusal of a part that is not supported: its path and its type.
tr_status tr__node_refuse(const tr_node *node, const char *type, tr_error *err);

// Each checks the type. Members that are not there are errors, but in the functions
// with a default value.
tr_status tr__node_object(const tr_node *node, tr_error *err);
tr_status tr__node_array(const tr_node *node, size_t *count, tr_error *err);
tr_status tr__node_text(const tr_node *node, const char **text, size_t *bytes,
                        tr_error *err);
tr_status tr__node_bool(const tr_node *node, bool absent, bool *out, tr_error *err);
// An integer from `least` to `most`.
tr_status tr__node_integer(const tr_node *node, int64_t least, int64_t most,
                           int64_t *out, tr_error *err);
// The member "type" of an object.
tr_status tr__node_type(const tr_node *node, const char **type, tr_error *err);
// A text of exactly one character, as its UTF-8.
tr_status tr__node_character(const tr_node *node, const char **text, size_t *bytes,
                             tr_error *err);

// Visits the parts of a chain: a part that is a Sequence stands for its members, listed
// under `list`. `visit` gets each other part and its type.
typedef tr_status (*tr_node_visit)(void *context, const tr_node *part, const char *type,
                                   tr_error *err);
tr_status tr__node_sequence(const tr_node *node, const char *list, tr_node_visit visit,
                            void *context, tr_error *err);

#endif

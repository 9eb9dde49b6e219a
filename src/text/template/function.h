// Functions, methods, filters and tests: rows of tables, with the names of their
// parameters.
#ifndef TR_TEXT_TEMPLATE_FUNCTION_H
#define TR_TEXT_TEMPLATE_FUNCTION_H

#include "text/template/run.h"

enum { TR_JINJA_PARAMETERS = 4 };

// What a call gives: values by place, and by name.
typedef struct tr_jinja_arguments {
    tr_jinja_value *value;
    size_t count;
    tr_jinja_entry *named; // keys are texts
    size_t named_count;
} tr_jinja_arguments;

// The same by the parameters of the function that is called.
typedef struct tr_jinja_bound {
    tr_jinja_value value[TR_JINJA_PARAMETERS];
    bool given[TR_JINJA_PARAMETERS];
} tr_jinja_bound;

typedef struct tr_jinja_function {
    const char *name;
    // self: what the method, the filter or the test is of. NULL: known, not supported.
    tr_jinja_value (*call)(tr_jinja_run *run, const tr_jinja_value *self,
                           const tr_jinja_bound *arguments);
    const char *parameter[TR_JINJA_PARAMETERS];
    size_t needed; // parameters without a default
    // In place of `call`, for what takes any arguments.
    tr_jinja_value (*any)(tr_jinja_run *run, const tr_jinja_value *self,
                          const tr_jinja_arguments *arguments);
    unsigned kinds; // in place of `call`, for a test of the kind: a bit for each
} tr_jinja_function;

// The row of this name; NULL: none.
const tr_jinja_function *tr__jinja_global(tr_jinja_string name);
const tr_jinja_function *tr__jinja_filter(tr_jinja_string name);
const tr_jinja_function *tr__jinja_test(tr_jinja_string name);
// forbidden: the sandbox keeps templates from it (it would change a value).
const tr_jinja_function *tr__jinja_method(tr_jinja_kind of, tr_jinja_string name,
                                          bool *forbidden);

tr_jinja_value tr__jinja_call(tr_jinja_run *run, const tr_jinja_function *function,
                              const tr_jinja_value *self,
                              const tr_jinja_arguments *arguments);
// Of a text that is safe, what a method makes is safe, and its arguments are escaped.
tr_jinja_value tr__jinja_call_method(tr_jinja_run *run, const tr_jinja_method *method,
                                     const tr_jinja_arguments *arguments);
// The values of the arguments of a node's list.
tr_jinja_arguments tr__jinja_arguments(tr_jinja_run *run, const tr_jinja_nodes *list);
// What an argument that is left out stands for.
tr_jinja_value tr__jinja_or(const tr_jinja_bound *arguments, size_t place,
                            tr_jinja_value otherwise);
bool tr__jinja_truth_or(const tr_jinja_bound *arguments, size_t place, bool otherwise);
// An integer argument; fails where it is none.
int64_t tr__jinja_integer_or(tr_jinja_run *run, const tr_jinja_bound *arguments,
                             size_t place, int64_t otherwise);
// A text argument; fails where it is none.
tr_jinja_string tr__jinja_text_or(tr_jinja_run *run, const tr_jinja_bound *arguments,
                                  size_t place, const char *otherwise);
// The row of this name in a table.
const tr_jinja_function *tr__jinja_row(const tr_jinja_function *table, size_t count,
                                       tr_jinja_string name);

#endif

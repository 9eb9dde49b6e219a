// One rendering of a template.
//
// The first failure is kept in `status`; from then on values are undefined and bodies
// do nothing, so callers need not ask but where they would go on for long.
#ifndef TR_TEXT_TEMPLATE_RUN_H
#define TR_TEXT_TEMPLATE_RUN_H

#include "text/template/characters.h"
#include "text/template/jinja.h"
#include "text/template/node.h"

#include "text/unicode/unicode.h"

// Variables of a body: those of the bodies around it are seen through it.
typedef struct tr_jinja_scope {
    struct tr_jinja_scope *around; // NULL: the template's own
    struct tr_jinja_variable *variable;
    size_t count, capacity;
} tr_jinja_scope;

typedef struct tr_jinja_buffer {
    char *bytes;
    size_t count, capacity;
} tr_jinja_buffer;

typedef enum tr_jinja_jump {
    TR_JUMP_NONE,
    TR_JUMP_BREAK,
    TR_JUMP_CONTINUE
} tr_jinja_jump;

struct tr_jinja_function; // text/template/function.h

typedef struct tr_jinja_run {
    tr_jinja_arena arena;
    const char *name; // of the template
    const struct tm *now;
    const tr_jinja_dict *given; // variables from outside
    tr_jinja_scope *scope;
    tr_jinja_buffer whole, *out; // all text; where text goes to now
    tr_jinja_span *span;         // in {% generation %}
    size_t span_count, span_capacity;
    tr_jinja_jump jump;
    tr_unicode unicode;  // made when a text beyond ASCII has to be of lower case
    tr_jinja_string own; // the name that the innermost {% set %} with a body assigns
    int line, depth, macros; // macros: how many of them run, one in the other
    int64_t steps;           // left
    tr_status status;
    tr_error *err;
    // What lies above those who call it: the body of a macro that an expression calls,
    // and the filter that the argument of another one names.
    void (*run_body)(struct tr_jinja_run *run, const tr_jinja_nodes *body);
    const struct tr_jinja_function *(*filter)(tr_jinja_string name);
} tr_jinja_run;

// ---- failures and limits (limits.c)

enum {
    TR_JINJA_DEPTH_MAX = 1000,
    TR_JINJA_MEMORY_MAX = 1 << 28, // bytes
    TR_JINJA_STEPS_MAX = 1 << 26,
};

void tr__jinja_fail(tr_jinja_run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// Counts work: elements, bytes. Fails where there has been too much of it.
void tr__jinja_charge(tr_jinja_run *run, int64_t work);
// Zeroed memory of this rendering; NULL and a failure where there is none.
void *tr__jinja_take(tr_jinja_run *run, size_t count, size_t size);
// Begins a statement or an expression; false: it may not run. The caller ends it by
// `run->depth--`.
bool tr__jinja_enter(tr_jinja_run *run, int line);

// ---- expressions and statements (evaluate.c, run.c)

tr_jinja_value tr__jinja_evaluate(tr_jinja_run *run, const tr_jinja_node *node);
void tr__jinja_run_body(tr_jinja_run *run, const tr_jinja_nodes *body);
// What a body prints, its `set`s being its own.
tr_jinja_string tr__jinja_capture(tr_jinja_run *run, const tr_jinja_nodes *body);

// ---- scopes (scope.c)

const tr_jinja_value *tr__jinja_find(const tr_jinja_run *run, tr_jinja_string name);
// Has the template assigned it?
bool tr__jinja_is_assigned(const tr_jinja_run *run, tr_jinja_string name);
// In the innermost scope.
void tr__jinja_assign(tr_jinja_run *run, tr_jinja_string name, tr_jinja_value value);
// target: a name or a tuple of such, or an attribute of a namespace.
void tr__jinja_assign_to(tr_jinja_run *run, const tr_jinja_node *target,
                         const tr_jinja_value *value);
tr_jinja_scope *tr__jinja_scope_open(tr_jinja_run *run, tr_jinja_scope *around);

// ---- making values (make.c)

tr_jinja_value tr__jinja_make_text(tr_jinja_run *run, tr_jinja_string text); // a copy
tr_jinja_value tr__jinja_of_string(tr_jinja_string text);
// item: [count], taken over
tr_jinja_value tr__jinja_make_list(tr_jinja_run *run, tr_jinja_kind kind,
                                   tr_jinja_value *item, size_t count);
tr_jinja_value tr__jinja_make_range(tr_jinja_run *run, int64_t start, int64_t stop,
                                    int64_t step);
tr_jinja_value tr__jinja_make_pair(tr_jinja_run *run, tr_jinja_value a,
                                   tr_jinja_value b);
tr_jinja_dict *tr__jinja_make_dict(tr_jinja_run *run);
void tr__jinja_dict_put(tr_jinja_run *run, tr_jinja_dict *dict,
                        const tr_jinja_value *key, const tr_jinja_value *value);
tr_jinja_value tr__jinja_of_dict(tr_jinja_dict *dict);
void tr__jinja_add(tr_jinja_run *run, tr_jinja_buffer *to, tr_jinja_string text);
void tr__jinja_add_word(tr_jinja_run *run, tr_jinja_buffer *to, const char *word);
// The values of JSON.
tr_jinja_value tr__jinja_from_json(tr_jinja_run *run, const struct json_t *json);

// ---- reading values (print.c, iterate.c, parts.c, properties.c, compute.c)

// str(value)
tr_jinja_string tr__jinja_to_text(tr_jinja_run *run, const tr_jinja_value *value);
void tr__jinja_print(tr_jinja_run *run, tr_jinja_buffer *to,
                     const tr_jinja_value *value);
// repr(value): texts in quotation marks, as within lists.
void tr__jinja_print_quoted(tr_jinja_run *run, tr_jinja_buffer *to,
                            const tr_jinja_value *value);
void tr__jinja_print_real(tr_jinja_run *run, tr_jinja_buffer *to, double value);
// What `for` goes through; NULL and a failure: nothing can.
const tr_jinja_list *tr__jinja_iterate(tr_jinja_run *run, const tr_jinja_value *value);
// A generator of which only the first `used` items were gone through has the others
// left.
void tr__jinja_give_back(const tr_jinja_value *generator, size_t used);
// of.name, of[key], of[from:to:step]
tr_jinja_value tr__jinja_attribute(tr_jinja_run *run, const tr_jinja_value *of,
                                   tr_jinja_string name);
// What is no method and no item: of numbers and ranges.
tr_jinja_value tr__jinja_property(tr_jinja_run *run, const tr_jinja_value *of,
                                  tr_jinja_string name);
tr_jinja_value tr__jinja_item(tr_jinja_run *run, const tr_jinja_value *of,
                              const tr_jinja_value *key);
tr_jinja_value tr__jinja_slice(tr_jinja_run *run, const tr_jinja_value *of,
                               const tr_jinja_value bound[3]);
// part in whole
bool tr__jinja_contains(tr_jinja_run *run, const tr_jinja_value *whole,
                        const tr_jinja_value *part);
// a + b and its like
tr_jinja_value tr__jinja_compute(tr_jinja_run *run, tr_jinja_string operator,
                                 const tr_jinja_value * a, const tr_jinja_value *b);
bool tr__jinja_same(tr_jinja_run *run, const tr_jinja_value *a,
                    const tr_jinja_value *b);
// Fails where the two cannot be ordered.
int tr__jinja_compare(tr_jinja_run *run, const tr_jinja_value *a,
                      const tr_jinja_value *b);
tr_jinja_string tr__jinja_escape(tr_jinja_run *run, tr_jinja_string text); // HTML

#endif

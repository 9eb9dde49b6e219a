// Chat templates: the part of Jinja that they use, with the results of jinja2 as
// transformers configures it (trim_blocks, lstrip_blocks, an immutable sandbox, its
// `tojson`, `raise_exception`, `strftime_now` and `{% generation %}`).
//
// A template comes with a model from elsewhere, so nobody trusts it: depth, steps and
// memory of a rendering have limits, and a template reaches nothing but its variables.
// What is not supported is an error that names the construct and its line.
//
//     lexer -> parser -> nodes -> run (statements) -> evaluate (expressions)
#ifndef TR_TEXT_TEMPLATE_JINJA_H
#define TR_TEXT_TEMPLATE_JINJA_H

#include <tranche/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_t; // jansson's
struct tm;

// A template never changes once it is parsed, so threads can share it.
typedef struct tr_jinja tr_jinja;

// name: for messages, copied. TR_DATA: a mistake in the template, or a construct that
// is not supported, as NAME:LINE; TR_MEMORY.
tr_status tr__jinja_parse(const char *name, const char *text, size_t bytes,
                          tr_jinja **out, tr_error *err);
void tr__jinja_destroy(tr_jinja *jinja); // NULL-safe
// Does the template mark what the assistant says by {% generation %}?
bool tr__jinja_marks_generation(const tr_jinja *jinja);

// Bytes [begin, end) of a rendered text.
typedef struct tr_jinja_span {
    size_t begin, end;
} tr_jinja_span;

typedef struct tr_jinja_rendered { // zero-initialized: empty
    char *text;
    size_t bytes;
    tr_jinja_span *span; // [spans], what stands in {% generation %}
    size_t spans;
} tr_jinja_rendered;

void tr__jinja_rendered_release(tr_jinja_rendered *rendered);

// variables: an object. now: what strftime_now shows; NULL: it is an error. TR_DATA:
// the template raises an exception, does what jinja2 does not allow, or takes too long.
tr_status tr__jinja_render(const tr_jinja *jinja, const struct json_t *variables,
                           const struct tm *now, tr_jinja_rendered *out, tr_error *err);

#endif

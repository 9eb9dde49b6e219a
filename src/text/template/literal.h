// Literals of a template's expressions.
#ifndef TR_TEXT_TEMPLATE_LITERAL_H
#define TR_TEXT_TEMPLATE_LITERAL_H

#include "text/template/arena.h"
#include "text/template/value.h"

// Python's escapes in what stands between quotes. false: *problem says why; NULL: no
// memory.
bool tr__jinja_unescape(tr_jinja_arena *arena, tr_jinja_string raw,
                        tr_jinja_string *text, const char **problem);
// The number at the begin of a text. Returns its bytes; 0: it is none that is
// supported.
size_t tr__jinja_number(tr_jinja_string text, tr_jinja_value *number);

#endif

// What Python's str does with texts.
#ifndef TR_TEXT_TEMPLATE_STRINGS_H
#define TR_TEXT_TEMPLATE_STRINGS_H

#include "text/template/function.h"

// chars: the characters that go; None: blanks.
tr_jinja_value tr__jinja_strip(tr_jinja_run *run, tr_jinja_string text,
                               const tr_jinja_value *chars, bool left, bool right);
// At most `most` times (below 0: without end), from the left or from the right.
tr_jinja_value tr__jinja_split(tr_jinja_run *run, tr_jinja_string text,
                               tr_jinja_string separator, int64_t most,
                               bool from_right);
tr_jinja_value tr__jinja_split_blanks(tr_jinja_run *run, tr_jinja_string text,
                                      int64_t most, bool from_right);
tr_jinja_value tr__jinja_split_lines(tr_jinja_run *run, tr_jinja_string text);
tr_jinja_value tr__jinja_replace(tr_jinja_run *run, tr_jinja_string text,
                                 tr_jinja_string from, tr_jinja_string to,
                                 int64_t most);
// The first place of a part at or behind byte `from`.
bool tr__jinja_search(tr_jinja_run *run, tr_jinja_string text, tr_jinja_string part,
                      size_t from, size_t *at);
// The last place of a part that ends at or before byte `end`.
bool tr__jinja_search_back(tr_jinja_run *run, tr_jinja_string text,
                           tr_jinja_string part, size_t end, size_t *at);
// Where the characters go that fill a text up.
typedef enum tr_jinja_side { TR_PAD_LEFT, TR_PAD_RIGHT, TR_PAD_CENTER } tr_jinja_side;

// A text of at least `width` characters. with: one character.
tr_jinja_value tr__jinja_pad(tr_jinja_run *run, tr_jinja_string text, int64_t width,
                             tr_jinja_side side, tr_jinja_string with);
// The row of a method of texts; NULL: Python has none of this name.
const tr_jinja_function *tr__jinja_text_method(tr_jinja_string name);
// str.format with {}, {0} and {name}, without formats behind a colon.
tr_jinja_value tr__jinja_format(tr_jinja_run *run, tr_jinja_string text,
                                const tr_jinja_arguments *arguments);

#endif

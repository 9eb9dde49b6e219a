// What kind of characters a text consists of: Python's str.isalpha and its like. Where
// the answer depends on what is not known of a character beyond ASCII, the rendering
// fails. So isdecimal and isdigit are one.
#ifndef TR_TEXT_TEMPLATE_TEXT_KINDS_H
#define TR_TEXT_TEMPLATE_TEXT_KINDS_H

#include "text/template/function.h"

typedef tr_jinja_value tr_jinja_text_kind(tr_jinja_run *run, const tr_jinja_value *self,
                                          const tr_jinja_bound *arguments);

tr_jinja_text_kind tr__jinja_text_isalnum, tr__jinja_text_isalpha,
    tr__jinja_text_isascii, tr__jinja_text_isdigit, tr__jinja_text_islower,
    tr__jinja_text_isnumeric, tr__jinja_text_isspace, tr__jinja_text_istitle,
    tr__jinja_text_isupper;

#endif

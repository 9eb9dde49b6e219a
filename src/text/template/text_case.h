// Upper and lower case. Upper case of letters beyond ASCII is not supported, nor is
// lower case of the Greek sigma, which has two: the rendering fails.
#ifndef TR_TEXT_TEMPLATE_TEXT_CASE_H
#define TR_TEXT_TEMPLATE_TEXT_CASE_H

#include "text/template/run.h"

typedef enum tr_jinja_case {
    TR_CASE_LOWER,
    TR_CASE_UPPER,
    TR_CASE_CAPITAL,     // of the first letter of the text
    TR_CASE_TITLE,       // of each letter that follows none
    TR_CASE_TITLE_WORDS, // of what follows blanks, - ( { [ and <
    TR_CASE_SWAP,
} tr_jinja_case;

tr_jinja_value tr__jinja_change_case(tr_jinja_run *run, tr_jinja_string text,
                                     tr_jinja_case to);

// Of letters beyond ASCII it is not known whether they are upper or lower: false.
bool tr__jinja_case_known(uint32_t c);
// \p{L} and \p{N}
bool tr__jinja_is_letter(tr_jinja_run *run, uint32_t c);
bool tr__jinja_is_numeric(tr_jinja_run *run, uint32_t c);

#endif

// Upper and lower case. Upper case of letters beyond ASCII is not supported, nor is
// lower case of the Greek sigma, which has two: the rendering fails.
#ifndef TR_JINJA_TEXT_CASE_H
#define TR_JINJA_TEXT_CASE_H

#include "jinja/run.h"

typedef enum tr_jinja_case {
    TR_CASE_LOWER,
    TR_CASE_UPPER,
    TR_CASE_CAPITAL, // of the first letter of the text
    TR_CASE_TITLE,   // of the first letter of each word
} tr_jinja_case;

tr_jinja_value tr__jinja_change_case(tr_jinja_run *run, tr_jinja_string text,
                                     tr_jinja_case to);

#endif

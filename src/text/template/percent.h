// Python's `text % values`.
#ifndef TR_TEXT_TEMPLATE_PERCENT_H
#define TR_TEXT_TEMPLATE_PERCENT_H

#include "text/template/run.h"

// values: a tuple of them, a dictionary for %(name)s, or one value. Conversions: s, r,
// d, i, u, f, F, e, E, g, G, x, X, o, c and %, with flags, a width and a precision.
// Others are refused, and so is '#'.
tr_jinja_value tr__jinja_percent(tr_jinja_run *run, tr_jinja_string text,
                                 const tr_jinja_value *values);

#endif

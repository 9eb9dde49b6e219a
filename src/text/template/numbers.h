// Python's int(), float(), round() and abs(), as filters.
#ifndef TR_TEXT_TEMPLATE_NUMBERS_H
#define TR_TEXT_TEMPLATE_NUMBERS_H

#include "text/template/function.h"

// (default, base)
tr_jinja_value tr__jinja_to_int(tr_jinja_run *run, const tr_jinja_value *self,
                                const tr_jinja_bound *arguments);
// (default)
tr_jinja_value tr__jinja_to_float(tr_jinja_run *run, const tr_jinja_value *self,
                                  const tr_jinja_bound *arguments);
// (precision, method)
tr_jinja_value tr__jinja_round(tr_jinja_run *run, const tr_jinja_value *self,
                               const tr_jinja_bound *arguments);
tr_jinja_value tr__jinja_absolute(tr_jinja_run *run, const tr_jinja_value *self,
                                  const tr_jinja_bound *arguments);

#endif

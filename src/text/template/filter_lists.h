// Filters that choose, change and order the items of lists.
#ifndef TR_TEXT_TEMPLATE_FILTER_LISTS_H
#define TR_TEXT_TEMPLATE_FILTER_LISTS_H

#include "text/template/function.h"

typedef tr_jinja_value tr_jinja_filter_any(tr_jinja_run *run,
                                           const tr_jinja_value *self,
                                           const tr_jinja_arguments *arguments);
typedef tr_jinja_value tr_jinja_filter_call(tr_jinja_run *run,
                                            const tr_jinja_value *self,
                                            const tr_jinja_bound *arguments);

tr_jinja_filter_any tr__jinja_select, tr__jinja_reject, tr__jinja_selectattr,
    tr__jinja_rejectattr, tr__jinja_map;
tr_jinja_filter_call tr__jinja_sort, tr__jinja_dictsort, tr__jinja_unique,
    tr__jinja_min, tr__jinja_max, tr__jinja_sum, tr__jinja_reverse;

// item.a.0.b, by a text with dots; an integer is one key.
tr_jinja_value tr__jinja_by_path(tr_jinja_run *run, const tr_jinja_value *item,
                                 const tr_jinja_value *path);

#endif

// json.dumps of Python.
#ifndef TR_TEXT_TEMPLATE_TOJSON_H
#define TR_TEXT_TEMPLATE_TOJSON_H

#include "text/template/run.h"

typedef struct tr_jinja_json_style {
    bool ascii;                // all else is escaped
    bool lines;                // an element a line,
    tr_jinja_string indent;    // and this for each level before it
    tr_jinja_string item, key; // separators
    bool sorted;               // keys of dictionaries
} tr_jinja_json_style;

void tr__jinja_to_json(tr_jinja_run *run, tr_jinja_buffer *to,
                       const tr_jinja_value *value, const tr_jinja_json_style *style);

#endif

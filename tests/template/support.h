// What tests of templates share.
#ifndef TESTS_JINJA_SUPPORT_H
#define TESTS_JINJA_SUPPORT_H

#include "text/template/jinja.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

// Parses a template that is called "t", and renders it. `variables`: an object.
tr_status jinja_render(const char *template, const struct json_t *variables,
                       tr_jinja_rendered *out, tr_error *err);

#endif

#include "support.h"

#include <string.h>

tr_status jinja_render(const char *template, const struct json_t *variables,
                       tr_jinja_rendered *out, tr_error *err) {
    tr_jinja *jinja = NULL;
    tr_status status = tr__jinja_parse("t", template, strlen(template), &jinja, err);
    if (status == TR_OK) {
        status = tr__jinja_render(jinja, variables, NULL, out, err);
    }
    tr__jinja_destroy(jinja);
    return status;
}

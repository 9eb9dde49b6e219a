// Renders templates for tools/compare_templates.py and tools/compare_snippets.py: of
// each line of standard input, a JSON array of a template's path, its variables and
// perhaps its text (in place of the file's), writes one line, a JSON object:
// {"text": ..., "spans": [[begin, end], ...]} (in bytes) or {"error": ...}.
#include "text/template/jinja.h"

#include "base/files.h"
#include "base/memory.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { FILE_MAX = 16 << 20 };

static tr_status render(const char *path, const json_t *variables, const json_t *given,
                        tr_jinja_rendered *out, tr_error *err) {
    char *file = NULL;
    size_t bytes = json_string_length(given);
    tr_jinja *jinja = NULL;
    time_t now = time(NULL);
    struct tm today;
    localtime_r(&now, &today);
    tr_status status =
        given ? TR_OK : tr__file_read(path, FILE_MAX, &file, &bytes, err);
    if (status == TR_OK) {
        const char *text = given ? json_string_value(given) : file;
        status = tr__jinja_parse(path, text, bytes, &jinja, err);
    }
    if (status == TR_OK) {
        status = tr__jinja_render(jinja, variables, &today, out, err);
    }
    tr__jinja_destroy(jinja);
    tr__free(file);
    return status;
}

static json_t *answer(const json_t *request) {
    tr_jinja_rendered rendered = {0};
    tr_error err = {0};
    const char *path = json_string_value(json_array_get(request, 0));
    if (!path || render(path, json_array_get(request, 1), json_array_get(request, 2),
                        &rendered, &err) != TR_OK) {
        return json_pack("{s:s}", "error", path ? err.message : "no request");
    }
    json_t *spans = json_array();
    for (size_t i = 0; i < rendered.spans; i++) {
        json_array_append_new(spans,
                              json_pack("[I, I]", (json_int_t)rendered.span[i].begin,
                                        (json_int_t)rendered.span[i].end));
    }
    json_t *object =
        json_pack("{s:o, s:o}", "text", json_stringn(rendered.text, rendered.bytes),
                  "spans", spans);
    tr__jinja_rendered_release(&rendered);
    return object;
}

int main(void) {
    char *line = NULL;
    size_t capacity = 0;
    ssize_t bytes;
    while ((bytes = getline(&line, &capacity, stdin)) > 0) {
        json_error_t problem;
        json_t *request = json_loadb(line, (size_t)bytes, JSON_ALLOW_NUL, &problem);
        json_t *object = answer(request);
        if (!object || json_dumpf(object, stdout, JSON_COMPACT) != 0) {
            return 1;
        }
        putchar('\n');
        fflush(stdout);
        json_decref(object);
        json_decref(request);
    }
    free(line);
    return 0;
}

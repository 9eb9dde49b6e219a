#include "cli/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *cli_json_number(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *cli_json_text(const char *text) {
    return text && text[0] ? json_string(text) : json_null();
}

// Bytes of the character of UTF-8 that begins here; 0: none does.
static size_t character_bytes(const char *at) {
    enum { MOST = 4 };
    size_t bytes = 0;
    for (size_t n = 1; n <= strnlen(at, MOST) && bytes == 0; n++) {
        json_t *character = json_stringn(at, n); // NULL: this is no UTF-8
        bytes = character ? n : 0;
        json_decref(character);
    }
    return bytes;
}

json_t *cli_json_path(const char *path) {
    static const char replacement[] = "\xef\xbf\xbd";
    char *text = calloc(3 * strlen(path) + 1, 1), *to = text;
    while (text && *path) {
        size_t bytes = character_bytes(path), put = bytes ? bytes : 3;
        memcpy(to, bytes ? path : replacement, put);
        to += put;
        path += bytes ? bytes : 1;
    }
    json_t *whole = text ? json_string(text) : NULL;
    free(text);
    return whole;
}

static tr_status dump(json_t *object, size_t flags, tr_error *err) {
    char *text = object ? json_dumps(object, flags) : NULL;
    json_decref(object);
    if (!text) {
        return tr_fail(err, TR_MEMORY, "no memory to write JSON");
    }
    fputs(text, stdout);
    free(text);
    return TR_OK;
}

tr_status cli_json_line(json_t *object, size_t digits, tr_error *err) {
    return dump(object, digits > 0 ? JSON_REAL_PRECISION(digits) : 0, err);
}

tr_status cli_json_print(json_t *object, tr_error *err) {
    tr_status status = dump(object, JSON_INDENT(2), err);
    if (status == TR_OK) {
        putchar('\n');
    }
    return status;
}

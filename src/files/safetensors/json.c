#include "files/safetensors/json.h"

#include "base/memory.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

tr_status tr__json_parse(const char *path, const char *text, size_t bytes, json_t **out,
                         tr_error *err) {
    json_error_t problem;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &problem);
    if (!root) {
        return tr_fail(err, TR_IO, "%s: line %d, column %d: not valid JSON: %s", path,
                       problem.line, problem.column, problem.text);
    }
    if (!json_is_object(root)) {
        json_decref(root);
        return tr_fail(err, TR_IO, "%s: not a JSON object", path);
    }
    *out = root;
    return TR_OK;
}

// The bytes of the character that begins there, by table 3-7 of the Unicode standard;
// 0: none does.
static size_t character_bytes(const unsigned char *at) {
    size_t bytes = at[0] < 0x80    ? 1
                   : at[0] < 0xc2  ? 0
                   : at[0] < 0xe0  ? 2
                   : at[0] < 0xf0  ? 3
                   : at[0] <= 0xf4 ? 4
                                   : 0;
    unsigned char least = at[0] == 0xe0 ? 0xa0 : at[0] == 0xf0 ? 0x90 : 0x80;
    unsigned char most = at[0] == 0xed ? 0x9f : at[0] == 0xf4 ? 0x8f : 0xbf;
    for (size_t i = 1; i < bytes; i++) { // a zero byte ends the loop
        if (at[i] < least || at[i] > most) {
            return 0;
        }
        least = 0x80;
        most = 0xbf;
    }
    return bytes;
}

json_t *tr__json_path(const char *path) {
    static const char replacement[] = "\xef\xbf\xbd";
    const unsigned char *at = (const unsigned char *)path;
    size_t used = 0;
    char *text = tr__calloc(3 * strlen(path) + 1, 1);
    while (text && *at) {
        size_t bytes = character_bytes(at);
        memcpy(text + used, bytes ? (const char *)at : replacement, bytes ? bytes : 3);
        used += bytes ? bytes : 3;
        at += bytes ? bytes : 1;
    }
    json_t *value = text ? json_string(text) : NULL;
    tr__free(text);
    return value;
}

json_t *tr__json_double(double value) {
    if (isnan(value)) {
        return json_string("nan");
    }
    if (isinf(value)) {
        return json_string(value > 0 ? "inf" : "-inf");
    }
    return json_real(value);
}

bool tr__json_get_double(const json_t *value, double *out) {
    static const struct {
        const char *word;
        double value;
    } words[] = {{"nan", NAN}, {"inf", INFINITY}, {"-inf", -INFINITY}};
    if (json_is_number(value)) {
        *out = json_number_value(value);
        return true;
    }
    for (size_t i = 0; json_is_string(value) && i < sizeof words / sizeof *words; i++) {
        if (strcmp(json_string_value(value), words[i].word) == 0) {
            *out = words[i].value;
            return true;
        }
    }
    return false;
}

json_t *tr__json_u64(uint64_t value) {
    if (value <= INT64_MAX) {
        return json_integer((json_int_t)value);
    }
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRIu64, value);
    return json_string(digits);
}

static bool parse_u64(const json_t *value, int base, uint64_t *out) {
    const char *text = json_string_value(value);
    char *end = NULL;
    if (!text || !isxdigit((unsigned char)*text)) {
        return false;
    }
    errno = 0;
    *out = strtoull(text, &end, base);
    return errno == 0 && *end == '\0';
}

bool tr__json_get_u64(const json_t *value, uint64_t *out) {
    if (json_is_integer(value) && json_integer_value(value) >= 0) {
        *out = (uint64_t)json_integer_value(value);
        return true;
    }
    return parse_u64(value, 10, out);
}

json_t *tr__json_hash(uint64_t hash) {
    char digits[24];
    snprintf(digits, sizeof digits, "%016" PRIx64, hash);
    return json_string(digits);
}

bool tr__json_get_hash(const json_t *value, uint64_t *out) {
    return json_is_string(value) && json_string_length(value) == 16 &&
           parse_u64(value, 16, out);
}

char *tr__json_text(const json_t *root, size_t flags) {
    char none;
    size_t bytes = root ? json_dumpb(root, &none, 0, flags) : 0; // 0: no memory
    char *text = bytes > 0 ? tr__calloc(bytes + 1, 1) : NULL;
    if (text && json_dumpb(root, text, bytes, flags) != bytes) {
        tr__free(text);
        text = NULL;
    }
    return text;
}

tr_status tr__json_print(json_t *root, FILE *to, tr_error *err) {
    if (!root) {
        return tr_fail(err, TR_MEMORY, "no memory to write JSON");
    }
    char *text = tr__json_text(root, JSON_INDENT(2));
    json_decref(root);
    if (!text) {
        return tr_fail(err, TR_MEMORY, "no memory to write JSON");
    }
    int failed = fputs(text, to) == EOF || fputc('\n', to) == EOF;
    tr__free(text);
    return failed ? tr_fail(err, TR_IO, "cannot write JSON: %s", strerror(errno))
                  : TR_OK;
}

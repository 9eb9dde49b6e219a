#include "data/sources/number.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

// inf, infinity and nan, signed or not: what is written for a value that is none.
static tr_number_kind parse_word(const char *text, size_t length) {
    static const char *const words[] = {"inf", "infinity", "nan"};
    if (length > 0 && (*text == '+' || *text == '-')) {
        text++;
        length--;
    }
    for (int i = 0; i < 3; i++) {
        if (strlen(words[i]) == length && strncasecmp(text, words[i], length) == 0) {
            return TR_NUMBER_INFINITE;
        }
    }
    return TR_NUMBER_NONE;
}

tr_number_kind tr__number_parse(const char *text, double *value) {
    text += strspn(text, " \t");
    size_t length = strlen(text);
    while (length > 0 && strchr(" \t", text[length - 1])) {
        length--;
    }
    // What strtod takes beyond these characters (hexadecimal, for one) is no number of
    // a table.
    if (length == 0 || strspn(text, "+-.0123456789eE") < length) {
        return parse_word(text, length);
    }
    // The C locale is static in the C library: made without memory, never to be freed.
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    char *end = NULL;
    *value = strtod_l(text, &end, plain);
    if (end != text + length) {
        return TR_NUMBER_NONE;
    }
    return fabs(*value) <= FLT_MAX ? TR_NUMBER_FINITE : TR_NUMBER_INFINITE;
}

#include "backend/attention.h"

#include <stddef.h>
#include <string.h>

static const char *const names[] = {TR_ATTENTION_NAMES};

enum { NAMES = sizeof names / sizeof *names };

_Static_assert(NAMES == 1 + TR_ATTENTION_LAST - TR_ATTENTION_FIRST + 1,
               "every version has a name");

static int version_of(size_t name) {
    return name == 0 ? -1 : TR_ATTENTION_FIRST + (int)name - 1;
}

const char *tr__attention_name(int version) {
    size_t i = 0;
    while (i < NAMES && version_of(i) != version) {
        i++;
    }
    return i < NAMES ? names[i] : "auto";
}

int tr__attention_find(const char *name) {
    size_t i = 0;
    while (i < NAMES && strcmp(names[i], name) != 0) {
        i++;
    }
    return i < NAMES ? version_of(i) : 0;
}

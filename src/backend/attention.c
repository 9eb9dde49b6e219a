#include "backend/attention.h"

#include <stddef.h>
#include <string.h>

static const char *const names[] = {TR_ATTENTION_NAMES};
static const int versions[] = {-1, 919, 920, 921, 922, 923, 924, 925, 926, 927, 928};

enum { NAMES = sizeof names / sizeof *names };

const char *tr__attention_name(int version) {
    size_t i = 0;
    while (i < NAMES && versions[i] != version) {
        i++;
    }
    return i < NAMES ? names[i] : "auto";
}

int tr__attention_find(const char *name) {
    size_t i = 0;
    while (i < NAMES && strcmp(names[i], name) != 0) {
        i++;
    }
    return i < NAMES ? versions[i] : 0;
}

#include "base/arguments.h"

#include <tranche/version.h>

#include <string.h>

tr_status tr__need(const void *argument, const char *function, const char *name,
                   tr_error *err) {
    return argument
               ? TR_OK
               : tr_fail(err, TR_USAGE, "%s: the argument \"%s\" is NULL; give one",
                         function, name);
}

tr_status tr__need_sized(const void *argument, const tr_sized *known,
                         const char *function, tr_error *err) {
    size_t size = 0;
    if (!argument) {
        return tr__need(argument, function, known->type, err);
    }
    memcpy(&size, argument, sizeof size); // the first member
    size_t least = known->least ? known->least : known->size;
    if (size >= least && size <= known->size) {
        return TR_OK;
    }
    return tr_fail(err, TR_USAGE,
                   "%s: a %s of %zu bytes; libtranche %s knows one of %zu: begin with "
                   "%s, and run with a library that is no older than the headers",
                   function, known->type, size, TRANCHE_VERSION, known->size,
                   known->macro);
}

void tr__give_sized(void *to, const void *from) {
    size_t size = 0;
    memcpy(&size, to, sizeof size);
    memcpy((char *)to + sizeof size, (const char *)from + sizeof size,
           size - sizeof size);
}

// What the examples do with an error: they say it, and end with the program's status.
#include <tranche.h>

#include <stdio.h>
#include <stdlib.h>

static inline void ok(tr_status status, const tr_error *err) {
    if (status != TR_OK) {
        fprintf(stderr, "%s\n", err->message);
        exit(tr_status_exit(status));
    }
}

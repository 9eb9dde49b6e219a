// What the caller has said of a run before it is resolved.
#ifndef TR_RUN_GIVEN_H
#define TR_RUN_GIVEN_H

#include "config/config.h"

#include <tranche/run.h>

#include <stdbool.h>
#include <stddef.h>

// One call that sets a key; the texts are owned.
typedef struct tr_given_value {
    char *key, *value, *source;
    bool literal, append; // as tr_config_override's
} tr_given_value;

typedef struct tr_given {
    char *file; // path of the run file; NULL: there is none
    char *text; // the file's, or the caller's; NULL: neither
    size_t bytes;
    tr_given_value *set; // [count], in the order of the calls
    size_t count, capacity;
    char *source; // of what is set next
    tr_run_parts parts;
} tr_given;

// A run without anything said. TR_MEMORY.
tr_status tr__given_begin(tr_given *given, tr_error *err);
void tr__given_clear(tr_given *given);
// Copies all; the parts' pointers stay the caller's. to: zeros. TR_MEMORY.
tr_status tr__given_copy(tr_given *to, const tr_given *from, tr_error *err);
// Takes copies of the texts of `value`, whose source is that of `given`. TR_MEMORY.
tr_status tr__given_add(tr_given *given, const tr_given_value *value, tr_error *err);
// Reads file and values against the tables of keys. rules_out: values may rule out keys
// of the file (tr_config_override). The caller destroys *out. TR_USAGE: what is wrong.
tr_status tr__given_read(const tr_given *given, bool rules_out, tr_config **out,
                         tr_error *err);

#endif

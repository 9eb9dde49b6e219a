// A config out of JSON text and --set lines, with the tables of the whole program.
#ifndef TR_TESTS_CONFIG_HELPER_H
#define TR_TESTS_CONFIG_HELPER_H

#include "config/config.h"

// `sets`: NULL-terminated "KEY=VALUE" lines, or NULL.
tr_status try_config(const char *text, const char *const *sets, tr_config **out,
                     tr_error *err);
// The same, which must succeed; the caller destroys it.
tr_config *good_config(const char *text, const char *const *sets);
// The text must be refused with TR_USAGE and a message that has each of `words`
// (NULL-terminated).
void refused(const char *text, const char *const *sets, const char *const *words);

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

#endif

// Patterns of parameter names in a run file: globs of the names that files have.
#ifndef TR_RUN_PATTERNS_H
#define TR_RUN_PATTERNS_H

#include "plan/flow/plan.h"

#include <jansson.h>

typedef struct tr_patterns {
    char **globs; // [count]
    size_t count;
} tr_patterns;

// One text, or a list of texts; NULL: none. Cleared by tr__patterns_clear in any case.
tr_status tr__patterns_read(const json_t *from, tr_patterns *out, tr_error *err);
void tr__patterns_clear(tr_patterns *patterns);
bool tr__patterns_match(const tr_patterns *patterns, const char *name);
// Does a pattern match a parameter of the plan's model?
bool tr__pattern_names_any(const tr_plan *plan, const char *pattern);
// TR_USAGE: one of them matches no parameter of the plan's model; the message names the
// nearest that would. key: where the patterns stand, "freeze".
tr_status tr__patterns_check(const tr_patterns *patterns, const tr_plan *plan,
                             const char *key, tr_error *err);

#endif

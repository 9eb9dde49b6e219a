#include "run/patterns.h"

#include "base/memory.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 256 };

tr_status tr__patterns_read(const json_t *from, tr_patterns *out, tr_error *err) {
    size_t count = json_is_array(from)    ? json_array_size(from)
                   : json_is_string(from) ? 1
                                          : 0;
    *out = (tr_patterns){tr__calloc(count + 1, sizeof *out->globs), 0};
    for (size_t i = 0; out->globs && i < count; i++) {
        const json_t *text = json_is_array(from) ? json_array_get(from, i) : from;
        out->globs[i] = tr__strdup(json_string_value(text));
        if (!out->globs[i]) {
            break;
        }
        out->count++;
    }
    return out->globs && out->count == count
               ? TR_OK
               : tr_fail(err, TR_MEMORY, "no memory for patterns of parameters");
}

void tr__patterns_clear(tr_patterns *patterns) {
    for (size_t i = 0; i < patterns->count; i++) {
        tr__free(patterns->globs[i]);
    }
    tr__free(patterns->globs);
    *patterns = (tr_patterns){0};
}

bool tr__patterns_match(const tr_patterns *patterns, const char *name) {
    for (size_t i = 0; i < patterns->count; i++) {
        if (tr__glob_match(patterns->globs[i], name)) {
            return true;
        }
    }
    return false;
}

bool tr__pattern_names_any(const tr_plan *plan, const char *pattern) {
    for (size_t i = 0; i < plan->param_count; i++) {
        if (tr__glob_match(pattern, plan->params[i].stored)) {
            return true;
        }
    }
    return false;
}

// The nearest to `pattern` of the names from `best` on: a name itself, or "*" and a
// part of one that begins with a dot. best: [NAME_BYTES], "" where there is none yet.
static void look_at(const char *pattern, const char *name, char *best) {
    char now[NAME_BYTES];
    const char *both[2] = {best, now};
    snprintf(now, sizeof now, "%s", name);
    for (const char *dot = name; dot; dot = strchr(dot + 1, '.')) {
        if (dot != name) {
            snprintf(now, sizeof now, "*%s", dot);
        }
        const char *nearest = tr__nearest(pattern, both, 2);
        if (nearest == now) {
            memcpy(best, now, sizeof now);
        }
    }
}

static tr_status fail_unmatched(const tr_plan *plan, const char *key,
                                const char *pattern, tr_error *err) {
    char best[NAME_BYTES] = "";
    for (size_t i = 0; i < plan->param_count; i++) {
        look_at(pattern, plan->params[i].stored, best);
    }
    const char *near = best[0] ? best : plan->params[0].stored;
    return tr_fail(err, TR_USAGE,
                   "%s: \"%.200s\" matches no parameter of the model; %s \"%s\"%s", key,
                   pattern, best[0] ? "did you mean" : "a parameter is", near,
                   best[0] ? "?" : "");
}

tr_status tr__patterns_check(const tr_patterns *patterns, const tr_plan *plan,
                             const char *key, tr_error *err) {
    for (size_t p = 0; p < patterns->count; p++) {
        if (!tr__pattern_names_any(plan, patterns->globs[p])) {
            return fail_unmatched(plan, key, patterns->globs[p], err);
        }
    }
    return TR_OK;
}

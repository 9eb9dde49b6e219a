// Parameter groups: which group a parameter is of, and whether every pattern is one of
// this model's names.
#include "base/memory.h"
#include "base/text.h"
#include "plan/plan.h"
#include "train/run.h"

#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 256 };

static bool matches(const tr_param_group *group, const char *name) {
    for (size_t p = 0; p < group->pattern_count; p++) {
        if (tr__glob_match(group->patterns[p], name)) {
            return true;
        }
    }
    return false;
}

int tr__group_of(const tr_settings *settings, const char *name) {
    size_t last = settings->group_count - 1, g = 0;
    while (g < last && !matches(&settings->groups[g], name)) {
        g++;
    }
    return (int)g;
}

static bool matches_any(const tr_plan *plan, const char *pattern) {
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

static tr_status fail_unmatched(const tr_plan *plan, size_t group, const char *pattern,
                                tr_error *err) {
    char best[NAME_BYTES] = "";
    for (size_t i = 0; i < plan->param_count; i++) {
        look_at(pattern, plan->params[i].stored, best);
    }
    const char *near = best[0] ? best : plan->params[0].stored;
    return tr_fail(
        err, TR_USAGE,
        "optimizer.groups[%zu].match: \"%.200s\" matches no parameter of the "
        "model; %s \"%s\"%s",
        group, pattern, best[0] ? "did you mean" : "a parameter is", near,
        best[0] ? "?" : "");
}

tr_status tr__run_check_groups(const tr_run *run, const tr_plan *plan, tr_error *err) {
    const tr_settings *s = &run->settings;
    for (size_t g = 0; g + 1 < s->group_count; g++) {
        for (size_t p = 0; p < s->groups[g].pattern_count; p++) {
            const char *pattern = s->groups[g].patterns[p];
            if (!matches_any(plan, pattern)) {
                return fail_unmatched(plan, g, pattern, err);
            }
        }
    }
    return TR_OK;
}

void tr__run_say_groups(const tr_run *run, const tr_plan *plan) {
    const tr_settings *s = &run->settings;
    for (size_t g = 0; g + 1 < s->group_count; g++) {
        size_t has = 0;
        for (size_t i = 0; i < plan->param_count; i++) {
            has += tr__group_of(s, plan->params[i].stored) == (int)g;
        }
        if (has == 0) {
            tr__warn(&run->log,
                     "optimizer.groups[%zu] has no effect: earlier groups have all of "
                     "the parameters that it matches",
                     g);
        }
    }
}

// Parameter groups: which group a parameter is of, and whether every pattern is one of
// this model's names.
#include "run/run.h"

#include <stdio.h>

enum { KEY_BYTES = 64 };

int tr__group_of(const tr_settings *settings, const char *name) {
    size_t last = settings->group_count - 1, g = 0;
    while (g < last && !tr__patterns_match(&settings->groups[g].match, name)) {
        g++;
    }
    return (int)g;
}

tr_status tr__run_check_patterns(const tr_run *run, const tr_plan *plan,
                                 tr_error *err) {
    const tr_settings *s = &run->settings;
    tr_status status = tr__patterns_check(&s->freeze, plan, "freeze", err);
    status = status == TR_OK ? tr__run_check_adapter(run, plan, err) : status;
    for (size_t g = 0; g + 1 < s->group_count && status == TR_OK; g++) {
        char key[KEY_BYTES];
        snprintf(key, sizeof key, "optimizer.groups[%zu].match", g);
        status = tr__patterns_check(&s->groups[g].match, plan, key, err);
    }
    return status;
}

void tr__run_say_groups(const tr_run *run, const tr_plan *plan) {
    const tr_settings *s = &run->settings;
    for (size_t g = 0; g + 1 < s->group_count; g++) {
        size_t has = 0;
        for (size_t i = 0; i < plan->param_count; i++) {
            bool frozen = plan->flats[plan->params[i].flat].frozen;
            has += !frozen && tr__group_of(s, plan->params[i].stored) == (int)g;
        }
        if (has == 0) {
            tr__warn(&run->log,
                     "optimizer.groups[%zu] has no effect: earlier groups have all of "
                     "the parameters that it matches%s",
                     g, s->freeze.count > 0 ? ", or they are frozen" : "");
        }
    }
}

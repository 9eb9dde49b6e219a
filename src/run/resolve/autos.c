// What each "auto" of the run file came to, and where that is from: in other programs
// the same word stands for other values.
#include "base/log.h"
#include "run/run.h"

#include <stdio.h>
#include <string.h>

enum { LINE_BYTES = 512, COLUMNS = 110, AUTOS_MAX = 64 };

// Keys that are DeepSpeed's, whose defaults are, too.
static bool is_of_deepspeed(const char *key) {
    static const char *const begins[] = {
        "optimizer.", "scheduler.", "fp16.",     "bf16.",      "zero_optimization.",
        "gradient",   "train_",     "bfloat16.", "data_types."};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        if (strncmp(key, begins[i], strlen(begins[i])) == 0) {
            return true;
        }
    }
    return false;
}

static const char *source_of(const tr_config_auto *found) {
    if (strcmp(found->why, "planner") == 0) {
        return "the planner's choice";
    }
    return strcmp(found->why, "its default") != 0 ? found->why
           : is_of_deepspeed(found->key)          ? "the default of DeepSpeed"
                                                  : "the default of Tranche";
}

// All that come from the same place, in lines of some width.
static void say_group(const tr_run *run, const tr_config_auto *all, size_t count,
                      size_t first) {
    const char *source = source_of(&all[first]);
    char line[LINE_BYTES];
    snprintf(line, sizeof line, "\"auto\" (%s):", source);
    const char *comma = "";
    for (size_t i = first; i < count; i++) {
        if (strcmp(source_of(&all[i]), source) != 0) {
            continue;
        }
        size_t used = strlen(line);
        bool full = used + strlen(all[i].key) + strlen(all[i].value) > COLUMNS;
        if (full && comma[0]) {
            tr__note(&run->log, "%s,", line);
            used = (size_t)snprintf(line, sizeof line, "   ");
            comma = "";
        }
        snprintf(line + used, sizeof line - used, "%s %s%s%s", comma, all[i].key,
                 all[i].value[0] ? " " : "", all[i].value);
        comma = ",";
    }
    tr__note(&run->log, "%s", line);
}

void tr__run_say_autos(const tr_run *run) {
    tr_config_auto all[AUTOS_MAX];
    size_t count = 0, next = 0;
    while (count < AUTOS_MAX && tr__config_auto_at(run->config, &next, &all[count])) {
        count++;
    }
    for (size_t i = 0; i < count; i++) {
        bool said = false;
        for (size_t k = 0; k < i && !said; k++) {
            said = strcmp(source_of(&all[k]), source_of(&all[i])) == 0;
        }
        if (!said) {
            say_group(run, all, count, i);
        }
    }
}

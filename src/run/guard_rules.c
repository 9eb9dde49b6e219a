#include "run/guard_rules.h"

#include <stddef.h>

const char *const tr__guard_actions[] = {"none", "warn", "skip", "rollback", NULL};

const char *tr__guard_action_name(tr_guard_action action) {
    return tr__guard_actions[action];
}

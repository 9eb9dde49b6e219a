#include "run/guard_rules.h"

const char *tr__guard_action_name(tr_guard_action action) {
    static const char *const names[] = {"none", "warn", "skip", "rollback"};
    return names[action];
}

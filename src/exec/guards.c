#include "exec/guards.h"

bool tr__guard_lets(const tr_walk_flags *flags, tr_step_guard guard) {
    switch (guard) {
    case TR_GUARD_RUNNING:
        return !flags->stopped;
    case TR_GUARD_APPLIED:
        return flags->decision == TR_DECIDE_APPLY || flags->decision == TR_DECIDE_DEFER;
    case TR_GUARD_AT_ONCE:
        return flags->decision == TR_DECIDE_APPLY;
    case TR_GUARD_DEFERRED:
        return flags->deferred;
    default:
        return true;
    }
}

bool tr__walk_is_over(const tr_walk_flags *flags, tr_step_guard guard) {
    return flags->decision == TR_DECIDE_END ||
           (flags->decision == TR_DECIDE_DEFER && guard == TR_GUARD_AT_ONCE);
}

bool tr__walk_goes_on(const tr_walk_flags *flags, tr_walk_fault fault, bool ranks) {
    return ranks ? fault != TR_FAULT_OTHER : flags->deferred;
}

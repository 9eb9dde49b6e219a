#include "train/watch/crowding.h"

#include "base/clock.h"

#include <inttypes.h>

static const double window = 5;  // seconds
static const double spare = 0.5; // cores

tr_crowding tr__crowding_begin(int threads) {
    return (tr_crowding){.threads = threads, .since = tr__core_times()};
}

bool tr__crowding_is(const tr_core_times *before, const tr_core_times *after,
                     int threads) {
    double others = tr__cores_of_others(before, after);
    return after->cores > 0 && before->cores == after->cores &&
           others > after->cores - threads + spare;
}

int tr__crowding_room(const tr_core_times *before, const tr_core_times *after) {
    int room = (int)(after->cores - tr__cores_of_others(before, after) + spare);
    return room > 1 ? room : 1;
}

static void say(const tr_crowding *c, const tr_core_times *now, int64_t step,
                tr_progress_line *line) {
    double others = tr__cores_of_others(&c->since, now);
    int room = tr__crowding_room(&c->since, now);
    char advice[64] = "";
    if (room < c->threads) {
        snprintf(advice, sizeof advice, "; execution.threads %d may be faster", room);
    }
    tr__progress_say(line,
                     "step %" PRId64 ": other processes use %.1f of the %d cores that "
                     "this run computes on, so steps take longer%s",
                     step, others, now->cores, advice);
}

void tr__crowding_step(tr_crowding *c, int64_t step, tr_progress_line *line) {
    if (c->said || tr__seconds() - c->since.clock < window) {
        return;
    }
    tr_core_times now = tr__core_times();
    c->said = tr__crowding_is(&c->since, &now, c->threads);
    if (c->said) {
        say(c, &now, step, line);
    }
    c->since = now;
}

#include "base/wait.h"

#include "base/clock.h"

#include <inttypes.h>
#include <stdbool.h>

static const double first_after = 1, told_every = 2; // seconds

tr_wait tr__wait_begin(const tr_log *log, const char *what) {
    return (tr_wait){log, what, tr__seconds() + first_after};
}

static bool is_due(tr_wait *wait) {
    double now = tr__seconds();
    bool due = now >= wait->next;
    wait->next = due ? now + told_every : wait->next;
    return due;
}

void tr__wait_part(tr_wait *wait, double done, double total) {
    if (total > 0 && done < total && is_due(wait)) {
        tr__note(wait->log, "%s: %.0f%%", wait->what, 100 * done / total);
    }
}

void tr__wait_count(tr_wait *wait, int64_t count, const char *of) {
    if (is_due(wait)) {
        tr__note(wait->log, "%s: %" PRId64 " %s", wait->what, count, of);
    }
}

#include "report/work.h"

#include <stdio.h>
#include <time.h>

// Seconds that work takes before it is spoken of; between two looks at a live line; and
// between two lines that stay.
static const double quiet = 1, live_every = 0.1, line_every = 5;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

report_work report_work_begin(const tr_screen *screen, const char *what) {
    double begun = now();
    return (report_work){
        .screen = *screen, .what = what, .begun = begun, .last = begun};
}

void report_work_tell(report_work *work, int64_t done, int64_t total) {
    const tr_screen *screen = &work->screen;
    double time = now(), every = screen->live ? live_every : line_every;
    char text[64];
    if (time - work->begun < quiet || time - work->last < every) {
        return;
    }
    work->last = time;
    snprintf(text, sizeof text, "%s: %.0f%%", work->what,
             total > 0 ? 100 * (double)done / (double)total : 0);
    (screen->live ? screen->live : screen->line)(screen->user, text);
    work->drawn = screen->live != NULL;
}

void report_work_end(report_work *work) {
    if (work->drawn) {
        work->screen.live(work->screen.user, "");
        work->drawn = false;
    }
}

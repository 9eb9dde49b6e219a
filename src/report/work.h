// How far long work has come, on a screen: once it has taken a second, and then now and
// then.
#ifndef TR_REPORT_WORK_H
#define TR_REPORT_WORK_H

#include <tranche/engine.h>

typedef struct report_work {
    tr_screen screen;
    const char *what; // "tokenizing"
    double begun, last;
    bool drawn; // a live line stands there
} report_work;

// The work begins.
report_work report_work_begin(const tr_screen *screen, const char *what);
void report_work_tell(report_work *work, int64_t done, int64_t total);
// It is over, for better or worse: takes the live line away.
void report_work_end(report_work *work);

#endif

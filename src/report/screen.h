// A stream on which the library's progress is shown (tr_screen): on a terminal one live
// line, drawn over itself, else line after line.
#ifndef TR_REPORT_SCREEN_H
#define TR_REPORT_SCREEN_H

#include <tranche/engine.h>

#include <stdio.h>

typedef struct report_screen {
    FILE *to;
    int drawn; // characters of the live line that stands there
} report_screen;

// `screen` is the state of what is returned, and must outlive it. live: the stream may
// have a live line, if it is a terminal.
tr_screen report_screen_on(report_screen *screen, FILE *to, bool live);

#endif

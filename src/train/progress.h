// The terminal: one live line on a TTY, else a plain line every few seconds.
//
// The live line is drawn with blanks and carriage returns alone: no escape codes and no
// colours, so NO_COLOR has nothing to turn off.
#ifndef TR_TRAIN_PROGRESS_H
#define TR_TRAIN_PROGRESS_H

#include "train/engine.h"

#include <stdio.h>

enum { TR_PROGRESS_TEXT_MAX = 512 };

typedef struct tr_progress_line {
    FILE *to;            // NULL: nothing is said
    bool live;           // a terminal: the line is drawn over itself
    double every;        // seconds between lines
    double last;         // when a line was drawn
    int64_t first_step;  // steps done before this process
    double step_seconds; // smoothed,
    double step_samples; // and this too
    double flops_limit;  // of this machine, measured at the start; 0: not known
    int drawn;           // characters of the live line that stands there
    char text[TR_PROGRESS_TEXT_MAX]; // of the last step's line
    double work_begun;               // of what tr__progress_work reports
} tr_progress_line;

// to: NULL: nothing is said.
void tr__progress_begin(tr_progress_line *line, FILE *to, const tr_engine *engine);
void tr__progress_step(tr_progress_line *line, const tr_engine *engine,
                       const tr_step_result *result);
// A line of its own (an evaluation, a skipped step), above the live one.
void tr__progress_say(tr_progress_line *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// Long work: how far it has come, once it has taken a second. `done` 0: it begins.
void tr__progress_work(tr_progress_line *line, const char *what, int64_t done,
                       int64_t total);
// Takes the live line away, so that others can write, and brings it back.
void tr__progress_hide(tr_progress_line *line);
void tr__progress_show(tr_progress_line *line);
// The live line stays where it is and does not come back.
void tr__progress_end(tr_progress_line *line);

#endif

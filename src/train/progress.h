// The terminal: one live line on a TTY, else a plain line every few seconds.
#ifndef TR_TRAIN_PROGRESS_H
#define TR_TRAIN_PROGRESS_H

#include "train/engine.h"

#include <stdio.h>

typedef struct tr_progress_line {
    FILE *to;
    bool live;    // a terminal: the line is drawn over itself
    double every; // seconds between lines
    double begun, last;
    int64_t first_step;  // steps done before this process
    double step_seconds; // smoothed
    double flops_limit;  // of this machine, measured at the start; 0: not known
    bool drawn;          // a live line stands there
} tr_progress_line;

void tr__progress_begin(tr_progress_line *line, FILE *to, const tr_engine *engine);
void tr__progress_step(tr_progress_line *line, const tr_engine *engine,
                       const tr_step_result *result);
// A line of its own (an evaluation, a skipped step), above the live one.
void tr__progress_say(tr_progress_line *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void tr__progress_end(tr_progress_line *line);

#endif

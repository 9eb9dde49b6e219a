// What is shown of a training: one live line where the screen has such, else a plain
// line every few seconds.
#ifndef TR_TRAIN_WATCH_PROGRESS_H
#define TR_TRAIN_WATCH_PROGRESS_H

#include "train/engine.h"

enum { TR_PROGRESS_TEXT_MAX = 512 };

typedef struct tr_progress_line {
    tr_screen screen;
    bool live;           // the line takes the place of the one before
    double every;        // seconds between lines
    double last;         // when a line was drawn
    int64_t first_step;  // steps done before this process
    double step_seconds; // smoothed,
    double step_samples; // and this too
    double flops_limit;  // of this machine, measured at the start; 0: not known
    bool drawn;          // a live line stands there
    char text[TR_PROGRESS_TEXT_MAX]; // of the last step's line
    double work_begun;               // of what tr__progress_work reports
} tr_progress_line;

// every: seconds between lines where none is live.
void tr__progress_open(tr_progress_line *line, const tr_screen *screen, double every);
// For a training. screen: all NULL: nothing is said.
void tr__progress_begin(tr_progress_line *line, const tr_screen *screen,
                        const tr_engine *engine);
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

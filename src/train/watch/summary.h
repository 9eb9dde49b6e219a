// What is said at the end of a run: how it went, where it is, what to do with it.
#ifndef TR_TRAIN_WATCH_SUMMARY_H
#define TR_TRAIN_WATCH_SUMMARY_H

#include "train/watch/progress.h"

// Of the steps and evaluations of this process.
typedef struct tr_summary {
    double began; // tr__seconds()
    int64_t steps;
    double loss;             // of the last step
    double validation, best; // loss
    int64_t evaluations, best_step;
} tr_summary;

tr_summary tr__summary_begin(void);
void tr__summary_step(tr_summary *summary, const tr_step_result *result);
void tr__summary_evaluation(tr_summary *summary, int64_t step,
                            const tr_evaluation *result);
// Says it, after a run's last step; nothing where this process made no step.
// `saved_step`: of the newest checkpoint, -1: none.
void tr__summary_say(const tr_summary *summary, const tr_engine *engine,
                     int64_t saved_step, tr_progress_line *line);

#endif

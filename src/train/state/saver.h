// When a run's checkpoints are due, what comes of one that cannot be written, and which
// one is the best.
#ifndef TR_TRAIN_STATE_SAVER_H
#define TR_TRAIN_STATE_SAVER_H

#include "train/engine.h"
#include "train/watch/metrics.h"
#include "train/watch/progress.h"

static inline bool tr__is_due(int64_t every, int64_t step) {
    return every > 0 && step % every == 0;
}

typedef struct tr_saver {
    tr_engine *engine;
    tr_progress_line *line;
    tr_metrics *metrics; // which are written as far, where the caller sets it
    int64_t saved_step;  // of the newest checkpoint
    bool off;            // nothing is saved
    bool owes;           // one is due that has not been written
    bool risky;          // the next step may end the run
    double next;         // tr__seconds() at which one is due (rank 0)
    double best_loss;    // of the checkpoint that `best` leads to; INFINITY: none
} tr_saver;

// For the start of a run. best_loss: of the step that tr__saver_best_step gives.
void tr__saver_begin(tr_saver *saver, tr_engine *engine, tr_progress_line *line,
                     double best_loss);
// The step of the checkpoint that `best` leads to; -1: none.
int64_t tr__saver_best_step(const tr_engine *engine);

// Before each step: rank 0 looks at the clock, and the step tells all ranks.
void tr__saver_ask(tr_saver *saver);
// Before a step that may end the run, because it needs more memory than those before.
// Collective.
tr_status tr__saver_before(tr_saver *saver, tr_error *err);
// After each step, where a checkpoint is due. `last`: the run ends with it. Collective.
tr_status tr__saver_after(tr_saver *saver, bool last, tr_error *err);
// A checkpoint of what is now, unless there is one. Collective.
tr_status tr__saver_save(tr_saver *saver, tr_error *err);
// After an evaluation: keeps what has the lowest loss so far, where the run asks for
// it. Collective.
tr_status tr__saver_judge(tr_saver *saver, double loss, tr_error *err);

#endif

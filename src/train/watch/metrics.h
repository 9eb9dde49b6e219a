// metrics.jsonl: one JSON object a line, written without allocating.
#ifndef TR_TRAIN_WATCH_METRICS_H
#define TR_TRAIN_WATCH_METRICS_H

#include "train/engine.h"
#include "train/watch/monitor.h"

enum { TR_METRICS_WAIT = 1 << 20 }; // some thousand lines

typedef struct tr_metrics {
    int file; // -1: lines go nowhere
    char *path;
    int64_t bytes; // of whole lines
    char *waiting; // lines that a full disk has had no room for, [TR_METRICS_WAIT]
    size_t waiting_bytes;
    int64_t missing;   // lines since the disk is full for which there was no room there
    bool stopped;      // the last line could not be written, which was said
    const tr_log *log; // is told of that
    double flops_limit;   // of this machine, for utilisation; 0: not known
    tr_monitors monitors; // which get the same values
    void (*tell)(void *user, const char *line); // gets the same lines; NULL: nobody
    void *tell_user;
} tr_metrics;

// What an earlier process's lines tell.
typedef struct tr_metrics_kept {
    int64_t best_step;      // set by the caller: which evaluation is asked for
    double best_loss;       // its validation loss; INFINITY: not known
    int64_t evaluated_step; // of the last evaluation that stays; -1: none
} tr_metrics_kept;

// Opens <out>/metrics.jsonl and cuts back to `step` what a stopped run wrote after it
// (step 0: everything).
tr_status tr__metrics_open(const char *out, int64_t step, tr_metrics *metrics,
                           tr_metrics_kept *kept, tr_error *err);
// Opens the monitors that the run has; values up to the engine's sample are kept there.
tr_status tr__metrics_open_monitors(tr_metrics *metrics, const tr_engine *engine,
                                    tr_error *err);
// What lines have from the training, and whom the leading rank tells of them.
void tr__metrics_begin(tr_metrics *metrics, double flops_limit,
                       const tr_train_options *options, const tr_comm *comm);
void tr__metrics_close(tr_metrics *metrics); // NULL-safe

tr_status tr__metrics_step(tr_metrics *metrics, const tr_engine *engine,
                           const tr_step_result *result, tr_error *err);
// The spike guard has gone back to the checkpoint of step `to_step`; -1: there was
// none.
tr_status tr__metrics_rollback(tr_metrics *metrics, const tr_engine *engine,
                               int64_t to_step, tr_error *err);
// The mean loss (and, of classifiers, accuracy) of the epoch that ends with the step
// `last`, over the targets of its applied steps.
tr_status tr__metrics_epoch(tr_metrics *metrics, const tr_engine *engine,
                            const tr_step_result *last, tr_error *err);
tr_status tr__metrics_evaluation(tr_metrics *metrics, const tr_engine *engine,
                                 int64_t step, const tr_evaluation *result,
                                 tr_error *err);

#endif

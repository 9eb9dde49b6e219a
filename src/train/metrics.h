// metrics.jsonl: one JSON object a line, written without allocating.
#ifndef TR_TRAIN_METRICS_H
#define TR_TRAIN_METRICS_H

#include "train/engine.h"

typedef struct tr_metrics {
    int file;
    char *path;
} tr_metrics;

// Opens <out>/metrics.jsonl and cuts back to `step` what a stopped run wrote after it
// (step 0: everything).
tr_status tr__metrics_open(const char *out, int64_t step, tr_metrics *metrics,
                           tr_error *err);
void tr__metrics_close(tr_metrics *metrics); // NULL-safe

tr_status tr__metrics_step(tr_metrics *metrics, const tr_engine *engine,
                           const tr_step_result *result, tr_error *err);
// An epoch's mean loss and accuracy over its applied steps' targets.
tr_status tr__metrics_epoch(tr_metrics *metrics, int64_t step, int64_t epoch,
                            double loss, double accuracy, double seconds,
                            tr_error *err);
tr_status tr__metrics_evaluation(tr_metrics *metrics, const tr_engine *engine,
                                 int64_t step, const tr_evaluation *result,
                                 tr_error *err);

#endif

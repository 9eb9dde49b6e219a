// Evaluation: the model forward over the first validation samples, in order.
#include "base/checked.h"
#include "base/memory.h"
#include "train/engine.h"

#include <string.h>

static tr_status run_micro_batches(tr_engine *engine, int64_t micro_batches,
                                   bool (*stop)(void *user), void *user,
                                   tr_error *err) {
    const tr_sequence *sequence = &engine->plan->sequences[TR_SEQUENCE_EVALUATE];
    tr_run_context context = {.seed = engine->settings->seed};
    for (int64_t i = 0; i < micro_batches; i++) {
        tr_status status = tr__executor_run(engine->executor, TR_SEQUENCE_EVALUATE, 0,
                                            sequence->count, &context, stop, user, err);
        if (status != TR_OK) {
            return status;
        }
    }
    return TR_OK;
}

tr_status tr__engine_evaluate_until(tr_engine *engine, int64_t samples,
                                    bool (*stop)(void *user), void *user,
                                    tr_evaluation *result, tr_error *err) {
    tr_dataset *data = tr__run_validation_data(engine->run);
    if (!data) {
        return tr_fail(
            err, TR_USAGE,
            "there is no validation data: set data.validation to files or to "
            "a fraction");
    }
    int64_t all = tr_dataset_samples(data);
    int64_t count = samples > 0 ? tr__min_i64(samples, all) : all;
    int64_t m = engine->plan->request.micro_batch;
    tr_feed_options options = {
        .dataset = data,
        .order = {.samples = all, .shuffled = false},
        .batcher = {.samples = count, .batch = m},
        .steps = tr__ceil_div(count, m),
        .micro_batch = m,
        .micros = 1,
        .slots = engine->plan->slots[1],
        .memory = tr__executor_ring(engine->executor, 1),
    };
    tr_feed *feed = NULL;
    tr_status status = tr__feed_create(&options, &feed, err);
    if (status != TR_OK) {
        return status;
    }
    double *sums = tr__executor_sums(engine->executor);
    memset(sums, 0, TR_SUMS * sizeof *sums);
    tr__executor_feed(engine->executor, 1, feed);
    status = run_micro_batches(engine, tr__ceil_div(count, m), stop, user, err);
    tr__executor_feed(engine->executor, 1, NULL);
    tr__feed_destroy(feed);
    *result = (tr_evaluation){.loss = sums[TR_SUM_LOSS] / sums[TR_SUM_COUNT],
                              .accuracy = sums[TR_SUM_CORRECT] / sums[TR_SUM_COUNT],
                              .samples = count};
    return status;
}

tr_status tr_engine_evaluate(tr_engine *engine, int64_t samples, tr_evaluation *result,
                             tr_error *err) {
    return tr__engine_evaluate_until(engine, samples, NULL, NULL, result, err);
}

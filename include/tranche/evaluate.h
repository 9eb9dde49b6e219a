// Evaluates a trained model: its loss on data, and its predictions for each sample.
//
//     tr_evaluator_create -> tr_evaluator_next ... -> tr_evaluator_result
//
// These functions use one process and are not collective. Their memory is planned:
// tr_evaluator_plan has the ledger. If it does not fit the machine, nothing is
// allocated.
#ifndef TRANCHE_EVALUATE_H
#define TRANCHE_EVALUATE_H

#include <tranche/plan.h>
#include <tranche/run.h>

#ifdef __cplusplus
extern "C" {
#endif

// The function reads all texts during the call only. Zero or NULL means: not given.
typedef struct tr_evaluator_options {
    // A run's out folder (its latest checkpoint is used), a checkpoint, or a Hugging
    // Face folder. A run.json there says how to read data, in which precision to
    // compute, and on which device; where it leaves the device open, the processor
    // computes. A folder without one is treated like a run file that names only the
    // model.
    const char *path;
    const char *const *data; // files, folders or globs; none: the run's validation data
    size_t data_count;
    const char *format;     // in place of "data.format"
    const char *const *set; // "KEY.PATH=VALUE"
    size_t set_count;
    bool labels_optional; // csv, npy: samples may have no label
    int64_t micro_batch;  // samples computed together; 0: chosen
    // Makes only the plan, for tr_evaluator_plan: allocates no tensor memory, reads no
    // weights, and gives no predictions.
    bool plan_only;
    // Model and data of the caller, in place of those that the folder and `data` name.
    // The caller keeps them; they must outlive the evaluator. Weights are read from
    // `path` by the names of the parameters.
    const tr_model *own_model;
    tr_dataset *own_data;
    tr_messages messages;
} tr_evaluator_options;

typedef struct tr_evaluator tr_evaluator;

// Loads model and data. The caller destroys *out. TR_USAGE: the options do not fit
// together, or the model's loss has no logits. TR_IO: weights are missing or of another
// model. TR_DATA. TR_BUDGET: the machine has less memory than the plan needs.
// TR_MEMORY.
TR_API tr_status tr_evaluator_create(const tr_evaluator_options *options,
                                     tr_evaluator **out, tr_error *err);
TR_API void tr_evaluator_destroy(tr_evaluator *evaluator); // NULL-safe

TR_API const tr_plan *tr_evaluator_plan(const tr_evaluator *evaluator);
TR_API const tr_model *tr_evaluator_model(const tr_evaluator *evaluator);
TR_API int64_t tr_evaluator_samples(const tr_evaluator *evaluator); // in all
TR_API int64_t
tr_evaluator_positions(const tr_evaluator *evaluator); // targets of a sample

// The model's predictions for some samples. Owned by the evaluator, valid until the
// next call.
typedef struct tr_predictions {
    int64_t first, count;   // samples; count 0: all have been asked
    const float *logits;    // [count, positions, classes]
    const int32_t *targets; // [count, positions]; negative: none
} tr_predictions;

// Computes the predictions for the next samples, in the order of the data. TR_DATA,
// TR_IO. TR_NUMBERS: logits are NaN or infinite (-INFINITY excludes a class).
// TR_USAGE: created with plan_only.
TR_API tr_status tr_evaluator_next(tr_evaluator *evaluator, tr_predictions *predictions,
                                   tr_error *err);

typedef struct tr_evaluated {
    int64_t samples, targets;
    // Over all targets so far; NAN where there is none.
    double loss;          // the mean cross-entropy, in nats
    double perplexity;    // exp(loss)
    double bits_per_byte; // loss / ln 2 where the data are bytes; else NAN
    double accuracy;      // the share of targets that have the largest logit; of equal
                          // logits the first counts
    // The weights are a checkpoint's in bf16 ("checkpoint.dtype") and the run computed
    // with others: the loss is near that of the run, and that of other programs.
    bool weights_rounded;
} tr_evaluated;

// The result over the samples that tr_evaluator_next has returned so far.
TR_API tr_evaluated tr_evaluator_result(const tr_evaluator *evaluator);

// Creates an evaluator, evaluates all samples, and destroys it. Errors as above.
TR_API tr_status tr_evaluate(const tr_evaluator_options *options, tr_evaluated *result,
                             tr_error *err);

// Returns the class of the largest logit of logits [classes], the first of equal ones.
// probabilities [classes] gets softmax(logits); NULL: not wanted. If a logit is NAN, so
// are the probabilities.
TR_API int64_t tr_predict_class(const float *logits, int64_t classes,
                                double *probabilities);

#ifdef __cplusplus
}
#endif
#endif

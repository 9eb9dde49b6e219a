// Asking a trained model: text from a language model, and how well it does on data.
#ifndef TRANCHE_SAMPLE_H
#define TRANCHE_SAMPLE_H

#include <tranche/run.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tr_sampler tr_sampler;

// Begin with TR_SAMPLER_OPTIONS_INIT, then set members. Zero or NULL means: not given.
typedef struct tr_sampler_options {
    size_t size; // of this struct
    // A checkpoint, a Hugging Face folder, or a run's out folder, of which the latest
    // checkpoint is used.
    const char *path;
    // The number of tokens, of prompt and generated text together, that attention sees
    // at once. At most the model's positions are used.
    int64_t length;
    const char *device; // what computes: "cpu" (also NULL), "cuda", "cuda:1"
    int threads;        // 0: those of the machine
    tr_dtype compute;   // f32 (also TR_NONE), bf16 or f16
    // true: keeps no keys and values of earlier tokens, and computes the whole context
    // for each token. This gives the same tokens, slowly.
    bool uncached;
    int64_t piece; // positions of a prompt that are computed together; 0: chosen
    // Makes only the plans, for tr_sampler_prompt_plan and tr_sampler_token_plan:
    // allocates no tensor memory, reads no weights, and gives no logits.
    bool plan_only;
    // Of a folder with an adapter: where its base is; NULL: where adapter_config.json
    // says.
    const char *base;
    // Gets notes on how far tr_sampler_open has read the weights, and tr_sampler_logits
    // a long prompt, if that takes more than a second.
    tr_messages messages;
} tr_sampler_options;

#define TR_SAMPLER_OPTIONS_INIT                                                        \
    {                                                                                  \
        sizeof(tr_sampler_options), NULL, 0, NULL, 0, TR_NONE, false, 0, false, NULL,  \
        {                                                                              \
            NULL, NULL                                                                 \
        }                                                                              \
    }

// Loads a model. The caller destroys *out. Not collective. TR_IO. TR_USAGE: not a
// language model; no such device; a struct of an unknown size. TR_BUDGET: the machine,
// or the device, has less memory than the plans need. TR_MEMORY.
TR_API tr_status tr_sampler_open(const tr_sampler_options *options, tr_sampler **out,
                                 tr_error *err);
// The same with a path, a length and a number of threads alone.
TR_API tr_status tr_sampler_create(const char *path, int64_t length, int threads,
                                   tr_sampler **out, tr_error *err);
TR_API void tr_sampler_destroy(tr_sampler *sampler); // NULL-safe

TR_API int64_t tr_sampler_vocabulary(const tr_sampler *sampler); // tokens

// Is the token one of those that end a text? They are the eos_token_id, a number or a
// list, of the folder's generation_config.json, else of its config.json.
TR_API bool tr_sampler_ends(const tr_sampler *sampler, int32_t token);

// The plans of a piece of a prompt, and of one token (NULL: uncached). Both share one
// block of memory, with weights and cache at the same places. Owned by the sampler.
TR_API const tr_plan *tr_sampler_prompt_plan(const tr_sampler *sampler);
TR_API const tr_plan *tr_sampler_token_plan(const tr_sampler *sampler);

// Computes the logits [vocabulary] f32 of the token after tokens [count]. If these do
// not fit the context, only the last ones count. The sampler owns *logits, which are
// valid until the next call. Leading tokens that are the same as in the call before are
// not computed again. If the context is full, every new token shifts all others, and
// the whole context is computed. TR_USAGE: count is 0, a token is outside of the
// vocabulary, or the sampler was opened with plan_only.
TR_API tr_status tr_sampler_logits(tr_sampler *sampler, const int32_t *tokens,
                                   int64_t count, const float **logits, tr_error *err);

// A conversation with a model, as text by the chat template of its folder.
typedef struct tr_dialog tr_dialog;

// path: the model's folder, as in tr_sampler_options. tokenizer: another place where
// the template is, beside a tokenizer.json, as tr_tokenizer_load takes it; NULL: it is
// in the model's folder. The caller destroys *out. TR_DATA: there is no template, or it
// has what is not supported. TR_IO, TR_MEMORY.
TR_API tr_status tr_dialog_create(const char *path, const char *tokenizer,
                                  tr_dialog **out, tr_error *err);
TR_API void tr_dialog_destroy(tr_dialog *dialog); // NULL-safe
// Adds a message of the "system", the "user" or the "assistant": content [bytes], which
// is copied. TR_USAGE: it is not UTF-8. TR_MEMORY.
TR_API tr_status tr_dialog_add(tr_dialog *dialog, const char *role, const char *content,
                               size_t bytes, tr_error *err);
// The text of all messages, up to where the assistant's next one begins. It ends with a
// zero; `bytes` may be NULL. Owned by the dialog, valid until the next call. TR_DATA:
// the template refuses the messages. TR_MEMORY.
TR_API tr_status tr_dialog_prompt(tr_dialog *dialog, const char **text, size_t *bytes,
                                  tr_error *err);
// The token that ends a message by the template's folder; -1: it names none. TR_IO,
// TR_DATA: the folder's files are damaged, or name something that is not a token.
TR_API tr_status tr_dialog_eos(const tr_dialog *dialog, const tr_tokenizer *tokenizer,
                               int32_t *id, tr_error *err);

// Draws from softmax(logits / temperature); temperature 0: the best one. `index`
// numbers the draw, so that the same seed gives the same text.
TR_API int32_t tr_sample_draw(const float *logits, int64_t vocabulary,
                              double temperature, uint64_t seed, uint64_t index);

// How a token is drawn. The temperature applies first, then top_k, then top_p, as in
// transformers' generate, which keeps the same tokens. Begin with TR_SAMPLING_INIT,
// then set members.
typedef struct tr_sampling {
    size_t size;        // of this struct
    double temperature; // 0: the best token, whatever the rest says
    // Keeps the tokens with the top_k best logits, and all whose logit equals the last
    // of these. 0: no limit.
    int64_t top_k;
    // Of the tokens that are left, drops the least likely ones while all dropped ones
    // together have no more than 1 - top_p of the probability. One token always stays.
    // Among equal logits, smaller tokens are dropped first. 0, and 1 or more: no limit.
    double top_p;
    uint64_t seed;
} tr_sampling;

#define TR_SAMPLING_INIT                                                               \
    { sizeof(tr_sampling), 0, 0, 0, 0 }

// Sets kept [vocabulary]: whether each token may be drawn. TR_USAGE: a struct of an
// unknown size. TR_MEMORY.
TR_API tr_status tr_sample_keep(const float *logits, int64_t vocabulary,
                                const tr_sampling *how, bool *kept, tr_error *err);

// Draws one of the tokens that are kept, with the probabilities that softmax(logits /
// temperature) gives them. `index` as above. Without limits this is tr_sample_draw. A
// logit of -INFINITY excludes its token. TR_NUMBERS: a logit is NaN or +INFINITY, or no
// token is left. TR_USAGE, TR_MEMORY.
TR_API tr_status tr_sample_pick(const float *logits, int64_t vocabulary,
                                const tr_sampling *how, uint64_t index, int32_t *token,
                                tr_error *err);

// ---- how well a model does on data: its loss, and its predictions for each sample
//
//     tr_evaluator_create -> tr_evaluator_next ... -> tr_evaluator_result
//
// These functions use one process and are not collective. Their memory is planned:
// tr_evaluator_plan has the ledger. If it does not fit the machine, nothing is
// allocated.

// Begin with TR_EVALUATOR_OPTIONS_INIT, then set members. The function reads all texts
// during the call only. Zero or NULL means: not given.
typedef struct tr_evaluator_options {
    size_t size; // of this struct
    // A run's out folder (its latest checkpoint is used), a checkpoint, or a Hugging
    // Face folder. A run.json there says how to read data, in which precision to
    // compute, and on which device. If it leaves the device open, the CPU computes. A
    // folder without one is treated like a run file that names only the model.
    const char *path;
    const char *const *data; // files, folders or globs; none: the run's validation data
    size_t data_count;
    const char *format;     // in place of "data.format"
    const char *const *set; // "KEY.PATH=VALUE"
    size_t set_count;
    bool labels_optional; // csv, npy: samples may have no label
    int64_t micro_batch;  // samples computed together; 0: chosen
    // No data are opened: the caller has rows, for tr_evaluator_ask.
    bool rows_only;
    // Makes only the plan, for tr_evaluator_plan: allocates no tensor memory, reads no
    // weights, and gives no predictions.
    bool plan_only;
    // Model and data of the caller, in place of those that the folder and `data` name.
    // The caller keeps them; they must outlive the evaluator. Weights are read from
    // `path` by the names of the parameters.
    const tr_model *own_model;
    tr_dataset *own_data;
    tr_messages messages;
    // Of a folder with an adapter: where its base is; NULL: where adapter_config.json
    // says.
    const char *base;
} tr_evaluator_options;

#define TR_EVALUATOR_OPTIONS_INIT                                                      \
    {                                                                                  \
        sizeof(tr_evaluator_options), NULL, NULL, 0, NULL, NULL, 0, false, 0, false,   \
            false, NULL, NULL, {NULL, NULL}, NULL                                      \
    }

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
// Numbers of a target: the model's classes, the labels of a text (tr_model.labels), or
// those of an embedding (tr_model.embedding_width).
TR_API int64_t tr_evaluator_width(const tr_evaluator *evaluator);
// Of a model that embeds texts, the texts of its data; else 0.
TR_API int64_t tr_evaluator_texts(const tr_evaluator *evaluator);
TR_API int64_t
tr_evaluator_positions(const tr_evaluator *evaluator); // targets of a sample

// The model's predictions for some samples. Begin with TR_PREDICTIONS_INIT. What they
// point at is owned by the evaluator, and valid until the next call.
typedef struct tr_predictions {
    size_t size;            // of this struct; the library fills no more
    int64_t first, count;   // samples; count 0: all have been asked
    const float *logits;    // [count, positions, width]: logits, embeddings or values
    const int32_t *targets; // [count, positions]; negative: none. Of embeddings, the
                            // number of the text in the data
    const float *numbers;   // [count, positions, width] with TR_LABELS_SET and
                            // TR_LABELS_VALUE, where `targets` are 0; else NULL
} tr_predictions;

#define TR_PREDICTIONS_INIT                                                            \
    { sizeof(tr_predictions), 0, 0, NULL, NULL, NULL }

// Computes the predictions for the next samples, in the order of the data. TR_DATA,
// TR_IO. TR_NUMBERS: logits are NaN or infinite (-INFINITY excludes a class).
// TR_USAGE: created with plan_only, or a struct of an unknown size.
TR_API tr_status tr_evaluator_next(tr_evaluator *evaluator, tr_predictions *predictions,
                                   tr_error *err);

// Computes the logits of the caller's own samples. rows[i] [count, ...] has tensor i of
// the model's batch (tr_evaluator_model), packed, of its type and shape. That of a
// target may be NULL. logits: [count, positions, classes]. The call does not change
// what tr_evaluator_next and tr_evaluator_result give. TR_USAGE: an input is NULL,
// count is below 1, or created with plan_only. TR_DATA: an id is not in [0, classes).
// TR_NUMBERS as above. TR_MEMORY.
TR_API tr_status tr_evaluator_ask(tr_evaluator *evaluator, const void *const *rows,
                                  int64_t count, float *logits, tr_error *err);

// Begin with TR_EVALUATED_INIT.
typedef struct tr_evaluated {
    size_t size; // of this struct; the library fills no more
    int64_t samples, targets;
    // Over all targets so far; NAN where there is none.
    double loss;       // the mean cross-entropy, in nats; with TR_LABELS_SET over all
                       // labels of all texts; with TR_LABELS_VALUE the mean square
    double perplexity; // exp(loss)
    double bits_per_byte; // loss / ln 2 where the data are bytes; else NAN
    double accuracy;      // the share of targets that have the largest logit; of equal
                          // logits the first counts
    // The checkpoint has its weights in bf16 ("checkpoint.dtype"), and the run computed
    // with others. The loss is near that of the run. Other programs that read the
    // checkpoint get this one.
    bool weights_rounded;
    // For an encoder on groups of an anchor, its positive and perhaps a negative; else
    // NAN. The candidates are the positives and negatives of all groups so far, in the
    // order of their products with the anchor. The recalls are the shares of anchors
    // whose positive is the first, and one of the first ten; mrr is the mean of 1 /
    // place. Among equal products the positive counts first.
    double recall_at_1, recall_at_10, mrr;
} tr_evaluated;

#define TR_EVALUATED_INIT                                                              \
    { sizeof(tr_evaluated), 0, 0, 0, 0, 0, 0, false, 0, 0, 0 }

// The result over the samples that tr_evaluator_next has returned so far. TR_USAGE: a
// struct of an unknown size.
TR_API tr_status tr_evaluator_result(const tr_evaluator *evaluator,
                                     tr_evaluated *result, tr_error *err);

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

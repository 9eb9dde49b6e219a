// Asking a trained language model for text.
#ifndef TRANCHE_SAMPLE_H
#define TRANCHE_SAMPLE_H

#include <tranche/plan.h>
#include <tranche/status.h>

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tr_sampler tr_sampler;

// Zero or NULL: not given.
typedef struct tr_sampler_options {
    // A checkpoint, a Hugging Face folder, or a run's out folder, whose latest
    // checkpoint is meant.
    const char *path;
    // The number of tokens, of prompt and generated text together, that attention sees
    // at once. At most the model's positions are used.
    int64_t length;
    int threads;      // 0: those of the machine
    tr_dtype compute; // f32 (also TR_NONE), bf16 or f16
    // Keys and values of earlier tokens are not kept: the whole context is computed for
    // each token. The tokens are the same, but slow.
    bool uncached;
    int64_t piece; // positions of a prompt that are computed together; 0: chosen
    // Makes the plans alone, for tr_sampler_prompt_plan and tr_sampler_token_plan: no
    // memory is taken and no weight is read, and there are no logits.
    bool plan_only;
} tr_sampler_options;

// Loads a model. The caller destroys *out. TR_IO; TR_USAGE: not a language model;
// TR_BUDGET: more memory than there is; TR_MEMORY.
tr_status tr_sampler_open(const tr_sampler_options *options, tr_sampler **out,
                          tr_error *err);
// The same of a path, a length and a number of threads.
tr_status tr_sampler_create(const char *path, int64_t length, int threads,
                            tr_sampler **out, tr_error *err);
void tr_sampler_destroy(tr_sampler *sampler); // NULL-safe

int64_t tr_sampler_vocabulary(const tr_sampler *sampler);

// Is the token one of those that end a text? They are the eos_token_id, a number or a
// list, of the folder's generation_config.json, else of its config.json.
bool tr_sampler_ends(const tr_sampler *sampler, int32_t token);

// Its plans: of a piece of a prompt, and of one token (NULL: uncached). They lie in the
// same memory, weights and cache at the same places.
const tr_plan *tr_sampler_prompt_plan(const tr_sampler *sampler);
const tr_plan *tr_sampler_token_plan(const tr_sampler *sampler);

// The logits [vocabulary] f32 of the token after tokens [count] (the last ones that fit
// the context); owned by the sampler, good until the next call. Tokens that are those
// of the call before, from the first one on, are not computed again. Where the context
// is full its first token is another one with every token, and all is computed.
// TR_USAGE: no token, or one outside of the vocabulary; opened with plan_only.
tr_status tr_sampler_logits(tr_sampler *sampler, const int32_t *tokens, int64_t count,
                            const float **logits, tr_error *err);

// Draws from softmax(logits / temperature); temperature 0: the best one. `index`
// numbers the draw, so that the same seed gives the same text.
int32_t tr_sample_draw(const float *logits, int64_t vocabulary, double temperature,
                       uint64_t seed, uint64_t index);

// How a token is drawn. First the temperature counts, then top_k, then top_p, as in
// transformers' generate, which keeps the same tokens.
typedef struct tr_sampling {
    double temperature; // 0: the best token, whatever the rest says
    // Keeps the tokens with the top_k best logits, and those that equal the last of
    // them: of a tie there all stay. 0: no limit.
    int64_t top_k;
    // Of what is left, leaves out the least likely tokens as long as they have no more
    // than 1 - top_p of the probability; one stays at least. Among equal logits,
    // smaller tokens go first. 0, and 1 or more: no limit.
    double top_p;
    uint64_t seed;
} tr_sampling;

// Whether each token may be drawn: kept [vocabulary]. TR_MEMORY.
tr_status tr_sample_keep(const float *logits, int64_t vocabulary,
                         const tr_sampling *how, bool *kept, tr_error *err);

// Draws one of the tokens that are kept, in proportion to what softmax(logits /
// temperature) gives them; `index` as above. Without limits it is tr_sample_draw.
// A logit of -INFINITY excludes its token. TR_NUMBERS: a logit is NaN or +INFINITY, or
// no token is left; TR_MEMORY.
tr_status tr_sample_pick(const float *logits, int64_t vocabulary,
                         const tr_sampling *how, uint64_t index, int32_t *token,
                         tr_error *err);

#ifdef __cplusplus
}
#endif
#endif

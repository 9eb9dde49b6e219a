// Small runs to begin with.
#ifndef TESTS_CLI_RUNS_H
#define TESTS_CLI_RUNS_H

// A classifier of 6 features and 3 classes on 20 random samples: 2 epochs of 4 steps,
// the last of which has 2 samples. An open object, as the next one: see run_file.
extern const char classifier_run[];
// A byte-level GPT-2 of 2 layers on the file text.txt, with validation; 6 steps.
extern const char text_run[];

// Writes `text` as run.json with `more` (", \"key\": value", may be "") in its object.
void run_file(void *const *state, const char *text, const char *more);

// Writes m.json, a slow machine with 8 ranks on a node, with `more` as above.
void machine_file(void *const *state, const char *more);

// Trains a GPT-2 of 500 tokens, as text_run, on what gpt2_tokenizer makes of some words
// (a.txt, 2,000 bytes) as ids: "out" then holds a model of tokens without a tokenizer.
extern const char gpt2_tokenizer[];
void train_tokens(void *const *state);

// Puts as many zeros in place of the weights of the latest checkpoint in "out".
void spoil_weights(void *const *state);

// Writes run.json, x.npy and y.npy: a classifier of 2 features on 40 samples in their
// order, 4 a step, of which number `bad` has a feature that is no number.
void bad_sample_run(void *const *state, int bad);

#endif

// Models to plan for.
#ifndef TEST_PLAN_MODELS_H
#define TEST_PLAN_MODELS_H

#include "graph/centered_model.h"
#include "plan/flow/plan.h"

// GPT-2 of two layers, 8 wide, 2 heads, context 4, 11 words. The caller destroys both.
tr_model *test_model_small_gpt2(double dropout);
// The same 16 wide, as a GPU's products of 8 bits need it.
tr_model *test_model_wide_gpt2(void);
// The small one with its vocabulary in so many slices.
tr_model *test_model_sliced_gpt2(double dropout, int slices);
tr_model *test_model_deep_gpt2(int layers); // wide enough that its blocks are its work
tr_model *test_model_gpt2(void);            // the published 124M shape
tr_model *test_model_mlp(void);             // 6-7-5-3
// Of 6 features and 3 classes. Ranks of the tensor axis sum inside of its units.
tr_model test_model_summed(void);
// Qwen3 of two layers, 8 wide, 2 heads that share one of keys and values, context 4, 11
// words. Its embedding has no parameter but the tied one: that unit's flat buffer is
// empty.
tr_model *test_model_qwen3(double dropout);
// BERT of two layers, 8 wide, 2 heads, whose loss is over the pairs of a step: at most
// `groups` of two texts of 4 tokens.
tr_model *test_model_pairs(double dropout, int64_t groups);
// A residual network of two blocks, 4 and 8 channels wide, for images of 8 x 8; its
// batch norms take their statistics over `scope`.
tr_model *test_model_resnet(tr_batch_scope scope);

// Two models without a loss: the last unit has three outputs, one of which nothing that
// is trained leads to. Of the second that unit has two segments.
extern const tr_model test_model_open, test_model_open_cut;
// A third one, with one output, for many parts of a pipeline.
enum { TEST_OPEN_UNITS = 12 };
extern const tr_model test_model_open_deep;

// Of features and classes. It uses one tensor in the units 0, 5 and 7 of its eight,
// which are about equal.
extern const tr_model test_model_tied;
enum { TEST_TIED_FEATURES = 6, TEST_TIED_CLASSES = 4 };

// g micro-batches of m samples, two optimizer states, one thread; to be changed.
tr_plan_request test_request(const tr_model *model, int64_t m, int64_t g);
// Fails the test when there is no plan.
tr_plan *test_plan(const tr_plan_request *request);

#endif

// A plan with its arena, its executor and drawn data, to run steps and look at what
// they leave.
#ifndef TEST_EXEC_RIG_H
#define TEST_EXEC_RIG_H

#include "exec/executor.h"

enum { TEST_SAMPLES = 24, TEST_BATCH = 12 };

typedef struct test_rig {
    tr_plan *plan;
    tr_arena *arenas[TR_SPACES];
    tr_executor *executor;
    tr_dataset *dataset;
} test_rig;

// A GPT-2 8 wide, of context 4.
tr_model *test_rig_gpt2(int64_t layers, double dropout);
// TEST_BATCH samples, m at a time.
tr_plan_request test_rig_request(const tr_model *model, int64_t m);

// Parameters and samples are drawn, the same for every plan of a model, but for one
// that keeps something on NVMe; what the plan passes through, and the gradients, begin
// as NaN. One target in five is none.
void test_rig_begin(test_rig *rig, const tr_plan_request *request);
void test_rig_end(test_rig *rig);

// Forward and backward of one step over the first train_batch_size samples.
void test_rig_train(test_rig *rig);
// The same; `follow`, which says false, is called before each step.
void test_rig_follow(test_rig *rig, bool (*follow)(void *user), void *user);
// One walk of a step over them, with a decision.
tr_status test_rig_walk(test_rig *rig, const tr_walk_calls *calls);
tr_step_statistics test_rig_statistics(const test_rig *rig); // of that step
// Evaluates the same samples.
void test_rig_evaluate(test_rig *rig);

// A parameter's values, and its gradient (NULL: none in f32), whatever the device lets
// the host see of it.
float *test_rig_param(const test_rig *rig, int param);
float *test_rig_grad(const test_rig *rig, int param);
int64_t test_rig_count(const test_rig *rig, int param);
const char *test_rig_name(const test_rig *rig, int param);

enum { TEST_SEED = 9 };
#define TEST_LOSS_SEED 0.25f

#endif

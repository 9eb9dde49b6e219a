// What tests on meshes of ranks share: models, the meshes, and the outcome of a short
// run on some of them.
#ifndef TEST_TRAIN_ON_MESHES_H
#define TEST_TRAIN_ON_MESHES_H

#include "comm/comm.h"
#include "comm/mesh.h"
#include "train/samples.h"
#include "train/snapshot.h"

// Neither the vocabulary nor the width of Llama's MLP is a multiple of tensor ranks.
enum { STEPS = 4, BATCH = 8, TOKENS = 67, TEXT_MAX = 2048, MESHES = 8 };

#define MASKED            ", \"task\": \"masked_lm\""
#define ADAM              ", \"optimizer\": {\"params\": {\"lr\": 0.01, \"eps\": 1e-6}}"
#define ONE_THREAD        ", \"execution\": {\"threads\": 1}"
#define ZERO_ALONE(stage) ", \"zero_optimization\": {\"stage\": " #stage "}"
#define ZERO(stage)       ONE_THREAD ZERO_ALONE(stage)
#define OFFLOADED_ADAM                                                                 \
    ONE_THREAD ", \"zero_optimization\": {\"stage\": 2, \"offload_optimizer\": "       \
               "{\"device\": \"cpu\"}}"
#define NVME(more)                                                                     \
    ONE_THREAD ", \"memory\": {\"nvme\": {\"path\": \"/tmp\"" more                     \
               "}}, \"zero_optimization\": {\"stage\": 3, \"offload_optimizer\": "     \
               "{\"device\": \"nvme\"}"
#define NVME_ADAM NVME("") "}"
#define ALL_ON_NVME                                                                    \
    NVME(", \"gradients\": true") ", \"offload_param\": {\"device\": \"nvme\"}}"
#define RECOMPUTED ", \"activation_checkpointing\": {\"number_checkpoints\": 2}"

extern tr_comm *world;       // of all ranks
extern const char *schedule; // what else runs say of the pipeline
extern const char gpt2[], llama[], qwen3[], bert[];
extern const tr_mesh meshes[MESHES], alone; // data, tensor, pipeline

typedef struct outcome {
    snapshot start, end;
    double loss[STEPS];
    tr_evaluation evaluation;
} outcome;

bool is_of_all(const tr_mesh *mesh);
// `tensor`: more keys of tensor_parallel.
void write_run_with(char text[TEXT_MAX], const char *model, int micro,
                    const tr_mesh *mesh, const char *tensor, const char *out,
                    const char *more, const char *cut);
void write_run_of(char text[TEXT_MAX], const char *model, int micro,
                  const tr_mesh *mesh, const char *out, const char *more,
                  const char *cut);
void write_run(char text[TEXT_MAX], const tr_mesh *mesh, const char *out);
run_options options_of(const char *text, const samples *data, tr_comm *ranks,
                       const char *resume);
void take_steps(const run_options *options, int64_t steps, bool saves, outcome *o);
// The same of a text's run.
void take_run(const char *text, const samples *data, tr_comm *ranks, const char *resume,
              int64_t steps, bool saves, outcome *o);
// Half of the steps on all ranks, by `many`; rank 0 alone goes on from their
// checkpoint, by `last`, as far as one rank goes by `one`. All ranks call it.
void assert_goes_on(const char *one, const char *many, const char *last,
                    const samples *data);
void free_outcome(outcome *o);
void assert_near(const outcome *one, const outcome *many, const char *what);

#endif

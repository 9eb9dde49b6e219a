// Run on ranks: language models of every architecture take PyTorch's ten updates
// (tests/data/goldens) at each ZeRO stage, from the host and from NVMe, recomputed,
// with slices of the vocabulary, and in a reproducible run.
#include "on_ranks.h"
#include "train/trial.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

enum { STEPS = 10, SETTINGS = 6 };

static tr_comm *comm;

static const char *const folders[] = {"gpt2-odd", "gpt2-frozen", "llama", "llama3",
                                      "mistral",  "qwen2",       "qwen3"};

// Models of whole texts, and of masked tokens: they have no slices of a vocabulary, and
// the loss of pairs is over the whole wave.
static const char *const encoders[] = {"qwen3-class", "bert-masked", "bert-next",
                                       "bert-pairs", "roberta-triples"};
enum { FIRST_OF_PAIRS = 3 };

#define STAGE      "zero_optimization.stage="
#define OPTIMIZER  "zero_optimization.offload_optimizer.device="
#define TWICE      "contrastive.passes=2"
#define PARAMETERS "zero_optimization.offload_param.device="

static const char *const ways[][SETTINGS] = {
    {STAGE "0", NULL},
    {STAGE "1", NULL},
    {STAGE "2", "execution.wave=1", NULL},
    {STAGE "3", "execution.recompute=unit", NULL},
    {STAGE "3", OPTIMIZER "cpu", PARAMETERS "cpu", NULL},
    {STAGE "3", OPTIMIZER "nvme", PARAMETERS "nvme", "memory.nvme.path=/tmp", NULL},
    {STAGE "3", "execution.reproducible=true", "execution.vocabulary_slices=3", NULL},
    {STAGE "0", TWICE, NULL},
    {STAGE "1", TWICE, "execution.wave=2", NULL},
    {STAGE "2", TWICE, "execution.recompute=unit", NULL},
    {STAGE "3", TWICE, PARAMETERS "cpu", NULL},
    {STAGE "3", TWICE, OPTIMIZER "cpu", "execution.reproducible=true", NULL},
};
enum { WAYS = sizeof ways / sizeof *ways, OF_WAVES = 2, OF_NVME = 5, OF_PAIRS = 7 };

static double number(const json_t *object, const char *name) {
    return json_number_value(json_object_get(object, name));
}

static void check_step(const char *folder, int way, const tr_step_result *r,
                       const json_t *expected) {
    double loss = number(expected, "loss"), norm = number(expected, "grad_norm");
    if (!(fabs(r->loss - loss) <= 1e-5) || !(fabs(r->grad_norm / norm - 1) <= 1e-5)) {
        fail_msg("%s, way %d, step %d: loss %.9g for %.9g, gradient norm %.9g for %.9g",
                 folder, way, (int)r->step, r->loss, loss, r->grad_norm, norm);
    }
}

static void check_way(const char *folder, int way, const json_t *steps) {
    const char *set[SETTINGS + 1] = {"train_micro_batch_size_per_gpu=1"};
    run_options options = {.file = "run.json",
                           .set = set,
                           .set_count = 1,
                           .comm = comm,
                           .resume = "never"};
    for (int i = 0; ways[way][i]; i++) {
        set[options.set_count++] = ways[way][i];
    }
    tr_step_result results[STEPS];
    trial t;
    trial_open(&t, &options);
    trial_steps(&t, STEPS, results);
    trial_close(&t);
    for (size_t s = 0; s < STEPS; s++) {
        check_step(folder, way, &results[s], json_array_get(steps, s));
    }
}

// The ways [first, end).
static void check_ways(const char *folder, int first, int end, int left_out) {
    char path[1024];
    json_error_t error;
    snprintf(path, sizeof path, "%s/goldens/%s", TR_TEST_DATA, folder);
    assert_int_equal(chdir(path), 0);
    json_t *expected = json_load_file("expected.json", 0, &error);
    const json_t *steps = json_object_get(expected, "steps");
    assert_int_equal(json_array_size(steps), STEPS);
    for (int way = first; way < end; way++) {
        if (way != left_out) {
            check_way(folder, way, steps);
        }
    }
    json_decref(expected);
}

static void as_pytorch(void **state) {
    (void)state;
    for (size_t f = 0; f < sizeof folders / sizeof *folders; f++) {
        check_ways(folders[f], 0, OF_PAIRS, -1);
    }
    for (size_t f = 0; f < sizeof encoders / sizeof *encoders; f++) {
        check_ways(encoders[f], 0, OF_NVME, OF_WAVES);
        if (f >= FIRST_OF_PAIRS) {
            check_ways(encoders[f], OF_PAIRS, WAYS, -1);
        }
    }
}

static int run(const char *which) {
    (void)which;
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_pytorch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv) {
    return on_ranks(&comm, run, argc, argv);
}

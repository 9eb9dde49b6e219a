// Labels: slow
// Training on the CUDA backend, on a device of the host's memory and threads: as on the
// CPU, whatever the pace of its streams.
#include "cuda/trained.h"
#include "guard/guard.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STEPS = 6, SEEDS = 2, SETTINGS = 5 };

// A run file that is trained, and how its batches are cut.
typedef struct example {
    const char *folder; // of the tests' data
    const char *more;   // one more setting
    int first, end;     // cuts
} example;

enum { ALONE, IN_WAVES, WHOLE, CUTS };

// One micro-batch after the other; in waves, with units recomputed; what needs all
// micro-batches of a step at once.
static const char *const cuts[CUTS][3] = {
    {"train_micro_batch_size_per_gpu=2", "execution.wave=1",
     "activation_checkpointing.number_checkpoints=0"},
    {"train_micro_batch_size_per_gpu=1", "execution.wave=6",
     "activation_checkpointing.number_checkpoints=2"},
    {"train_micro_batch_size_per_gpu=5", "execution.wave=2",
     "activation_checkpointing.number_checkpoints=1"},
};

static void go_to(const char *folder) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", TR_TEST_DATA, folder);
    assert_int_equal(chdir(path), 0);
}

static void train(const char *device, const example *of, int cut, trained *out) {
    const char *const set[SETTINGS] = {device, cuts[cut][0], cuts[cut][1], cuts[cut][2],
                                       of->more};
    run_options options = {.file = "run.json",
                           .set = set,
                           .set_count = of->more ? SETTINGS : SETTINGS - 1,
                           .resume = "never"};
    trial t;
    trial_open(&t, &options);
    trained_make(&t, STEPS, out);
    trained_check_arenas(&t);
    trial_close(&t);
}

// In 16 bits sums are rounded elsewhere than on the CPU: the first loss is that of the
// same parameters, and the later ones stay beside the CPU's.
static void assert_beside(const trained *cpu, const trained *cuda, const char *what) {
    for (int s = 0; s < STEPS; s++) {
        const tr_step_result *a = &cpu->steps[s], *b = &cuda->steps[s];
        double allowed = s == 0 ? 2e-3 : 1e-2;
        if (!(fabs(b->loss / a->loss - 1) <= allowed) || a->targets != b->targets) {
            fail_msg("%s, step %d: loss %.9g for %.9g", what, s + 1, b->loss, a->loss);
        }
    }
    assert_true(cuda->steps[STEPS - 1].loss < cuda->steps[0].loss);
}

// And where what is not trained is in few bits.
static void in_16_bits(void **state) {
    const example *of = *state;
    trained cpu, cuda;
    go_to(of->folder);
    test_guard_set_seed(0);
    train("device=cpu", of, of->first, &cpu);
    train("device=cuda", of, of->first, &cuda);
    assert_beside(&cpu, &cuda, of->folder);
    trained_free(&cpu);
    trained_free(&cuda);
}

// States in few bits and orthogonal matrices in 16 are rounded elsewhere where a
// gradient differs in its last bit.
static void in_few_bits(void **state) {
    const example *of = *state;
    trained cpu, cuda;
    go_to(of->folder);
    test_guard_set_seed(0);
    train("device=cpu", of, of->first, &cpu);
    train("device=cuda", of, of->first, &cuda);
    for (int s = 0; s < STEPS; s++) {
        double a = cpu.steps[s].loss, b = cuda.steps[s].loss;
        if (!(fabs(a - b) <= 1e-4)) {
            fail_msg("%s, step %d: loss %.9g for %.9g", of->more, s + 1, b, a);
        }
    }
    // bf16 has 8 bits, and each matrix goes through some fifteen products of it.
    double way = strstr(of->more, "Muon") ? 5e-2 : 5e-3;
    snapshot_assert_close(&cpu.start, &cpu.end, &cuda.end, way, of->more);
    trained_free(&cpu);
    trained_free(&cuda);
}

static void as_on_the_cpu(void **state) {
    const example *of = *state;
    go_to(of->folder);
    for (int c = of->first; c < of->end; c++) {
        trained cpu, cuda;
        test_guard_set_seed((uint64_t)c);
        train("device=cpu", of, c, &cpu);
        train("device=cuda", of, c, &cuda);
        trained_assert_close(&cpu, &cuda, of->folder);
        trained_free(&cpu);
        trained_free(&cuda);
    }
}

// The streams' pace changes no bit.
static void at_any_pace(void **state) {
    const example *of = *state;
    trained first, other;
    go_to(of->folder);
    test_guard_set_seed(0);
    train("device=cuda", of, of->first, &first);
    for (uint64_t seed = 1; seed < SEEDS; seed++) {
        test_guard_set_seed(seed);
        train("device=cuda", of, of->first, &other);
        snapshot_assert_same(&first.end, &other.end);
        trained_free(&other);
    }
    trained_free(&first);
}

#define GOLDEN "goldens/"
#define ON(test, folder, more, first, end)                                             \
    {                                                                                  \
#test ": " folder " " more, test, NULL, NULL, &(example) {                     \
            folder, *more ? more : NULL, first, end                                    \
        }                                                                              \
    }
#define IN_BOTH(golden, more)                                                          \
    ON(as_on_the_cpu, GOLDEN golden, more, ALONE, IN_WAVES + 1)
#define IN_ONE(golden, more)                                                           \
    ON(as_on_the_cpu, GOLDEN golden, more, IN_WAVES, IN_WAVES + 1)

#define MUON(type, method)                                                             \
    "optimizer={\"type\":\"Muon\",\"params\":{\"lr\":0.01,\"ns_dtype\":\"" type        \
    "\",\"ns_method\":\"" method "\"}}"

int main(void) {
    const struct CMUnitTest tests[] = {
        ON(in_16_bits, "goldens/gpt2", "bf16.enabled=true", IN_WAVES, 0),
        ON(in_16_bits, "goldens/qwen3", "bf16.enabled=true", IN_WAVES, 0),
        ON(in_16_bits, "goldens/bert-masked", "bf16.enabled=true", IN_WAVES, 0),
        ON(in_16_bits, "goldens/gpt2", "fp8.enabled=true", IN_WAVES, 0),
        ON(in_16_bits, "goldens/mlp", "fp16.enabled=true", ALONE, 0),
        ON(in_16_bits, "resnets/cifar", "bf16.enabled=true", WHOLE, 0),
        ON(in_16_bits, "adapters/llama", "quantization={\"base\": \"nf4\"}", IN_WAVES,
           0),
        ON(in_16_bits, "adapters/llama", "quantization={\"base\": \"q8_0\"}", IN_WAVES,
           0),
        ON(as_on_the_cpu, "adapters/llama", "", IN_WAVES, IN_WAVES + 1),
        ON(as_on_the_cpu, "adapters/llama",
           "adapter={\"r\":4,\"lora_alpha\":8,\"target_modules\":[\"q_proj\",\"v_"
           "proj\"],"
           "\"use_dora\":true}",
           IN_WAVES, IN_WAVES + 1),
        IN_BOTH("mlp", ""),
        IN_BOTH("gpt2", ""),
        IN_BOTH("gpt2-frozen", ""),
        IN_ONE("mlp-sgd", ""),
        IN_ONE("mlp-momentum", ""),
        IN_ONE("mlp-lion", ""),
        IN_BOTH("mlp-lamb", ""),
        IN_ONE("mlp-lamb-paper", ""),
        IN_BOTH("mlp-lars", ""),
        IN_ONE("mlp-lars-all", ""),
        IN_ONE("mlp", "optimizer={\"type\":\"Adagrad\"}"),
        ON(as_on_the_cpu, "goldens/gpt2-states", MUON("f32", "standard"), ALONE,
           IN_WAVES),
        ON(in_few_bits, "goldens/gpt2-states", MUON("f32", "gram"), ALONE, 0),
        ON(in_few_bits, "goldens/gpt2-states", MUON("bf16", "standard"), ALONE, 0),
        ON(in_few_bits, "goldens/gpt2-states", MUON("fp16", "gram"), ALONE, 0),
        ON(in_few_bits, "goldens/gpt2-states", "optimizer.params.state_dtype=int8",
           ALONE, 0),
        ON(in_few_bits, "goldens/gpt2-states", "optimizer.params.state_dtype=bf16",
           ALONE, 0),
        IN_ONE("mlp", "data_types.grad_accum_dtype=bf16"),
        IN_ONE("mlp", "execution.reproducible=true"),
        IN_ONE("gpt2", "noise_scale.measure=true"),
        IN_ONE("llama", ""),
        IN_ONE("mistral-packed", ""),
        IN_ONE("qwen3", ""),
        IN_ONE("bert-masked", ""),
        IN_ONE("roberta-masked", ""),
        IN_ONE("bert-next", ""),
        IN_ONE("bert-class", ""),
        IN_ONE("bert-set", ""),
        IN_ONE("roberta-value", ""),
        IN_ONE("qwen3-class", ""),
        IN_ONE("bert-pairs", ""),
        IN_ONE("bert-pairs", "contrastive.passes=2"),
        IN_ONE("bert-scale", ""),
        IN_ONE("roberta-triples", ""),
        IN_ONE("gpt2", "execution.vocabulary_slices=3"),
        ON(as_on_the_cpu, "resnets/cifar", "steps=10", WHOLE, WHOLE + 1),
        ON(at_any_pace, "goldens/mlp", "", IN_WAVES, 0),
        ON(at_any_pace, "goldens/gpt2", "", IN_WAVES, 0),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

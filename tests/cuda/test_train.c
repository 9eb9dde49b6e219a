// Training on the CUDA backend, on a device of the host's memory and threads: as on the
// CPU, whatever the pace of its streams.
#include "guard/guard.h"
#include "train/snapshot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STEPS = 10, SEEDS = 2, SETTINGS = 4 };

static void go_to(const char *golden) {
    char path[1024];
    snprintf(path, sizeof path, "%s/goldens/%s", TR_TEST_DATA, golden);
    assert_int_equal(chdir(path), 0);
}

// What a run has come to.
typedef struct trained {
    tr_step_result steps[STEPS];
    snapshot start, end;
} trained;

// The marks are what the plan says. (The ledger's host also has the data.)
static void check_arenas(const trial *t) {
    for (int space = 0; space < TR_SPACE_NVME; space++) {
        const tr_arena *arena = t->engine->arenas[space];
        size_t bytes = (size_t)t->plan->arena_bytes[space];
        assert_int_equal(arena ? tr__arena_high_water(arena) : 0, bytes);
    }
}

static void train(const char *device, const char *micro, const char *wave,
                  const char *units, trained *out) {
    const char *const set[SETTINGS] = {device, micro, wave, units};
    tr_run_options options = {
        .file = "run.json", .set = set, .set_count = SETTINGS, .resume = "never"};
    trial t;
    trial_open(&t, &options);
    snapshot_take(&out->start, &t);
    trial_steps(&t, STEPS, out->steps);
    snapshot_take(&out->end, &t);
    check_arenas(&t);
    trial_close(&t);
}

static void forget(trained *t) {
    snapshot_free(&t->start);
    snapshot_free(&t->end);
}

static void assert_close(const trained *cpu, const trained *cuda, const char *what) {
    for (int s = 0; s < STEPS; s++) {
        const tr_step_result *a = &cpu->steps[s], *b = &cuda->steps[s];
        if (!(fabs(a->loss - b->loss) <= 1e-5) ||
            !(fabs(b->grad_norm / a->grad_norm - 1) <= 1e-5)) {
            fail_msg("%s, step %d: loss %.9g for %.9g, gradient norm %.9g for %.9g",
                     what, s + 1, b->loss, a->loss, b->grad_norm, a->grad_norm);
        }
        assert_true(a->targets == b->targets && a->accuracy == b->accuracy);
    }
    snapshot_assert_close(&cpu->start, &cpu->end, &cuda->end, 1e-4, what);
}

// One micro-batch after the other; in waves, with units recomputed.
static void as_on_the_cpu(void **state) {
    static const char *const cuts[][3] = {
        {"train_micro_batch_size_per_gpu=2", "execution.wave=1",
         "activation_checkpointing.number_checkpoints=0"},
        {"train_micro_batch_size_per_gpu=1", "execution.wave=6",
         "activation_checkpointing.number_checkpoints=2"},
    };
    go_to(*state);
    for (int c = 0; c < 2; c++) {
        trained cpu, cuda;
        test_guard_set_seed((uint64_t)c);
        train("device=cpu", cuts[c][0], cuts[c][1], cuts[c][2], &cpu);
        train("device=cuda", cuts[c][0], cuts[c][1], cuts[c][2], &cuda);
        assert_close(&cpu, &cuda, *state);
        forget(&cpu);
        forget(&cuda);
    }
}

// The streams' pace changes no bit.
static void at_any_pace(void **state) {
    trained first, other;
    go_to(*state);
    test_guard_set_seed(0);
    train("device=cuda", "train_micro_batch_size_per_gpu=2", "execution.wave=3",
          "activation_checkpointing.number_checkpoints=1", &first);
    for (uint64_t seed = 1; seed < SEEDS; seed++) {
        test_guard_set_seed(seed);
        train("device=cuda", "train_micro_batch_size_per_gpu=2", "execution.wave=3",
              "activation_checkpointing.number_checkpoints=1", &other);
        snapshot_assert_same(&first.end, &other.end);
        forget(&other);
    }
    forget(&first);
}

// Fails the test unless the run is refused with a message that has the words.
static void assert_refused(const char *setting, const char *words) {
    const char *const set[] = {"device=cuda", setting};
    tr_run_options options = {
        .file = "run.json", .set = set, .set_count = 2, .resume = "never"};
    tr_run *run = NULL;
    tr_plan *plan = NULL;
    tr_error err = {0};
    tr_status status = tr_run_open(&options, &run, &err);
    if (status == TR_OK) {
        status = tr_plan_make(tr_run_plan_request(run), &plan, &err);
    }
    assert_int_equal(status, TR_USAGE);
    if (!strstr(err.message, words)) {
        fail_msg("%s: \"%s\" is not in the message: %s", setting, words, err.message);
    }
    tr_plan_destroy(plan);
    tr_run_close(run);
}

static void what_is_missing_is_refused(void **state) {
    (void)state;
    go_to("gpt2");
    assert_refused("optimizer.type=Lamb", "cannot update by it");
    assert_refused("bf16.enabled=true", "the cuda backend has no kernel");
    assert_refused("execution.reproducible=true", "the cuda backend has no kernel");
    assert_refused("zero_optimization.offload_optimizer.device=cpu",
                   "does not offload");
    go_to("llama");
    assert_refused("steps=10", "the cuda backend has no kernel for op");
}

#define ON(test, golden)                                                               \
    { #test ": " golden, test, NULL, NULL, golden }

int main(void) {
    const struct CMUnitTest tests[] = {
        ON(as_on_the_cpu, "mlp"),          ON(as_on_the_cpu, "mlp-sgd"),
        ON(as_on_the_cpu, "mlp-momentum"), ON(as_on_the_cpu, "gpt2"),
        ON(as_on_the_cpu, "gpt2-frozen"),  ON(at_any_pace, "mlp"),
        ON(at_any_pace, "gpt2"),           cmocka_unit_test(what_is_missing_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

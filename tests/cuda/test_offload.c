// Labels: slow
// Offload on the CUDA backend, on a device of the host's memory and threads:
// parameters, gradients, states and boundaries on the host or on NVMe.
#include "cuda/trained.h"
#include "exec/walk.h"
#include "guard/guard.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { STEPS = 3, SETTINGS = 3 };

// Where a run keeps what is not on the device, and whether the device updates.
typedef struct place {
    const char *set[SETTINGS];
    bool updates;
} place;

#define OPTIMIZER "zero_optimization.offload_optimizer.device="
#define PARAM     "zero_optimization.offload_param.device="
#define NVME      "memory.nvme.path=/tmp"

#define REPRODUCIBLE "execution.reproducible=true"

static const place resident = {{PARAM "none", OPTIMIZER "none", "execution.wave=1"},
                               true};
static const place places[] = {
    {{OPTIMIZER "cpu", "execution.wave=3", "execution.recompute=unit"}, false},
    {{OPTIMIZER "cpu", "execution.wave=3", PARAM "cpu"}, false},
    {{OPTIMIZER "cpu", "zero_optimization.offload_optimizer.ratio=0.5", PARAM "none"},
     false},
    {{PARAM "cpu", "execution.wave=1", "execution.recompute=none"}, true},
    {{"activation_checkpointing.cpu_checkpointing=true", "execution.wave=1",
      "activation_checkpointing.number_checkpoints=2"},
     true},
    {{"activation_checkpointing.cpu_saved=true", "execution.wave=1", PARAM "none"},
     true},
    {{OPTIMIZER "nvme", NVME, PARAM "nvme"}, false},
    {{OPTIMIZER "nvme", NVME, "memory.nvme.gradients=true"}, false},
    {{OPTIMIZER "cpu", "optimizer.type=Lamb", "execution.recompute=unit"}, false},
    {{OPTIMIZER "cpu", "optimizer.type=Lamb",
      "zero_optimization.offload_optimizer.ratio=0.5"},
     false},
    {{OPTIMIZER "cpu", REPRODUCIBLE, "execution.wave=1"}, false},
    {{OPTIMIZER "cpu", REPRODUCIBLE, PARAM "cpu"}, false},
    {{OPTIMIZER "nvme", NVME, "optimizer.type=Lamb"}, false},
};

// Where sums are not f32: the host converts them.
static const place half_sums[] = {
    {{OPTIMIZER "cpu", "data_types.grad_accum_dtype=bf16", "execution.wave=3"}, false},
    {{OPTIMIZER "cpu", "data_types.grad_accum_dtype=fp16", PARAM "cpu"}, false},
};

static void open_run(trial *t, const char *device, const place *p) {
    const char *const set[] = {device, p->set[0], p->set[1], p->set[2]};
    run_options options = {
        .file = "run.json", .set = set, .set_count = SETTINGS + 1, .resume = "never"};
    trial_open(t, &options);
}

static void train(const char *device, const place *p, trained *out) {
    trial t;
    open_run(&t, device, p);
    trained_make(&t, STEPS, out);
    trial_close(&t);
}

// LARS has other parameters than Lamb.
static bool is_of(const char *folder, const place *p) {
    bool lamb = strstr(p->set[1], "Lamb") || strstr(p->set[2], "Lamb");
    return !(lamb && strstr(folder, "lars"));
}

// As on the CPU; where the device updates, as if all were there, bit for bit.
static void as_on_the_cpu(void **state) {
    trained all;
    assert_int_equal(chdir(*state), 0);
    test_guard_set_seed(0);
    train("device=cuda", &resident, &all);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const place *p = &places[i];
        trained cpu, cuda;
        if (!is_of(*state, p)) {
            continue;
        }
        test_guard_set_seed((uint64_t)i);
        train("device=cpu", p, &cpu);
        train("device=cuda", p, &cuda);
        trained_assert_close(&cpu, &cuda, p->set[0]);
        if (p->updates) {
            snapshot_assert_same(&all.end, &cuda.end);
        }
        trained_free(&cpu);
        trained_free(&cuda);
    }
    trained_free(&all);
}

// In 16 bits sums are rounded, on the device as on the CPU, but of gradients that
// differ in their last bits.
static void with_sums_of_16_bits(void **state) {
    assert_int_equal(chdir(*state), 0);
    for (size_t i = 0; i < sizeof half_sums / sizeof *half_sums; i++) {
        trained cpu, cuda;
        test_guard_set_seed((uint64_t)i);
        train("device=cpu", &half_sums[i], &cpu);
        train("device=cuda", &half_sums[i], &cuda);
        for (int s = 0; s < STEPS; s++) {
            assert_true(fabs(cuda.steps[s].loss / cpu.steps[s].loss - 1) <= 1e-3);
        }
        trained_free(&cpu);
        trained_free(&cuda);
    }
}

// No wave, and so no number of times that gradients leave, changes a bit.
static void reproducible_at_any_wave(void **state) {
    static const place waves[] = {
        {{OPTIMIZER "cpu", REPRODUCIBLE, "execution.wave=1"}, false},
        {{OPTIMIZER "cpu", REPRODUCIBLE, "execution.wave=2"}, false},
        {{OPTIMIZER "cpu", REPRODUCIBLE, "zero_optimization.overlap_comm=false"},
         false},
    };
    trained first, other;
    assert_int_equal(chdir(*state), 0);
    test_guard_set_seed(0);
    train("device=cuda", &waves[0], &first);
    for (size_t i = 1; i < sizeof waves / sizeof *waves; i++) {
        test_guard_set_seed((uint64_t)i);
        train("device=cuda", &waves[i], &other);
        snapshot_assert_same(&first.end, &other.end);
        trained_free(&other);
    }
    trained_free(&first);
}

// Bytes that go to the host and come back are those of the plan.
static void copies_are_the_plan_s(void **state) {
    const place *p = &places[0];
    trial t;
    assert_int_equal(chdir(*state), 0);
    open_run(&t, "device=cuda", p);
    const tr_executor *ex = t.engine->executor;
    const tr_queue_table *queues = ex->backend->queues;
    t.engine->defers = false;
    trial_steps(&t, 1, NULL);
    const tr_device_queue *in = ex->queue[TR_STREAM_COPY];
    const tr_device_queue *out = ex->queue[TR_STREAM_COPY_OUT];
    int64_t before[2] = {queues->copied(in), queues->copied(out)};
    trial_steps(&t, 1, NULL);
    assert_true(t.plan->traffic.device_host > 0);
    int64_t to_device = queues->copied(in) - before[0];
    int64_t to_host = queues->copied(out) - before[1];
    assert_true(to_device > 0 && to_host > 0);
    assert_int_equal(to_device + to_host, t.plan->traffic.device_host);
    trial_close(&t);
}

// ---- what the host would have to do on the memory of the device

static void the_host_does_not_reach_the_device(void **state) {
    trial t;
    tr_error err = {0};
    assert_int_equal(chdir(*state), 0);
    open_run(&t, "device=cuda", &places[0]);
    tr_buffer *grads = &t.plan->buffers[t.plan->flats[0].grad.buffer];
    trial_ok(tr__plan_check_reach(t.plan, &err), &err);
    assert_int_equal(grads->space, TR_SPACE_HOST);
    grads->space = TR_SPACE_DEVICE;
    assert_int_equal(tr__plan_check_reach(t.plan, &err), TR_USAGE);
    grads->space = TR_SPACE_HOST;
    trial_close(&t);
}

#define ON(test, golden)                                                               \
    { #test ": " golden, test, NULL, NULL, TR_TEST_DATA "/goldens/" golden }

int main(void) {
    const struct CMUnitTest tests[] = {
        ON(as_on_the_cpu, "mlp"),
        ON(as_on_the_cpu, "gpt2"),
        ON(as_on_the_cpu, "mlp-lars"),
        ON(with_sums_of_16_bits, "mlp"),
        ON(reproducible_at_any_wave, "mlp"),
        ON(reproducible_at_any_wave, "gpt2"),
        ON(copies_are_the_plan_s, "mlp"),
        ON(the_host_does_not_reach_the_device, "mlp"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Offload on the CUDA backend, on a device of the host's memory and threads:
// parameters, gradients, states and boundaries on the host or on NVMe.
#include "cuda/trained.h"
#include "exec/walk.h"
#include "guard/guard.h"

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
    {{OPTIMIZER "nvme", NVME, PARAM "nvme"}, false},
    {{OPTIMIZER "nvme", NVME, "memory.nvme.gradients=true"}, false},
};

static void open_run(trial *t, const char *device, const place *p) {
    const char *const set[] = {device, p->set[0], p->set[1], p->set[2]};
    tr_run_options options = {
        .file = "run.json", .set = set, .set_count = SETTINGS + 1, .resume = "never"};
    trial_open(t, &options);
}

static void train(const char *device, const place *p, trained *out) {
    trial t;
    open_run(&t, device, p);
    trained_make(&t, STEPS, out);
    trial_close(&t);
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
    int64_t before = queues->copied(ex->queue[TR_STREAM_COPY]);
    trial_steps(&t, 1, NULL);
    assert_true(t.plan->traffic.device_host > 0);
    assert_int_equal(queues->copied(ex->queue[TR_STREAM_COPY]) - before,
                     t.plan->traffic.device_host);
    trial_close(&t);
}

// ---- what the host would have to do on the memory of the device

static void assert_refused(const char *setting) {
    const char *const set[] = {"device=cuda", OPTIMIZER "cpu", setting};
    tr_run_options options = {
        .file = "run.json", .set = set, .set_count = 3, .resume = "never"};
    tr_run *run = NULL;
    tr_plan *plan = NULL;
    tr_error err = {0};
    trial_ok(tr_run_open(&options, &run, &err), &err);
    assert_int_equal(tr_plan_make(tr_run_plan_request(run), &plan, &err), TR_USAGE);
    if (!strstr(err.message, "the host cannot yet do ")) {
        fail_msg("%s: %s", setting, err.message);
    }
    tr_run_close(run);
}

static void the_host_does_not_reach_the_device(void **state) {
    trial t;
    tr_error err = {0};
    assert_int_equal(chdir(*state), 0);
    assert_refused("execution.reproducible=true");
    assert_refused("optimizer.type=Lamb");
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
        ON(copies_are_the_plan_s, "mlp"),
        ON(the_host_does_not_reach_the_device, "mlp"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

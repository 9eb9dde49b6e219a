// Which device a run computes on, where the machine has several: the one that it names,
// or the first that can train it.
#include "backend/backend.h"
#include "backend/cuda/kernels.h"
#include "backend/cuda/modules.h"
#include "cuda/device.h"
#include "train/trial.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char said[4096]; // by the run

static void keep(void *user, tr_message_level level, const char *line) {
    size_t length = strlen(said);
    (void)user;
    (void)level;
    snprintf(said + length, sizeof said - length, "%s\n", line);
}

static tr_status open_run(const char *golden, const char *setting, tr_run **run,
                          tr_error *err) {
    char path[1024];
    const char *const set[] = {setting};
    run_options options = {.file = "run.json",
                           .set = set,
                           .set_count = setting ? 1 : 0,
                           .resume = "never",
                           .choose_device = true,
                           .computes_here = true,
                           .messages = {keep, NULL}};
    snprintf(path, sizeof path, "%s/goldens/%s", TR_TEST_DATA, golden);
    assert_int_equal(chdir(path), 0);
    said[0] = '\0';
    return run_open(&options, run, err);
}

// With this setting the golden trains on that backend, and says these words.
static void assert_chosen(const char *golden, const char *setting, tr_backend_id id,
                          const char *words) {
    tr_run *run = NULL;
    tr_error err = {0};
    trial_ok(open_run(golden, setting, &run, &err), &err);
    tr_backend_id chosen = tr_run_plan_request(run)->backend;
    tr_run_destroy(run);
    if (chosen != id || (words ? !strstr(said, words) : !!strstr(said, "device"))) {
        fail_msg("%s, %s: on %s, and says: %s", golden, setting ? setting : "alone",
                 tr__backend(chosen)->name, said);
    }
}

static void the_first_that_can(void **state) {
    (void)state;
    test_device_set_count(2);
    assert_chosen("gpt2", NULL, TR_BACKEND_CUDA, "device cuda:0 (device 0 for tests)");
    assert_chosen("gpt2", "device=auto", TR_BACKEND_CUDA, "device cuda:0");
    assert_chosen("gpt2", "device=cpu", TR_BACKEND_CPU, NULL);
    assert_chosen("gpt2", "bf16.enabled=true", TR_BACKEND_CUDA, "device cuda:0");
    assert_chosen("gpt2", "zero_optimization.offload_optimizer.device=cpu",
                  TR_BACKEND_CUDA, "device cuda:0");
    test_device_set_memory((size_t)1 << 30);
    assert_chosen("gpt2", NULL, TR_BACKEND_CPU, "cuda:0 has 1.00 GiB");
    test_device_set_memory((size_t)16 << 30);
    test_device_set_count(0);
    assert_chosen("gpt2", NULL, TR_BACKEND_CPU, NULL);
    test_device_set_count(1);
}

// Opens the run's engine, which works on the device.
static tr_status open_engine(const char *setting, trial *t, tr_error *err) {
    *t = (trial){0};
    tr_status status = open_run("mlp", setting, &t->run, err);
    if (status == TR_OK) {
        status = tr_plan_make(tr_run_plan_request(t->run), &t->plan, err);
    }
    return status == TR_OK ? tr_engine_create(t->run, t->plan, &t->engine, err)
                           : status;
}

static void assert_refused(const char *setting, tr_status wanted, const char *words) {
    trial t;
    tr_error err = {0};
    tr_status status = open_engine(setting, &t, &err);
    trial_close(&t);
    assert_int_equal(status, wanted);
    if (!strstr(err.message, words)) {
        fail_msg("%s: \"%s\" is not in: %s", setting, words, err.message);
    }
}

static void the_one_that_is_named(void **state) {
    trial t;
    tr_error err = {0};
    (void)state;
    test_device_set_count(2);
    assert_refused("device=cuda:2", TR_USAGE,
                   "there is no cuda:2: this machine has 2 CUDA devices");
    assert_refused("device=cpu:1", TR_USAGE, "the processor has no number");
    assert_refused("device=cuda:", TR_USAGE, "expected one of \"cpu\", \"cuda\"");
    assert_refused("device=gpu:1", TR_USAGE, "expected one of \"cpu\", \"cuda\"");
    test_device_set_memory((size_t)1 << 30);
    assert_refused("device=cuda:1", TR_BUDGET, "cuda:1 has 1.00 GiB");
    test_device_set_memory((size_t)16 << 30);
    assert_int_equal(test_device_opened(), -1);
    trial_ok(open_engine("device=cuda:1", &t, &err), &err);
    assert_int_equal(test_device_opened(), 1);
    trial_steps(&t, 1, NULL);
    trial_close(&t);
    assert_refused("device=cuda:0", TR_USAGE, "already works on cuda:1");
    test_device_set_count(1);
}

// A run that asks for a kernel which there is not ends before it says anything: the
// message names the unit, the op and what helps.
static void a_kernel_that_is_not_there(void **state) {
    const char *const set[] = {"device=cuda", "fp8.enabled=true"};
    run_options options = {.file = "run.json",
                           .set = set,
                           .set_count = 2,
                           .resume = "never",
                           .computes_here = true,
                           .messages = {keep, NULL}};
    tr_run *run = NULL;
    tr_plan *plan = NULL;
    tr_error err = {0};
    (void)state;
    assert_int_equal(chdir(TR_TEST_DATA "/goldens/qwen3"), 0);
    said[0] = '\0';
    tr_status status = run_open(&options, &run, &err);
    if (status == TR_OK) {
        status = tr_plan_make(tr_run_plan_request(run), &plan, &err);
    }
    assert_int_equal(tr_status_exit(status), 2);
    if (!strstr(err.message, "the cuda backend has no kernel for op linear_fp8") ||
        !strstr(err.message, "without fp8 there may be one")) {
        fail_msg("%s", err.message);
    }
    assert_null(strstr(said, "model qwen3"));
    tr_run_destroy(run);
}

// Products in fp8 need widths that are multiples of 16, and a GPU that has them.
static void fp8_asks_for_more(void **state) {
    tr_run *run = NULL;
    tr_plan *plan = NULL;
    tr_error err = {0};
    (void)state;
    assert_chosen("gpt2", "fp8.enabled=true", TR_BACKEND_CUDA, "device cuda:0");
    assert_chosen("qwen3", "fp8.enabled=true", TR_BACKEND_CPU,
                  "no kernel for op linear_fp8 of this shape");
    trial_ok(open_run("gpt2", "fp8.enabled=true", &run, &err), &err);
    tr_plan_request request = *tr_run_plan_request(run);
    request.level_limit = 1 + TR_CUDA_SM_80;
    assert_int_equal(tr_plan_make(&request, &plan, &err), TR_USAGE);
    assert_non_null(strstr(err.message, "need a GPU of sm_89 or later"));
    request.level_limit = 1 + TR_CUDA_SM_89;
    trial_ok(tr_plan_make(&request, &plan, &err), &err);
    tr_plan_destroy(plan);
    tr_run_destroy(run);
}

static void kernels_run_on_later_devices(void **state) {
    (void)state;
    assert_true(tr__cuda_runs_on("80 90a", 8, 0));
    assert_true(tr__cuda_runs_on("80 90a", 8, 9));
    assert_true(tr__cuda_runs_on("80 90a", 9, 0));
    assert_false(tr__cuda_runs_on("80 90a", 7, 5));
    assert_false(tr__cuda_runs_on("86", 8, 0));
    assert_false(tr__cuda_runs_on("100a", 10, 3));
    assert_true(tr__cuda_runs_on("100", 10, 3));
    assert_false(tr__cuda_runs_on("80 90a", 12, 0));
    assert_true(tr__cuda_runs_on("80+ 90a", 12, 0));
    assert_true(tr__cuda_runs_on("80+ 90a", 8, 6));
    assert_false(tr__cuda_runs_on("80+ 90a", 7, 5));
    assert_false(tr__cuda_runs_on("86+", 8, 0));
    assert_false(tr__cuda_runs_on("", 8, 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_that_can),
        cmocka_unit_test(the_one_that_is_named),
        cmocka_unit_test(a_kernel_that_is_not_there),
        cmocka_unit_test(fp8_asks_for_more),
        cmocka_unit_test(kernels_run_on_later_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

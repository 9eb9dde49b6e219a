// A device that fails: the step ends with one message, which names the step and the
// kernel.
#include "backend/backend.h"
#include "cuda/device.h"
#include "train/trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const device[] = {"device=cuda"};
static const run_options options = {
    .file = "run.json", .set = device, .set_count = 1, .resume = "never"};

typedef struct fault {
    int64_t n; // launch of the second step
    bool refused;
    const char *blocking; // CUDA_LAUNCH_BLOCKING; NULL: not set
    const char *words[3];
} fault;

static const fault faults[] = {
    {1, true, NULL, {"step 2: the device refuses tr_cuda_", " of ", "no such launch"}},
    {5,
     false,
     NULL,
     {"step 2: the device failed in ", "or in what was launched before it",
      "unspecified launch failure; start with CUDA_LAUNCH_BLOCKING=1"}},
    {5, false, "1", {"step 2", "failed in ", ": unspecified launch failure"}},
};
enum { FAULTS = sizeof faults / sizeof *faults };

static void assert_words(const char *const words[3], const char *message) {
    for (int w = 0; w < 3 && words[w]; w++) {
        if (!strstr(message, words[w])) {
            fail_msg("\"%s\" is not in \"%s\"", words[w], message);
        }
    }
}

static void set_blocking(const char *value) {
    if (value) {
        setenv("CUDA_LAUNCH_BLOCKING", value, 1);
    } else {
        unsetenv("CUDA_LAUNCH_BLOCKING");
    }
}

static void kernels_that_fail(void **state) {
    (void)state;
    for (int i = 0; i < FAULTS; i++) {
        const fault *f = &faults[i];
        trial t;
        tr_error err = {0};
        tr_step_result ignored = TR_STEP_RESULT_INIT;
        set_blocking(f->blocking);
        trial_open(&t, &options);
        trial_steps(&t, 1, NULL);
        test_device_fail(TEST_LAUNCH, f->n, f->refused);
        tr_status status = tr_engine_step(t.engine, &ignored, &err);
        trial_close(&t);
        test_device_mend();
        assert_int_equal(status, TR_INTERNAL);
        assert_words(f->words, err.message);
    }
}

static void copies_that_fail(void **state) {
    static const char *const refused[3] = {"the device refuses a copy: no such launch"};
    static const char *const failed[3] = {"the device failed in a copy",
                                          "before it: ", "unspecified launch failure"};
    const tr_backend *backend = tr__backend(TR_BACKEND_CUDA);
    (void)state;
    set_blocking(NULL);
    for (int r = 0; r < 2; r++) {
        tr_device_queue *queue;
        tr_error err = {0};
        char from = 1, to = 0;
        trial_ok(backend->open(0, &err), &err);
        trial_ok(backend->queues->create(1, &queue, &err), &err);
        test_device_fail(TEST_COPY, 1, r == 1);
        backend->queues->copy(queue, &from, &to, 1);
        int64_t ticket = backend->queues->mark(queue);
        assert_int_equal(backend->queues->wait(queue, ticket, &err), TR_INTERNAL);
        assert_words(r == 1 ? refused : failed, err.message);
        assert_int_equal(to, 0);
        test_device_mend();
        backend->queues->destroy(queue);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_that_fail),
        cmocka_unit_test(copies_that_fail),
    };
    return chdir(TR_TEST_DATA "/goldens/mlp") == 0
               ? cmocka_run_group_tests(tests, NULL, NULL)
               : 1;
}

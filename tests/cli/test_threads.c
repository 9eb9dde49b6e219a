// The number of threads that a run chooses by itself, and keeps when it is resumed.
#include "command.h"
#include "runs.h"

#include "base/memory.h"
#include "files/checkpoint/state.h"

#include <stdlib.h>
#include <string.h>

static const char state_file[] = "out/checkpoints/latest/state.json";

static void read_state(void *const *state, tr_state *out, tr_manifest *manifest) {
    tr_error err = {0};
    assert_int_equal(tr__state_read(file_path(state, state_file), out, manifest, &err),
                     TR_OK);
}

static int number_of(void *const *state, const char *name) {
    tr_state read;
    tr_manifest manifest;
    double value = 0;
    read_state(state, &read, &manifest);
    assert_true(tr__state_numbers_get(&read.numbers, name, &value));
    return (int)value;
}

static void forget(tr_state_numbers *numbers, const char *name) {
    for (int i = 0; i < numbers->count; i++) {
        if (strcmp(numbers->item[i].name, name) == 0) {
            numbers->item[i] = numbers->item[--numbers->count];
            return;
        }
    }
    fail();
}

// What the newest checkpoint tells of threads; 0: nothing.
static void change(void *const *state, int threads, int cores) {
    tr_state now;
    tr_manifest manifest;
    tr_error err = {0};
    char *text = NULL;
    read_state(state, &now, &manifest);
    if (threads > 0) {
        tr__state_numbers_set(&now.numbers, "threads", threads);
        tr__state_numbers_set(&now.numbers, "threads_cores", cores);
    } else {
        forget(&now.numbers, "threads");
        forget(&now.numbers, "threads_cores");
    }
    assert_int_equal(tr__state_encode(&now, &manifest, &text, &err), TR_OK);
    file_text(state, state_file, text);
    tr__free(text);
}

// As run.json in the out folder tells.
static int threads_used(void *const *state) {
    json_t *run = file_json(state, "out/run.json");
    json_t *threads = json_object_get(json_object_get(run, "execution"), "threads");
    int count = (int)json_integer_value(threads);
    json_decref(run);
    return count;
}

static void train(void *const *state, const char *epochs) {
    free(succeed(state, LIST("train", "run.json", "--set", epochs)));
}

static void test_small_run(void **state) {
    run_file(state, classifier_run, "");
    outcome o = run(state, LIST("train", "run.json"));
    assert_int_equal(o.status, 0);
    int cores = number_of(state, "threads_cores");
    assert_int_equal(threads_used(state), 1);
    assert_int_equal(number_of(state, "threads"), 1);
    if (cores > 1) {
        assert_says(o.err, "threads: 1 of ");
        assert_says(o.err, ": more threads make work of this size no faster");
    }
    outcome_free(&o);
}

static void test_resumed(void **state) {
    run_file(state, classifier_run, "");
    train(state, "epochs=1");
    int cores = number_of(state, "threads_cores");
    change(state, cores, cores);
    train(state, "epochs=2"); // as in the checkpoint
    assert_int_equal(threads_used(state), cores);
    assert_int_equal(number_of(state, "threads"), cores);
    change(state, 64, 64);
    train(state, "epochs=3"); // of another machine
    assert_int_equal(threads_used(state), cores == 64 ? 64 : 1);
    change(state, 0, 0);
    train(state, "epochs=4"); // of a time when all cores were taken
    assert_int_equal(threads_used(state), cores);
}

static void test_user_decides(void **state) {
    run_file(state, classifier_run, "");
    free(succeed(state, LIST("train", "run.json", "--threads", "2")));
    assert_int_equal(threads_used(state), 2);
    setting what = {.environment = {"OMP_NUM_THREADS=3"}};
    outcome o = run_with(state, &what, LIST("train", "run.json", "--resume", "never"));
    assert_int_equal(o.status, 0);
    outcome_free(&o);
    assert_int_equal(threads_used(state), 3);
}

// The bits of a reproducible run do not depend on the micro-batch, so neither do its
// threads.
static void test_reproducible(void **state) {
    run_file(state, classifier_run, ", \"execution\": {\"reproducible\": true}");
    train(state, "epochs=1");
    assert_int_equal(threads_used(state), number_of(state, "threads_cores"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_small_run),
        TEST(test_resumed),
        TEST(test_user_decides),
        TEST(test_reproducible),
    };
    unsetenv("OMP_NUM_THREADS");
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Budgets hold for every batch that a run comes to.
// Labels: slow
#include "command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// T = 16 in micro-batches of 2, then what `more` says.
static void growing_run(void *const *state, const char *more) {
    char text[2048];
    snprintf(text, sizeof text,
             "{\"model\": {\"model_type\": \"gpt2\", \"n_layer\": 3, \"n_embd\": 32, "
             "\"n_head\": 2, \"n_positions\": 32}, \"data\": {\"format\": \"bytes\", "
             "\"train\": [\"text.txt\"]}, \"steps\": 4, \"out\": \"out\", "
             "\"train_batch_size\": 16, \"train_micro_batch_size_per_gpu\": 2, "
             "\"execution\": {\"threads\": 1}%s}",
             more);
    file_text(state, "run.json", text);
    file_words(state, "text.txt", 30000);
}

// The last number of the key in metrics.jsonl.
static double last_of(void *const *state, const char *key) {
    char *text = file_read(state, "out/metrics.jsonl", NULL), *at = text, *last = NULL;
    while ((at = strstr(at, key)) != NULL) {
        at += strlen(key);
        last = at;
    }
    assert_non_null(last);
    double value = strtod(last, NULL);
    free(text);
    return value;
}

static const char device_peak[] = "\"peak_bytes\": {\"device\": ";

// Gradients that leave once need the whole batch as one wave: the wave that was chosen
// for 8 micro-batches is none of the user's, and another is chosen for 128.
static void test_chosen_again(void **state) {
    growing_run(state, ", \"memory\": {\"device\": \"8MiB\"}, \"batch_schedule\": "
                       "[[2, 256]], \"zero_optimization\": {\"offload_optimizer\": "
                       "{\"device\": \"cpu\"}}");
    outcome o = run(state, LIST("train", "run.json"));
    assert_string_equal(strstr(o.err, "tranche: ") ? strstr(o.err, "tranche: ") : "",
                        "");
    assert_int_equal(o.status, 0);
    assert_says(o.out, "the batch is now 256, it was 16 (128 accumulation steps");
    outcome_free(&o);
    assert_true(last_of(state, device_peak) <= 8 << 20);
}

// What fits the first batch alone does not begin.
static void test_refused_before(void **state) {
    growing_run(state, ", \"memory\": {\"device\": \"1MiB\"}, \"batch_schedule\": "
                       "[[2, 256]], \"zero_optimization\": {\"offload_optimizer\": "
                       "{\"device\": \"cpu\"}}");
    fail_with(state, NULL, LIST("train", "run.json"), 3,
              LIST("later in this run the effective batch is 256",
                   "no plan fits the budgets", "device 1.00 MiB"));
    assert_int_not_equal(access(file_path(state, "out/metrics.jsonl"), F_OK), 0);
    // Without the change it does.
    free(succeed(state, LIST("train", "run.json", "--set", "batch_schedule=[]")));
    assert_true(last_of(state, device_peak) <= 1 << 20);
}

// A batch that follows the noise scale stops where the memory does.
static void test_adaptive_is_limited(void **state) {
    growing_run(state, ", \"memory\": {\"device\": \"1MiB\"}, \"adaptive_batch\": "
                       "{\"enabled\": true, \"most\": 512, \"every\": 1, \"share\": "
                       "1000}, \"zero_optimization\": {\"offload_optimizer\": "
                       "{\"device\": \"cpu\"}}");
    outcome o = run(state, LIST("train", "run.json", "--steps", "8"));
    assert_int_equal(o.status, 0);
    const char *said =
        strstr(o.err, "adaptive_batch.most is 512, but the memory is enough for ");
    assert_non_null(said);
    said = strstr(said, "enough for ") + 11;
    assert_null(strstr(said, "but the memory is enough"));
    long limit = strtol(said, NULL, 10);
    assert_true(limit >= 16 && limit < 512 && limit % 2 == 0);
    assert_true(last_of(state, "\"train_batch_size\": ") <= (double)limit);
    assert_true(last_of(state, "\"train_batch_size\": ") > 16);
    assert_true(last_of(state, device_peak) <= 1 << 20);
    outcome_free(&o);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_chosen_again),
        TEST(test_refused_before),
        TEST(test_adaptive_is_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
